"""Calls with the same id, which a model chooses: what is decided about one is not for the other."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.testing.playing import Played, play

SAME = "call_1"


class Door:
    """Answers questions: the first command is let out and waits there until the second has run."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.asked: list[tuple[str, bool]] = []
        os.mkfifo(out / "fifo")

    async def answer(self, request_id: str, request: dict[str, Any]) -> Answer:
        first = f"{self.out}/first" in request["fullCommandText"]
        leaves = request.get("sandboxBypass") is True
        self.asked.append(("first" if first else "second", leaves))
        if first:
            return Answer(kind="approve-once")
        if not leaves:  # opens when the first command is outside, and reads
            self._pipe = await asyncio.to_thread(os.open, self.out / "fifo", os.O_WRONLY)
            return Answer(kind="approve-once")
        os.close(self._pipe)
        return Answer(kind="reject")

    def command(self, name: str) -> dict[str, Any]:
        text = f"echo x > {self.out}/{name}"
        text += f" && cat {self.out}/fifo" if name == "first" else ""
        return {"id": SAME, "name": "bash", "arguments": {"command": text, "description": name}}


@pytest.fixture
def door(tmp_path: Path) -> Door:
    for name in ("work", "out"):
        (tmp_path / name).mkdir()
    return Door(tmp_path / "out")


async def run(door: Door, script: list[Any]) -> Played:
    work = str(door.out.parent / "work")
    async with asyncio.timeout(60):
        return await play(
            script,
            "go",
            cwd=work,
            ask=door.answer,
            sandbox=True,
            permissions=PermissionOptions(temp_dir=False),
        )


def check(door: Door, played: Played) -> None:
    assert sorted(door.asked) == [
        ("first", False),
        ("first", True),
        ("second", False),
        ("second", True),
    ]
    assert sorted(os.listdir(door.out)) == ["fifo", "first"]
    sandboxed = [end.sandboxed for end in played.of("tool.execution_complete")]
    assert {False, True} <= set(sandboxed)


async def test_a_command_that_was_let_out_takes_no_other_of_the_same_reply_along(
    door: Door,
) -> None:
    script = [{"tools": [door.command("first"), door.command("second")]}, "done"]
    played = await run(door, script)
    check(door, played)
    starts = [start.tool_call_id for start in played.of("tool.execution_start")]
    assert starts[0] == SAME
    assert len(set(starts)) == 2
    answered = [message.call_id for message in played.requests[-1].messages[-2:]]  # type: ignore[union-attr]
    assert answered == starts


async def test_a_command_that_was_let_out_takes_none_of_another_agent_along(door: Door) -> None:
    tasks = [
        {
            "name": "task",
            "arguments": {
                "description": name,
                "prompt": f"Be the {name}!",
                "agent_type": "general-purpose",
            },
        }
        for name in ("first", "second")
    ]
    script = [
        {"tools": tasks},
        {"when": {"last": "Be the first!"}, "tools": [door.command("first")]},
        {"when": {"last": "Be the second!"}, "tools": [door.command("second")]},
        *["done"] * 3,
    ]
    played = await run(door, script)
    check(door, played)
    starts = [start.tool_call_id for start in played.of("tool.execution_start")]
    assert starts.count(SAME) == 2
