"""The `lsp` tool: definitions, references, types, calls, symbols, diagnostics and renaming."""

from collections.abc import Sequence

from trimtab.contracts.language import FileEdit, LanguagePort, LanguageProblem, LanguageQuery
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import count
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import StaleFile, Stamp
from trimtab.tools.description import describe
from trimtab.tools.diff import Hunk, unified
from trimtab.tools.files import fail, shown_contents, system_failure
from trimtab.tools.splice import describe_change
from trimtab.tools.text import first_view

ACTIONS = (
    *("definition", "references", "hover", "symbols", "callers", "callees", "diagnostics"),
    "rename",
)


class LspTool:
    spec = ToolSpec(
        name="lsp",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(ACTIONS)},
                "path": {"type": "string"},
                "line": {"type": "integer"},
                "symbol": {"type": "string", "description": "A name in the line or file"},
                "new_name": {"type": "string"},
            },
            "required": ["action"],
        },
    )

    def __init__(self, language: LanguagePort | None = None) -> None:
        self._language = language

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        path = ctx.workspace.resolve(args["path"]) if args.get("path") else ctx.workspace.root
        if args["action"] != "rename":
            intention = f"Ask a language server about {args.get('path') or 'the project'}"
            return [Access(kind="read", target=path, intention=intention, mutates=False)]
        edits = self._planned(ctx)
        if not edits:
            return [Access(kind="write", target=path, intention="Rename a symbol")]
        return [describe_write(edit, args) for edit in edits]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        if self._language is None:
            return fail("No language server runs here; use grep instead.")
        if args["action"] == "rename":
            return await self._rename(args, ctx)
        if not args.get("path") and args["action"] != "symbols":
            return fail(f"{args['action']} needs path; add it.")
        query = LanguageQuery(
            action=args["action"],
            path=ctx.workspace.resolve(args["path"]) if args.get("path") else "",
            line=args.get("line"),
            symbol=args.get("symbol", ""),
        )
        try:
            return ToolResult(text=await self._language.answer(query))
        except LanguageProblem as problem:
            return fail(str(problem))

    def _planned(self, ctx: ToolContext) -> Sequence[FileEdit]:
        return self._language.planned.get(ctx.call_id, ()) if self._language else ()

    async def _rename(self, args: Args, ctx: ToolContext) -> ToolResult:
        """Write the files of a planned rename: all of them, unless one has changed since."""
        edits = self._planned(ctx)
        stamps: list[tuple[FileEdit, Stamp]] = []
        try:
            for edit in edits:
                now = await ctx.workspace.read(edit.path)
                if now.data != edit.before:
                    return fail(f"Nothing was renamed: {edit.path} has just changed; try again.")
                stamps.append((edit, now.stamp))
            for edit, stamp in stamps:
                await ctx.workspace.write(edit.path, edit.after, stamp=stamp)
                ctx.workspace.remember(edit.path, edit.after)
        except StaleFile:
            return fail("A file changed while it was renamed in; check with grep what is left.")
        except OSError as error:
            return system_failure(str(error.filename or args["path"]), error)
        hunks = [(edit.path, find_hunk(edit)) for edit in edits]
        files = "\n".join(path for path, _ in hunks)
        return ToolResult(
            text=f"Renamed to {args['new_name']} in {count(len(edits), 'file')}:\n{files}",
            detail="".join(unified(path, hunk) for path, hunk in hunks),
            changes=tuple(describe_counts(path, hunk) for path, hunk in hunks),
        )


def describe_write(edit: FileEdit, args: Args) -> Access:
    detail = {
        "fileName": edit.path,
        "diff": unified(edit.path, find_hunk(edit)),
        "newFileContents": shown_contents(edit.after),
    }
    intention = f"Rename {args.get('symbol', 'a symbol')} to {args.get('new_name')}"
    return Access(kind="write", target=edit.path, intention=intention, detail=detail)


def describe_counts(path: str, hunk: Hunk) -> FileChange:
    added, removed = hunk.counts()
    return FileChange(path=path, lines_added=added, lines_removed=removed)


def find_hunk(edit: FileEdit) -> Hunk:
    return describe_change(first_view(edit.before).shown(), first_view(edit.after).shown())


TOOL = LspTool()
