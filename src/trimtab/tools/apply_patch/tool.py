"""The `apply_patch` tool: applies a patch to several files, all of them or none."""

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import FileContent, StaleFile
from trimtab.tools.apply_patch.patch import FilePatch, PatchError, parse_patch
from trimtab.tools.apply_patch.place import plan_update
from trimtab.tools.description import describe
from trimtab.tools.diff import Hunk, unified
from trimtab.tools.files import fail, refuse_path, shown_contents
from trimtab.tools.splice import Mismatch

LETTERS = {"add": "A", "delete": "D", "update": "M"}
MAX_PREVIEWED = 8 * 1024 * 1024
Step = Callable[[], Awaitable[None]]


class PartlyApplied(Exception):
    """Raised when a patch failed and a change that it had made cannot be reversed."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A file before and after the patch."""

    patch: FilePatch
    path: str
    target: str
    before: FileContent | None = None
    data: bytes = b""
    changes: Sequence[Hunk] = ()

    def diff(self) -> str:
        created = self.patch.kind == "add"
        return "".join(unified(self.target, hunk, created=created) for hunk in self.changes)


class ApplyPatch:
    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="apply_patch",
            description=describe(__file__),
            format={"type": "grammar", "syntax": "lark", "definition": read_grammar()},
        )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        try:
            patches = parse_patch(args["input"])
        except PatchError:
            return [Access(kind="none", mutates=False)]  # it will be refused
        return [access for patch in patches for access in self._accesses(patch, ctx)]

    def _accesses(self, patch: FilePatch, ctx: ToolContext) -> list[Access]:
        path = ctx.workspace.resolve(patch.path)
        detail: dict[str, object] = {"fileName": path, "diff": "", "newFileContents": ""}
        if ctx.workspace.inspect(path).size <= MAX_PREVIEWED:
            planned = plan(patch, ctx)
            if isinstance(planned, Planned):
                contents = shown_contents(planned.data)
                detail |= {"diff": planned.diff(), "newFileContents": contents}
        deletes = patch.kind == "delete"
        intention = f"{'Delete' if deletes else 'Change'} file {patch.path}"
        first = Access(
            kind="write",
            target=path,
            intention=intention,
            detail=detail | ({"deletes": True} if deletes else {}),
        )
        if not patch.move_to:
            return [first]
        target = ctx.workspace.resolve(patch.move_to)
        moved = msgspec.structs.replace(
            first, target=target, intention=f"Move {patch.path} there", detail={"fileName": target}
        )
        return [first, moved]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        try:
            patches = parse_patch(args["input"])
        except PatchError as error:
            return fail(f"{error} Nothing was changed.", "Malformed patch")
        planned: list[Planned] = []
        for patch in patches:
            result = plan(patch, ctx, await read_before(patch, ctx))
            if isinstance(result, ToolResult):
                return result
            planned.append(result)
        paths = [path for file in planned for path in {file.path, file.target}]
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            return fail(f"{twice} is named twice: merge its hunks. Nothing was changed.")
        try:
            await apply(planned, ctx)
        except (PartlyApplied, OSError) as error:
            return explain(error)
        return summarize(planned, ctx)


async def read_before(patch: FilePatch, ctx: ToolContext) -> FileContent | None:
    """Return the file that a patch changes, if it can be read."""
    path = ctx.workspace.resolve(patch.path)
    if patch.kind == "add" or ctx.workspace.inspect(path).kind != "file":
        return None
    try:
        return await ctx.workspace.read(path)
    except OSError:
        return None


def plan(
    patch: FilePatch, ctx: ToolContext, before: FileContent | None = None
) -> Planned | ToolResult:
    """Return the planned change of a file, or a failure."""
    path = ctx.workspace.resolve(patch.path)
    target = ctx.workspace.resolve(patch.move_to) if patch.move_to else path
    if patch.kind == "add" or target != path:
        if os.path.lexists(target):
            return fail(f"{patch.move_to or patch.path} exists already. Nothing was changed.")
        if patch.kind == "add":
            return plan_added(patch, path)
    if refusal := refuse_path(patch.path, ctx.workspace.inspect(path)):
        return refusal
    try:
        before = before or ctx.workspace.load(path)
    except OSError as error:
        return fail(f"{patch.path}: {error.strerror or error}. Nothing was changed.")
    if patch.kind == "delete":
        return Planned(patch=patch, path=path, target=path, before=before)
    return plan_changed(patch, path, target, before)


def plan_changed(
    patch: FilePatch, path: str, target: str, before: FileContent
) -> Planned | ToolResult:
    made = plan_update(before.data, patch.hunks)
    if isinstance(made, Mismatch):
        return fail(f"{patch.path}: {made.text}", made.summary)
    data, changes = made
    return Planned(patch=patch, path=path, target=target, before=before, data=data, changes=changes)


def plan_added(patch: FilePatch, path: str) -> Planned | ToolResult:
    try:
        data = patch.text.encode()
    except UnicodeEncodeError:
        return fail("The patch contains half of a surrogate pair, which no file can contain.")
    hunk = Hunk(line=1, removed=(), added=patch.text.split("\n")[:-1])
    return Planned(patch=patch, path=path, target=path, data=data, changes=(hunk,))


async def apply(planned: Sequence[Planned], ctx: ToolContext) -> None:
    """Make all changes, deletions last; reverse those made if one fails."""
    workspace, undo = ctx.workspace, list[Step]()
    try:
        for file in sorted(planned, key=lambda file: file.patch.kind == "delete"):
            before = file.before
            if before is None:
                await workspace.write(file.path, file.data, new=True)
                undo.append(partial(workspace.remove, file.path))
            elif file.patch.kind == "delete":
                if (await workspace.read(file.path)).data != before.data:
                    raise StaleFile
                await workspace.remove(file.path)
                undo.append(partial(workspace.write, file.path, before.data))
            else:
                await workspace.write(file.path, file.data, stamp=before.stamp)
                undo.append(partial(workspace.write, file.path, before.data))
                if file.target != file.path:
                    await workspace.move(file.path, file.target)
                    undo.append(partial(workspace.move, file.target, file.path))
    except BaseException as error:
        if left := [problem for step in reversed(undo) if (problem := await reverse(step))]:
            raise PartlyApplied("; ".join(left)) from error
        raise


def explain(error: PartlyApplied | OSError) -> ToolResult:
    """Return a failure that says why a patch was not applied, and what remains of it."""
    if isinstance(error, PartlyApplied):
        return fail(f"The patch failed, and a part of it remains ({error}): check its files.")
    if isinstance(error, StaleFile):
        return fail("A file was changed by another program just now: try again.")
    reason = error.strerror or str(error)
    return fail(f"{error.filename or 'A file'}: {reason}. Nothing was changed.", reason)


async def reverse(step: Step) -> str:
    """Reverse a change; return why it failed, or ""."""
    try:
        await step()
    except OSError as error:
        return f"{error.filename or 'a file'}: {error.strerror or error}"
    return ""


def summarize(planned: Sequence[Planned], ctx: ToolContext) -> ToolResult:
    changes: list[FileChange] = []
    for file in planned:
        counts = [hunk.counts() for hunk in file.changes]
        added, removed = (sum(pair[index] for pair in counts) for index in (0, 1))
        if file.patch.kind == "delete":
            removed = file.before.data.count(b"\n") if file.before else 0
        else:
            ctx.workspace.remember(file.target, file.data)
        changes.append(
            FileChange(
                path=file.target,
                lines_added=added,
                lines_removed=removed,
                created=file.patch.kind == "add",
            )
        )
    patches = [file.patch for file in planned]
    names = [f"{LETTERS[patch.kind]} {patch.move_to or patch.path}" for patch in patches]
    return ToolResult(
        text="Success. Updated the following files:\n" + "\n".join(names),
        detail="".join(file.diff() for file in planned),
        changes=tuple(changes),
    )


def read_grammar() -> str:
    with open(os.path.join(os.path.dirname(__file__), "grammar.lark"), encoding="utf-8") as file:
        return file.read()


TOOL = ApplyPatch()
