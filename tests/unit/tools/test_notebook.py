"""Notebooks: cells are shown and changed one by one, and no other byte changes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from properties.notebook_cases import check_case
from toolkit import Bench, open_bench
from trimtab.contracts.messages import ToolCall
from trimtab.tools.aliases import translate_name

NOTEBOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "id": "load",
            "metadata": {"tags": ["keep"]},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": ["loaded\n"]},
                {"data": {"image/png": "aGk="}, "metadata": {}, "output_type": "display_data"},
            ],
            "source": ["load()"],
        },
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
TEXT = json.dumps(NOTEBOOK, indent=1) + "\n"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as bench:
        bench.write("a.ipynb", TEXT)
        yield bench


def test_random_changes_leave_every_other_byte() -> None:
    for seed in range(400):
        check_case(seed)


@pytest.mark.parametrize("tool", ["view", "notebook"])
async def test_the_cells_are_shown_with_numbers_ids_and_outputs(bench: Bench, tool: str) -> None:
    more = {"action": "view"} if tool == "notebook" else {}
    shown = await bench.text(tool, path="a.ipynb", **more)
    assert shown.split("\n") == [
        "Notebook a.ipynb: 2 cells, python",
        "[1] markdown id=intro",
        "# Title",
        "words",
        "[2] code id=load executed=3",
        "load()",
        "--- output",
        "loaded",
        "<image/png>",
    ]
    assert await bench.text("notebook", path="a.ipynb", action="view", cell="intro") == (
        "[1] markdown id=intro\n# Title\nwords"
    )


async def test_the_lines_of_a_notebook_are_shown_on_request(bench: Bench) -> None:
    shown = await bench.text("view", path="a.ipynb", view_range=[1, 2])
    assert shown == '1. {\n2.  "cells": ['


async def test_a_file_that_only_looks_like_a_notebook_is_shown_as_text(bench: Bench) -> None:
    bench.write("b.ipynb", "{}")
    assert await bench.text("view", path="b.ipynb") == "1. {}"


async def test_a_cell_is_replaced_by_number_and_its_old_outputs_go(bench: Bench) -> None:
    result = await bench.call("notebook", path="a.ipynb", action="replace", cell=2, source="run()")
    assert result.text == "Cell replaced; a.ipynb has 2 cells now."
    assert '+   "outputs": [],' in (result.detail or "")
    content = json.loads(bench.path("a.ipynb").read_text())
    assert content["cells"][1] == {
        **NOTEBOOK["cells"][1],
        "execution_count": None,
        "outputs": [],
        "source": ["run()"],
    }
    assert content["cells"][0] == NOTEBOOK["cells"][0]


async def test_a_cell_is_inserted_and_deleted_exactly(bench: Bench) -> None:
    await bench.call(
        "notebook", path="a.ipynb", action="insert", cell="intro", source="x\ny", cell_type="raw"
    )
    cells = json.loads(bench.path("a.ipynb").read_text())["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "raw", "code"]
    assert cells[1]["source"] == ["x\n", "y"]
    await bench.call("notebook", path="a.ipynb", action="delete", cell="2")
    assert bench.path("a.ipynb").read_text() == TEXT
    left = await bench.call("notebook", path="a.ipynb", action="delete", cell="2")
    assert left.text == "Cell deleted; a.ipynb has 1 cell now."


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"action": "delete", "cell": "9"}, "has no cell '9'; its cells are numbered 1 to 2"),
        ({"action": "delete"}, "delete needs cell"),
        ({"action": "insert"}, "insert needs source"),
        ({"action": "replace", "source": "x"}, "replace needs cell"),
    ],
)
async def test_a_wrong_call_changes_nothing_and_says_what_is_wrong(
    bench: Bench, args: dict[str, str], said: str
) -> None:
    result = await bench.call("notebook", path="a.ipynb", **args)
    assert result.kind == "failure"
    assert said in result.text
    assert bench.path("a.ipynb").read_text() == TEXT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        ('{"worksheets": []}', "no list of cells"),
        ('{"cells": [1]}', "no list of cells"),
        ("[]", "no list of cells"),
    ],
)
async def test_what_is_no_notebook_is_refused(
    bench: Bench, content: str | bytes, said: str
) -> None:
    bench.write("b.ipynb", content)
    result = await bench.call("notebook", path="b.ipynb", action="delete", cell="1")
    assert result.kind == "failure"
    assert said in result.text


async def test_a_permission_question_shows_what_would_change(bench: Bench) -> None:
    access = bench.access("notebook", path="a.ipynb", action="delete", cell="intro")
    assert access.kind == "write"
    assert '-    "# Title\\n",' in access.detail["diff"]
    reading = bench.access("notebook", path="a.ipynb", action="view")
    assert (reading.kind, reading.mutates) == ("read", False)


@pytest.mark.parametrize(
    ("name", "args", "ours"),
    [
        (
            "edit_notebook_file",
            {"filePath": "a.ipynb", "editType": "insert", "cellId": "TOP", "newCode": ["x", "y"],
             "language": "markdown"},
            {"path": "a.ipynb", "action": "insert", "cell": "0", "source": "x\ny",
             "cell_type": "markdown"},
        ),
        (
            "edit_notebook_file",
            {"filePath": "a.ipynb", "editType": "edit", "cellId": "load", "newCode": "x"},
            {"path": "a.ipynb", "action": "replace", "cell": "load", "source": "x"},
        ),
        (
            "NotebookEdit",
            {"notebook_path": "a.ipynb", "cell_id": "load", "new_source": "x"},
            {"path": "a.ipynb", "action": "replace", "cell": "load", "source": "x"},
        ),
        (
            "NotebookEdit",
            {"notebook_path": "a.ipynb", "edit_mode": "delete", "cell_id": "load",
             "new_source": ""},
            {"path": "a.ipynb", "action": "delete", "cell": "load", "source": ""},
        ),
    ],
)  # fmt: skip
async def test_calls_of_other_agents_are_translated(
    bench: Bench, name: str, args: dict[str, Any], ours: dict[str, Any]
) -> None:
    call = ToolCall(id="1", name=name, arguments=json.dumps(args))
    translated = translate_name(call, bench.tools)
    assert translated.name == "notebook"
    assert json.loads(translated.arguments) == ours
    assert (await bench.call("notebook", **ours)).kind == "success"
