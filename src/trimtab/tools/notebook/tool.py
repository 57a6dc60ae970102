"""The `notebook` tool: shows, inserts, replaces and deletes cells of a Jupyter notebook."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import FileContent, StaleFile
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
from trimtab.tools.splice import Splice, describe_change

ATTEMPTS = 3
STALE = " Note: something else had changed the file since you last saw it; view it again."


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
        path = ctx.workspace.resolve(name)
        if refusal := refuse_path(name, ctx.workspace.inspect(path)):
            return refusal
        try:
            for _ in range(ATTEMPTS):
                before = await ctx.workspace.read(path)
                if args["action"] == "view":
                    ctx.workspace.remember(path, before.data)
                    return ToolResult(text=view_cells(name, before.data, args, ctx))
                plan = plan_change(before.data, args)
                try:
                    await ctx.workspace.write(path, plan.data, stamp=before.stamp)
                except StaleFile:
                    continue
                return self._done(path, ctx, args, (before, plan))
        except NotebookProblem as problem:
            return fail(f"{name} was not changed: {problem}", "Not possible in this notebook")
        except OSError as error:
            return system_failure(name, error)
        return fail(f"{name} is being changed by another program right now: try again.")

    def _done(
        self, path: str, ctx: ToolContext, args: Args, change: tuple[FileContent, Splice]
    ) -> ToolResult:
        before, plan = change
        stale = STALE if ctx.workspace.changed(path, before.data) else ""
        ctx.workspace.remember(path, plan.data)
        added, removed = plan.hunk.counts()
        cells = len(read_notebook(plan.data).cells)
        done = {"insert": "inserted", "replace": "replaced", "delete": "deleted"}[args["action"]]
        return ToolResult(
            text=f"Cell {done}; {args['path']} has {cells} cells now.{stale}",
            detail=unified(path, plan.hunk),
            changes=(FileChange(path=path, lines_added=added, lines_removed=removed),),
        )


def view_cells(name: str, data: bytes, args: Args, ctx: ToolContext) -> str:
    notebook = read_notebook(data)
    if args.get("cell"):
        return show_cell(find_cell(notebook, args["cell"]), ctx.output_limit)
    return show_notebook(name, notebook, ctx.output_limit)


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
