"""Arguments of 8 MB that a model writes, over a real wire; memory is measured from outside."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clikit import TRIMTAB, Cli, serving
from measurekit import measure

SIZE = 8 << 20
SHORT_LINES = "ab\n" * (SIZE // 3)
NORMAL_LINES = ("x" * 60 + "\n") * (SIZE // 61)
CALLS: dict[str, tuple[dict[str, Any], int]] = {
    "new file": ({"name": "create", "arguments": {"path": "n", "file_text": NORMAL_LINES}}, 160),
    "many lines": ({"name": "create", "arguments": {"path": "n", "file_text": SHORT_LINES}}, 160),
    "edit": (
        {"name": "edit", "arguments": {"path": "old", "old_str": "a", "new_str": NORMAL_LINES}},
        200,
    ),
    "text that is not there": (
        {"name": "edit", "arguments": {"path": "old", "old_str": SHORT_LINES, "new_str": "x"}},
        160,
    ),
    "one long word": (
        {"name": "bash", "arguments": {"command": "echo " + "a" * SIZE, "description": "x"}},
        200,
    ),
    "unknown tool": ({"name": "nosuch", "arguments": {"x": "x" * SIZE}}, 160),
    "deep nesting": (
        {"name": "view", "arguments": '{"path":' + "[" * (SIZE // 2) + "]" * (SIZE // 2) + "}"},
        160,
    ),
}
"""Calls, and the most memory in MB that a run with one may use."""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_with_huge_arguments_costs_a_bounded_amount_of_memory(
    cli: Cli, name: str
) -> None:
    call, most = CALLS[name]
    (cli.cwd / "old").write_text("a\nb\n")
    async with serving([{"tools": [call], "chunk": 65536}, {"text": "Done."}]) as server:
        cli.use(server)
        command = [TRIMTAB, "-C", str(cli.cwd), "-p", "go", "--allow-all", "--silent"]
        spent = await asyncio.to_thread(measure, *command, **cli.env)
    assert spent.out == "Done.\n"
    assert spent.memory < most << 20
