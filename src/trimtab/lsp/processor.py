"""Steps into the loop for language servers: plans renames, and reports what an edit broke."""

from collections.abc import Callable, Sequence

import msgspec

from trimtab.contracts.language import LanguageProblem, LanguageQuery
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult
from trimtab.lsp.languages import SessionLanguages

MAX_REPORTED = 20
HIDDEN = "lsp cannot be used here, because rules keep files from being read; use grep and view."


class LanguageFeedback(Processor):
    """Asks for the edits of a rename before permissions see the call, so that they see all files.

    After an edit, the diagnostics that it caused are added to its result if a server runs.
    """

    def __init__(self, languages: SessionLanguages, find_hidden: Callable[[], Sequence[str]]):
        self._languages = languages
        self._find_hidden = find_hidden

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if pending.tool.spec.name == "lsp":
            return await self._prepare(run, pending)
        for access in pending.touches(run):
            if access.kind == "write" and access.target:
                await self._languages.note_before(access.target)
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if result.kind != "success" or not result.changes:
            return result
        found = await self._languages.find_new([change.path for change in result.changes])
        if not found:
            return result
        more = [f"<{len(found) - MAX_REPORTED} more>"] if len(found) > MAX_REPORTED else []
        shown = "\n".join((*found[:MAX_REPORTED], *more))
        text = f"{result.text}\n\nNew diagnostics since this change:\n{shown}"
        return msgspec.structs.replace(result, text=text)

    async def _prepare(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        if self._find_hidden():
            return ToolResult(text=HIDDEN, kind="failure")
        if pending.args["action"] != "rename":
            return pending
        try:
            query = read_query(run, pending)
            edits = await self._languages.plan_rename(query)
        except LanguageProblem as problem:
            return ToolResult(text=f"Nothing was renamed: {problem}", kind="failure")
        for edit in edits:
            await self._languages.note_before(edit.path)
        self._languages.planned[pending.call.id] = edits
        return pending


def read_query(run: Run, pending: PendingCall) -> LanguageQuery:
    args = pending.args
    if not args.get("path") or not args.get("new_name"):
        raise LanguageProblem("rename needs path, symbol and new_name; add them.")
    workspace = run.tool_context(pending.call.id).workspace
    return LanguageQuery(
        action="rename",
        path=workspace.resolve(args["path"]),
        line=args.get("line"),
        symbol=args.get("symbol", ""),
        new_name=args["new_name"],
    )
