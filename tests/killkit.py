"""Kills a run at a chosen moment and looks at what is left."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from clikit import Cli, bash, serving
from conformance import check_lines
from trimtab.contracts.messages import AssistantMessage, Message, ToolMessage
from trimtab.session.log import read_records
from trimtab.testing.playing import play

SCRIPT = [
    {
        "text": "I will look at several things at once.",
        "tools": [
            {"name": "view", "arguments": {"path": "notes.txt"}},
            bash("echo first; sleep 0.02; echo second"),
            {"name": "create", "arguments": {"path": "made.txt", "file_text": "made\n"}},
        ],
    },
    {"text": "Now an edit.", "tools": [{"name": "edit", "arguments": {"path": "made.txt", "old_str": "made", "new_str": "mended"}}]},
    {"text": "And another command.", "tools": [bash("cat made.txt")]},
    {"text": "All of it is done, and it works as it should."},
]  # fmt: skip


class Kill:
    """After `lines` lines of output, or after `seconds`."""

    def __init__(self, *, lines: int | None = None, seconds: float | None = None) -> None:
        self.lines = lines
        self.seconds = seconds


async def killed_run(cli: Cli, kill: Kill) -> list[dict[str, Any]]:
    """Start a run, kill it with SIGKILL, and give the whole lines it had printed."""
    (cli.cwd / "notes.txt").write_text("some notes\n")
    async with serving(SCRIPT) as server:
        process = await cli.use(server).start("-p", "go", "--output-format", "json", "--allow-all")
        assert process.stdout is not None
        seen: list[bytes] = []
        if kill.seconds is not None:
            await asyncio.sleep(kill.seconds)
        while kill.lines is not None and len(seen) < kill.lines:
            line = await process.stdout.readline()
            if not line:
                break
            seen.append(line)
        if process.returncode is None:
            process.kill()
        seen += (await process.stdout.read()).splitlines(keepends=True)
        await process.wait()
    return [json.loads(line) for line in seen if line.endswith(b"\n")]


async def check_survivor(cli: Cli, printed: list[dict[str, Any]]) -> None:
    """The session opens, has everything that was said to have happened, and can go on."""
    logs = cli.logs()
    if not logs:
        assert not [line for line in printed if line["type"] == "user.message"]
        return
    kept = {json.loads(record.line)["id"] for record in read_records(str(logs[0]))}
    said = {
        line["id"] for line in printed if line["type"] != "result" and not line.get("ephemeral")
    }
    assert said <= kept, "an event that was shown is not in the log"
    session_id = logs[0].parent.name
    resumed = await play(
        [{"text": "Going on."}], "go on", home=str(cli.home), cwd=str(cli.cwd), resume=session_id
    )
    assert resumed.stop.exit_code == 0
    check_lines(resumed.lines)
    assert well_formed(list(resumed.requests[-1].messages))
    repaired = [w for w in resumed.of("session.warning") if w.warning_type == "log_repaired"]
    assert len(repaired) <= 1, repaired


def well_formed(messages: list[Message]) -> bool:
    """Whether services accept it: every call is followed by its result, in order."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if not waiting or message.call_id != waiting.pop(0):
                return False
        elif waiting:
            return False
        elif isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
    return not waiting


async def kill_and_resume(folder: Path, kill: Kill) -> None:
    cli = Cli(folder)
    await check_survivor(cli, await killed_run(cli, kill))


def random_kills(count: int, seed: int) -> list[Kill]:
    """Moments spread over the life of a run, most of them where it works."""
    source = random.Random(seed)
    return [Kill(seconds=source.uniform(0.05, 0.45)) for _ in range(count)]
