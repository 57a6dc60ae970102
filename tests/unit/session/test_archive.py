"""Operations on stored sessions."""

from pathlib import Path

import pytest

from logkit import SESSION, joined, short_log
from trimtab.contracts.errors import UsageError
from trimtab.session.archive import Archive


def test_the_event_before_another_is_the_one_above_it_in_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "session-state" / SESSION
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(joined(short_log()))
    archive = Archive({"COPILOT_HOME": str(tmp_path)})
    ids = [record.id for record in archive.all_records(SESSION)]
    assert len(ids) > 5
    assert [archive.event_before(SESSION, each) for each in ids[1:]] == ids[:-1]
    with pytest.raises(UsageError, match="is the first event"):
        archive.event_before(SESSION, ids[0])
    with pytest.raises(UsageError, match=r"Event .* not found"):
        archive.event_before(SESSION, "nosuch")
