"""A notebook in a project: the model gets a tool for it, and every change can be undone."""

import json
from typing import Any

import msgspec

from clikit import Cli, serving

CELL = {"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {}, "outputs": [],
        "source": ["x = 1\n"]}  # fmt: skip
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def change(**args: str) -> dict[str, Any]:
    return {"name": "notebook", "arguments": {"path": "work/a.ipynb", **args}}


async def test_cells_are_changed_and_undo_restores_every_byte(cli: Cli) -> None:
    path = cli.cwd / "work/a.ipynb"
    path.parent.mkdir()
    before = json.dumps(NOTEBOOK, indent=3).replace("\n", "\r\n").encode()
    path.write_bytes(before)
    calls = [
        change(action="view"),
        change(action="insert", source="y = 2"),
        change(action="replace", cell="one", source="x = 3"),
    ]
    async with serving([{"tools": [call]} for call in calls] + [{"text": "done"}]) as server:
        outcome = await cli.use(server).ask("change it")
        offered = server.requests[0].json["tools"]
    assert "notebook" in [tool["function"]["name"] for tool in offered]
    assert (
        "[1] code id=one executed=1"
        in outcome.of("tool.execution_complete")[0]["result"]["content"]
    )
    sources = [cell["source"] for cell in msgspec.json.decode(path.read_bytes())["cells"]]
    assert sources == [["x = 3"], ["y = 2"]]
    assert (await cli.run("undo")).code == 0
    assert path.read_bytes() == before


async def test_a_project_without_notebooks_does_not_pay_for_the_tool(cli: Cli) -> None:
    async with serving([{"text": "done"}]) as server:
        await cli.use(server).ask("go")
        offered = server.requests[0].json["tools"]
    assert "notebook" not in [tool["function"]["name"] for tool in offered]
