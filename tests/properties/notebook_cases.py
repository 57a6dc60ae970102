"""Random changes of notebooks in every layout, checked byte by byte.

Run as a program with the number of cases: `python tests/properties/notebook_cases.py 5000`.
"""

import json
import random
import sys
from typing import Any

from trimtab.tools.notebook.tool import plan_change
from trimtab.tools.notebook_cells import Notebook, read_notebook

INDENTS: list[int | str | None] = [1, 2, 4, "\t", None]
SOURCES = ["", "x = 1", "x = 1\n", "a\n\nb\n", "naïve = '🚀'\n", '"quoted \\n"\n', "# 日本\nx"]
OUTPUTS: list[dict[str, Any]] = [
    {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
    {"output_type": "display_data", "data": {"image/png": "aGk=\n"}, "metadata": {}},
    {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[31m!"]},
]


def make_cell(rng: random.Random, number: int) -> dict[str, Any]:
    source = rng.choice(SOURCES)
    cell: dict[str, Any] = {
        "cell_type": rng.choice(["code", "markdown", "raw"]),
        "id": f"id-{number}",
        "metadata": rng.choice([{}, {"tags": ["keep"], "x": {"y": [1, 2.50, None]}}]),
        "source": source if rng.random() < 0.3 else source.splitlines(keepends=True),
    }
    if cell["cell_type"] == "code":
        cell["execution_count"] = rng.choice([None, 7])
        cell["outputs"] = rng.sample(OUTPUTS, rng.randint(0, 3))
    if rng.random() < 0.2:
        del cell["id"]
    items = list(cell.items())
    rng.shuffle(items)
    return dict(items)


def make_notebook(rng: random.Random) -> bytes:
    content = {
        "cells": [make_cell(rng, number) for number in range(rng.randint(0, 6))],
        "metadata": {"language_info": {"name": "python"}, "cells": [1, {"cells": []}]},
        "nbformat": 4,
        "nbformat_minor": rng.choice([4, 5]),
    }
    items = list(content.items())
    rng.shuffle(items)
    text = json.dumps(
        dict(items),
        indent=rng.choice(INDENTS),
        ensure_ascii=rng.random() < 0.5,
        separators=rng.choice([None, (",", ":")]),
    )
    if rng.random() < 0.3:
        text = text.replace("\n", "\r\n")
    if rng.random() < 0.5:
        text += "\n"
    return (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()


def pieces(notebook: Notebook) -> list[str]:
    return [notebook.text[slice(*cell.span)] for cell in notebook.cells]


def check_case(seed: int) -> None:
    rng = random.Random(seed)
    data = make_notebook(rng)
    before = read_notebook(data)
    action = rng.choice(["insert", "replace", "delete"] if before.cells else ["insert"])
    args: dict[str, Any] = {"action": action}
    at = rng.randrange(len(before.cells)) if before.cells else 0
    if action != "insert":
        args["cell"] = before.cells[at].id or str(at + 1)
    elif rng.random() < 0.7:
        at = rng.randint(0, len(before.cells))
        args["cell"] = str(at)
    else:
        at = len(before.cells)
    if action != "delete":
        args["source"] = rng.choice(SOURCES)
        if rng.random() < 0.5:
            args["cell_type"] = rng.choice(["code", "markdown", "raw"])
    changed = plan_change(data, args).data
    after = read_notebook(changed)
    compare(before, after, at, args)
    assert changed.startswith(before.text[: before.span[0]].encode()), seed
    assert changed.endswith(before.text[before.span[1] :].encode()), seed
    if action == "insert":
        number = str(at + 1)
        back = plan_change(changed, {"action": "delete", "cell": number}).data
        assert back == data or not before.cells, seed


def compare(before: Notebook, after: Notebook, at: int, args: dict[str, Any]) -> None:
    """All cells but the one that changed have the bytes they had."""
    old, new = pieces(before), pieces(after)
    if args["action"] == "delete":
        assert new == old[:at] + old[at + 1 :]
        return
    cell = after.cells[at]
    assert cell.source == args["source"]
    if args["action"] == "insert":
        assert new[:at] + new[at + 1 :] == old
        assert cell.kind == args.get("cell_type", "code")
        assert bool(cell.id) is after.has_ids
        return
    assert new[:at] + new[at + 1 :] == old[:at] + old[at + 1 :]
    was = before.cells[at]
    assert cell.kind == args.get("cell_type", was.kind)
    assert cell.content.get("metadata") == was.content.get("metadata")
    assert cell.id == was.id
    assert cell.content.get("outputs", []) == []
    assert ("outputs" in cell.content) is (cell.kind == "code")


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        check_case(number)
    print(f"{sys.argv[1]} notebooks changed, no other byte differs")
