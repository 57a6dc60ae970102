"""Output that was saved stays what it was: no later call, resume or fork writes over it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from logkit import sessions

SAVED = re.compile(r"(?:Saved to: |The whole result is in )(\S+\.txt)")


def saved_files(cli: Cli, session_id: str) -> list[Path]:
    """The files that the events of a session name, in order."""
    log = cli.home / "session-state" / session_id / "events.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    ends = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    texts = [end["result"]["content"] for end in ends if end["success"]]
    return [Path(found[1]) for text in texts if (found := SAVED.search(text))]


def search(pattern: str) -> dict[str, Any]:
    return {
        "name": "grep",
        "arguments": {"pattern": pattern, "output_mode": "content", "head_limit": 100_000},
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (bash("seq 10000 19999"), bash("seq 50000 59999")),
        (search("^1"), search("^5")),
    ],
    ids=["shell", "search"],
)
async def test_a_resumed_session_writes_to_new_files(
    cli: Cli, first: dict[str, Any], second: dict[str, Any]
) -> None:
    (cli.cwd / "numbers.txt").write_text("".join(f"{n}\n" for n in range(10_000, 60_000)))
    # Each server counts from 1, so the ids of the calls are the same in both runs.
    async with serving([{"tools": [first]}, "done"]) as server:
        outcome = await cli.use(server).ask("go")
    session_id = outcome.result["sessionId"]
    (file,) = saved_files(cli, session_id)
    content = file.read_bytes()
    async with serving([{"tools": [second]}, "done"]) as server:
        await cli.use(server).ask("go on", f"--resume={session_id}")
    one, other = saved_files(cli, session_id)
    assert one == file != other
    assert file.read_bytes() == content
    assert b"10500" in content
    assert b"50500" in other.read_bytes()


async def test_a_fork_and_its_source_write_to_files_of_their_own(cli: Cli) -> None:
    async with serving([{"tools": [bash("seq 10000 19999")]}, "done"]) as server:
        outcome = await cli.use(server).ask("go")
    source = outcome.result["sessionId"]
    (file,) = saved_files(cli, source)
    forked = json.loads(sessions(cli.home, "fork", source, "--json").stdout)["id"]
    for number, session_id in (("5", source), ("7", forked)):
        async with serving([{"tools": [bash(f"seq {number}0000 {number}9999")]}, "done"]) as server:
            await cli.use(server).ask("go on", f"--resume={session_id}")
    files = [*saved_files(cli, source), saved_files(cli, forked)[-1]]
    assert len(set(files)) == 3
    assert [path.read_bytes()[:1] for path in files] == [b"1", b"5", b"7"]
    assert file.read_bytes().startswith(b"10000\n")


async def test_calls_with_the_same_id_do_not_share_a_file(cli: Cli) -> None:
    """Some models count their calls from 1 in every reply."""
    steps = [{"tools": [{**bash(f"seq {n}0000 {n}9999"), "id": "call_1"}]} for n in range(1, 4)]
    async with serving([*steps, "done"]) as server:
        outcome = await cli.use(server).ask("go")
    files = saved_files(cli, outcome.result["sessionId"])
    assert [path.read_bytes()[:5] for path in files] == [b"10000", b"20000", b"30000"]


async def test_a_long_id_of_a_call_makes_no_name_that_is_too_long(cli: Cli) -> None:
    (cli.cwd / "numbers.txt").write_text("".join(f"{n}\n" for n in range(10_000, 60_000)))
    call = {**search("^1"), "id": "call_" + "x" * 400}
    async with serving([{"tools": [call]}, "done"]) as server:
        outcome = await cli.use(server).ask("go")
    (file,) = saved_files(cli, outcome.result["sessionId"])
    assert b"10500" in file.read_bytes()
