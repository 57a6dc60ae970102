"""Events with unmasked secrets, for the session's owner alone."""

import os
from pathlib import Path

import pytest

from logkit import event, joined
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.codec import decode
from trimtab.session.unmasked import keep_unmasked, path_for, read_events

PLAIN = event("user.message", {"content": "hunter2"}, 1)
MASKED = event("user.message", {"content": "*******"}, 1)
OTHER = event("user.message", {"content": "other"}, 2)
LATER = event("assistant.message", {"messageId": "m", "content": "yes"}, 3)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "events.jsonl"
    path.write_bytes(joined([MASKED, OTHER, LATER]))
    return str(path)


def texts(log: str, *wanted: str) -> list[str]:
    return [event.data.content for event in read_events(log, wanted)]


def test_kept_events_replace_the_masked_ones_of_the_log(log: str) -> None:
    assert texts(log, "user.message") == ["*******", "other"]
    keep_unmasked(log, decode(PLAIN))
    assert texts(log, "user.message") == ["hunter2", "other"]
    assert texts(log, "assistant.message") == ["yes"]
    assert texts(log, "assistant.message", "user.message") == ["hunter2", "other", "yes"]
    assert texts(log) == []


@pytest.mark.parametrize("umask", [0, 0o777])
def test_events_are_appended_to_a_private_file(log: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        keep_unmasked(log, decode(PLAIN))
    finally:
        os.umask(before)
    keep_unmasked(log, decode(OTHER))
    path = Path(path_for(log))
    assert path.read_bytes().count(b"\n") == 2
    assert path.read_bytes().endswith(b"\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_and_one_without_an_id_are_passed(log: str) -> None:
    nameless = b'{"type":"user.message","data":{"content":"x"},"id":""}'
    Path(path_for(log)).write_bytes(joined([nameless, PLAIN]) + OTHER[:-5])
    assert texts(log, "user.message") == ["hunter2", "other"]
    with open(log, "ab") as file:
        file.write(nameless.replace(b'"x"', b'"mine"') + b"\n")
    assert texts(log, "user.message") == ["hunter2", "other", "mine"]


def test_a_link_in_its_place_is_not_followed(log: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    Path(path_for(log)).symlink_to(precious)
    with pytest.raises(TrimtabError, match="Cannot save the session to"):
        keep_unmasked(log, decode(PLAIN))
    assert not precious.exists()
