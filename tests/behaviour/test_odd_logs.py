"""Logs in which something is missing, and logs of a later version, seen from outside."""

import json
from pathlib import Path

import pytest

from clikit import Cli, Outcome, serving
from logkit import EVENTS, SESSION, chain, joined, sessions, store_session


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The program; what it leaves is not checked, because these logs are not what they should be."""
    return Cli(tmp_path)


def without_start() -> bytes:
    return joined(chain(EVENTS[1:]))


def without_data(replacement: str) -> bytes:
    """The log with one more prompt whose data is missing."""
    lines = chain([*EVENTS, ("user.message", {"content": "lost"})])
    event = json.loads(lines[-1])
    del event["data"]
    text = json.dumps(event, separators=(",", ":"))
    lines[-1] = text.replace('{"type":"user.message",', replacement).encode()
    return joined(lines)


ODD = {
    "an empty log": (b"", "The log is empty"),
    "a log that begins in the middle": (without_start(), "first event is not session.start"),
    "an event without data": (without_data('{"type":"user.message",'), "An event has no data"),
    "an event whose data is null": (
        without_data('{"type":"user.message","data":null,'),
        "An event has no data",
    ),
    "an event whose data is a list": (
        without_data('{"type":"user.message","data":["lost"],'),
        "An event has no data",
    ),
}


async def resume(cli: Cli) -> tuple[Outcome, int]:
    async with serving(["Going on.", "And on."]) as server:
        outcome = await cli.use(server).ask("go on", f"--resume={SESSION}")
        return outcome, server.usage.requests


@pytest.mark.parametrize("name", ODD)
async def test_a_log_with_something_missing_is_resumed_with_a_warning(cli: Cli, name: str) -> None:
    content, fact = ODD[name]
    log = store_session(cli.home, []) / "events.jsonl"
    log.write_bytes(content)
    outcome, _ = await resume(cli)
    assert outcome.code == 0, outcome.notes
    (warning,) = outcome.of("session.warning")
    assert warning["warningType"] == "log_incomplete"
    assert fact in warning["message"]
    assert log.read_bytes().startswith(content)
    assert not list(log.parent.glob("*.damaged-*"))


@pytest.mark.parametrize("name", ODD)
def test_verify_says_what_is_missing_in_a_log(tmp_path: Path, name: str) -> None:
    content, fact = ODD[name]
    log = store_session(tmp_path, []) / "events.jsonl"
    log.write_bytes(content)
    done = sessions(tmp_path, "verify", SESSION)
    assert done.returncode == 0
    assert fact in done.stdout
    assert log.read_bytes() == content


async def test_an_empty_log_begins_anew_when_it_is_resumed(cli: Cli) -> None:
    log = store_session(cli.home, []) / "events.jsonl"
    assert "contains no event" in sessions(cli.home, "list").stdout
    await resume(cli)
    first = json.loads(log.read_bytes().split(b"\n")[0])
    assert first["type"] == "session.start"
    assert first["data"]["sessionId"] == SESSION
    again, _ = await resume(cli)
    assert again.code == 0
    assert again.of("session.warning") == []


@pytest.fixture
def future_log(cli: Cli) -> Path:
    start = dict(EVENTS[0][1], version=2)
    # The log also has damage that opening it would mend, were it of a known version.
    lines = chain([("session.start", start), *EVENTS[1:]])
    log = store_session(cli.home, []) / "events.jsonl"
    log.write_bytes(joined(lines) + b'{"type":"torn')
    return log


async def test_a_log_of_a_later_version_is_refused_and_left_as_it_is(
    cli: Cli, future_log: Path
) -> None:
    content = future_log.read_bytes()
    outcome, requests = await resume(cli)
    assert (outcome.code, requests) == (2, 0)
    message = outcome.result["error"]["message"]
    assert "version 2" in message
    assert "up to 1" in message
    assert "update trimtab" in message
    assert outcome.notes == message + "\n"
    for command in (("undo",), ("rewind", SESSION, "--turn", "1"), ("sessions", "repair", SESSION)):
        done = await cli.run(*command)
        assert (done.code, done.out) == (2, b""), command
        assert "version 2" in done.notes, command
    assert future_log.read_bytes() == content
    assert [path.name for path in future_log.parent.glob("events.jsonl*")] == ["events.jsonl"]


async def test_a_log_of_a_later_version_is_listed_verified_and_exported(
    cli: Cli, future_log: Path
) -> None:
    assert "version 2: update trimtab" in sessions(cli.home, "list").stdout
    verified = sessions(cli.home, "verify", SESSION)
    assert verified.returncode == 1
    assert "newer version of the format" in verified.stdout
    assert "Update trimtab" in verified.stdout
    exported = sessions(cli.home, "export", SESSION, "--format", "json")
    assert exported.returncode == 0
    assert [event["type"] for event in json.loads(exported.stdout)] == [kind for kind, _ in EVENTS]


@pytest.mark.parametrize("version", ["1", 1.0, None, "one", [3], {"a": 3}])
async def test_a_version_that_is_known_or_not_a_number_is_opened(cli: Cli, version: object) -> None:
    start = dict(EVENTS[0][1], version=version)
    store_session(cli.home, chain([("session.start", start), *EVENTS[1:]]))
    outcome, _ = await resume(cli)
    assert outcome.code == 0, outcome.notes
