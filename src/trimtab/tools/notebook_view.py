"""Shows a notebook as text: the sources of its cells, and what they printed."""

from typing import Any

from trimtab.contracts.text import count
from trimtab.tools.notebook_cells import Cell, Notebook, NotebookProblem, read_notebook
from trimtab.tools.text import readable

SHOWN_OUTPUT = 1000
"""Characters of a cell's outputs in a view of the whole notebook."""


def view_cells(name: str, data: bytes, limit: int) -> str | None:
    """Return the cells of a file; None if it is not a notebook."""
    try:
        return show_notebook(name, read_notebook(data), limit)
    except NotebookProblem:
        return None


def show_notebook(name: str, notebook: Notebook, limit: int) -> str:
    """Return all cells of a notebook, cut at a size, with what to do to see the rest."""
    cells = count(len(notebook.cells), "cell")
    language = f", {notebook.language}" if notebook.language else ""
    lines = [f"Notebook {name}: {cells}{language}"]
    size = len(lines[0])
    for cell in notebook.cells:
        shown = show_cell(cell, SHOWN_OUTPUT)
        size += len(shown) + 1
        if size > limit:
            lines.append(f"<cut here: view cell {cell.number} and later ones one by one>")
            break
        lines.append(shown)
    return "\n".join(lines)


def show_cell(cell: Cell, limit: int) -> str:
    """Return one cell, its outputs cut at a size."""
    named = f" id={cell.id}" if cell.id else ""
    runs = cell.content.get("execution_count")
    executed = f" executed={runs}" if isinstance(runs, int) else ""
    shown = f"[{cell.number}] {cell.kind}{named}{executed}\n{readable(cell.source)}".rstrip("\n")
    outputs = cell.content.get("outputs")
    if not isinstance(outputs, list) or not outputs:
        return shown
    printed = "".join(_show_output(output) for output in outputs if isinstance(output, dict))
    if len(printed) > limit:
        printed = f"{printed[:limit]}\n<{count(len(printed) - limit, 'more character')}>"
    return f"{shown}\n--- output\n{printed.rstrip()}"


def _show_output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}\n"
    if "text" in output:
        return _join(output["text"])
    data = output.get("data")
    if not isinstance(data, dict):
        return ""
    if "text/plain" in data:
        return _join(data["text/plain"]) + "\n"
    return "".join(f"<{kind}>\n" for kind in data)


def _join(text: Any) -> str:
    return readable("".join(map(str, text)) if isinstance(text, list) else str(text))
