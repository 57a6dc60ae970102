"""The `notebook` tool: shows, inserts, replaces and deletes cells of a Jupyter notebook."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.diff import unified
from trimtab.tools.files import fail, refuse_path, shown_contents, system_failure
from trimtab.tools.notebook_cells import (
    Notebook,
    NotebookProblem,
    delete_cell,
    find_cell,
    insert_cell,
    read_notebook,
    replace_cell,
)
from trimtab.tools.notebook_view import show_cell, show_notebook
from trimtab.tools.rewrite import rewrite
from trimtab.tools.splice import Mismatch, Splice, describe_change

NOT_POSSIBLE = "Not possible in this notebook"
DONE = {"insert": "inserted", "replace": "replaced", "delete": "deleted"}


class NotebookTool:
    spec = ToolSpec(
        name="notebook",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "action": {"type": "string", "enum": ["view", "insert", "replace", "delete"]},
                "cell": {
                    "type": "string",
                    "description": "Number from 1, or id. insert: the cell before the new one, 0 "
                    "for the top, none for the end. view: none for all",
                },
                "source": {"type": "string", "description": "Text of the cell"},
                "cell_type": {"type": "string", "enum": ["code", "markdown", "raw"]},
            },
            "required": ["path", "action"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        path = ctx.workspace.resolve(args["path"])
        if args["action"] == "view":
            intention = f"View {args['path']}"
            return [Access(kind="read", target=path, intention=intention, mutates=False)]
        detail = {"fileName": path, "diff": "", "newFileContents": ""}
        try:
            plan = plan_change(ctx.workspace.load(path).data, args)
        except (OSError, NotebookProblem):
            plan = None
        if plan is not None:
            detail["diff"] = unified(path, plan.hunk)
            detail["newFileContents"] = shown_contents(plan.data)
        intention = f"Edit notebook {args['path']}"
        return [Access(kind="write", target=path, intention=intention, detail=detail)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name = args["path"]
        if args["action"] == "view":
            return await view_cells(name, args, ctx)

        def plan(data: bytes) -> Splice | Mismatch:
            try:
                return plan_change(data, args)
            except NotebookProblem as problem:
                return Mismatch(text=f"{name} was not changed: {problem}", summary=NOT_POSSIBLE)

        def describe_result(planned: Splice) -> str:
            cells = len(read_notebook(planned.data).cells)
            return f"Cell {DONE[args['action']]}; {name} has {count(cells, 'cell')} now."

        return await rewrite(name, ctx, plan, describe_result)


async def view_cells(name: str, args: Args, ctx: ToolContext) -> ToolResult:
    path = ctx.workspace.resolve(name)
    if refusal := refuse_path(name, ctx.workspace.inspect(path)):
        return refusal
    try:
        data = (await ctx.workspace.read(path)).data
    except OSError as error:
        return system_failure(name, error)
    ctx.workspace.remember(path, data)
    try:
        notebook = read_notebook(data)
        if args.get("cell"):
            text = show_cell(find_cell(notebook, args["cell"]), ctx.output_limit)
        else:
            text = show_notebook(name, notebook, ctx.output_limit)
    except NotebookProblem as problem:
        return fail(f"{name} cannot be shown: {problem}", NOT_POSSIBLE)
    return ToolResult(text=text)


def plan_change(data: bytes, args: Args) -> Splice:
    """Return the new bytes of a notebook. Raises `NotebookProblem`."""
    notebook = read_notebook(data)
    text = change_text(notebook, args)
    return Splice(data=text.encode(), hunk=describe_change(notebook.text, text))


def change_text(notebook: Notebook, args: Args) -> str:
    action, cell, source = args["action"], args.get("cell"), args.get("source")
    if action == "delete":
        return delete_cell(notebook, find_cell(notebook, require(cell, "cell", action)))
    text = require(source, "source", action)
    if action == "replace":
        found = find_cell(notebook, require(cell, "cell", action))
        return replace_cell(notebook, found, text, args.get("cell_type"))
    if cell is None:
        after = len(notebook.cells)
    else:
        after = 0 if cell == "0" else find_cell(notebook, cell).number
    return insert_cell(notebook, after, new_cell(notebook, args.get("cell_type", "code"), text))


def require(value: str | None, name: str, action: str) -> str:
    if value is None:
        raise NotebookProblem(f"{action} needs {name}; add it.")
    return value


def new_cell(notebook: Notebook, kind: str, source: str) -> dict[str, Any]:
    content: dict[str, Any] = {"cell_type": kind}
    if kind == "code":
        content["execution_count"] = None
    if notebook.has_ids:
        content["id"] = uuid4().hex[:8]
    content["metadata"] = {}
    if kind == "code":
        content["outputs"] = []
    return {**content, "source": source}


TOOL = NotebookTool()
