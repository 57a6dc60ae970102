"""The `apply_patch` tool: changes several files by one patch, all of them or none."""

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import FileContent, StaleFile
from trimtab.tools.apply_patch.patch import FilePatch, PatchError, parse_patch
from trimtab.tools.description import describe
from trimtab.tools.diff import Hunk, unified
from trimtab.tools.files import fail, refuse_path, shown_contents

LETTERS = {"add": "A", "delete": "D", "update": "M"}
PREVIEWED = 8 * 1024 * 1024
Step = Callable[[], Awaitable[None]]


class PartlyDone(Exception):
    """A patch failed, and something it had changed by then cannot be taken back."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it is and as it will be."""

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
            return [Access(kind="none", mutates=False)]  # nothing of it will happen
        return [access for patch in patches for access in self._accesses(patch, ctx)]

    def _accesses(self, patch: FilePatch, ctx: ToolContext) -> list[Access]:
        path = ctx.workspace.resolve(patch.path)
        detail: dict[str, object] = {"fileName": path, "diff": "", "newFileContents": ""}
        if ctx.workspace.inspect(path).size <= PREVIEWED:
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
            one = plan(patch, ctx)
            if isinstance(one, ToolResult):
                return one
            planned.append(one)
        places = [place for one in planned for place in {one.path, one.target}]
        if twice := next((place for place in places if places.count(place) > 1), None):
            return fail(f"{twice} is named twice: put its hunks together. Nothing was changed.")
        try:
            await apply(planned, ctx)
        except (PartlyDone, OSError) as error:
            return explain(error)
        return summarize(planned, ctx)


def plan(patch: FilePatch, ctx: ToolContext) -> Planned | ToolResult:
    """What a patch makes of one file, or why it cannot."""
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
        before = ctx.workspace.load(path)
    except OSError as error:
        return fail(f"{patch.path}: {error.strerror or error}. Nothing was changed.")
    if patch.kind == "delete":
        return Planned(patch=patch, path=path, target=path, before=before)
    return plan_changed(patch, path, target, before)


def plan_changed(
    patch: FilePatch, path: str, target: str, before: FileContent
) -> Planned | ToolResult:
    from trimtab.tools.apply_patch.place import plan_update
    from trimtab.tools.splice import Mismatch

    made = plan_update(before.data, patch.hunks)
    if isinstance(made, Mismatch):
        return fail(f"{patch.path}: {made.text}", made.summary)
    data, changes = made
    return Planned(patch=patch, path=path, target=target, before=before, data=data, changes=changes)


def plan_added(patch: FilePatch, path: str) -> Planned | ToolResult:
    try:
        data = patch.text.encode()
    except UnicodeEncodeError:
        return fail("The patch contains half of a surrogate pair, which no file can hold.")
    hunk = Hunk(line=1, removed=(), added=patch.text.split("\n")[:-1])
    return Planned(patch=patch, path=path, target=path, data=data, changes=(hunk,))


async def apply(planned: Sequence[Planned], ctx: ToolContext) -> None:
    """Make all changes, deletions last; what was made is taken back when one fails."""
    workspace, undo = ctx.workspace, list[Step]()
    try:
        for one in sorted(planned, key=lambda one: one.patch.kind == "delete"):
            before = one.before
            if before is None:
                await workspace.write(one.path, one.data, new=True)
                undo.append(partial(workspace.remove, one.path))
            elif one.patch.kind == "delete":
                if workspace.load(one.path).data != before.data:
                    raise StaleFile
                await workspace.remove(one.path)
                undo.append(partial(workspace.write, one.path, before.data))
            else:
                await workspace.write(one.path, one.data, stamp=before.stamp)
                undo.append(partial(workspace.write, one.path, before.data))
                if one.target != one.path:
                    await workspace.move(one.path, one.target)
                    undo.append(partial(workspace.move, one.target, one.path))
    except BaseException as error:
        if left := [problem for step in reversed(undo) if (problem := await take_back(step))]:
            raise PartlyDone("; ".join(left)) from error
        raise


def explain(error: PartlyDone | OSError) -> ToolResult:
    """Why a patch was not applied, and what is left of it."""
    if isinstance(error, PartlyDone):
        return fail(f"The patch failed, and a part of it stays ({error}): look at its files.")
    if isinstance(error, StaleFile):
        return fail("A file was changed by another program just now: try again.")
    reason = error.strerror or str(error)
    return fail(f"{error.filename or 'A file'}: {reason}. Nothing was changed.", reason)


async def take_back(step: Step) -> str:
    """Do it, whatever happened to the other files; says why it cannot be done."""
    try:
        await step()
    except OSError as error:
        return f"{error.filename or 'a file'}: {error.strerror or error}"
    return ""


def summarize(planned: Sequence[Planned], ctx: ToolContext) -> ToolResult:
    changes: list[FileChange] = []
    for one in planned:
        counts = [hunk.counts() for hunk in one.changes]
        added, removed = (sum(pair[i] for pair in counts) for i in (0, 1))
        if one.patch.kind == "delete":
            removed = one.before.data.count(b"\n") if one.before else 0
        else:
            ctx.workspace.remember(one.target, one.data)
        changes.append(
            FileChange(
                path=one.target,
                lines_added=added,
                lines_removed=removed,
                created=one.patch.kind == "add",
            )
        )
    names = [f"{LETTERS[one.patch.kind]} {one.patch.move_to or one.patch.path}" for one in planned]
    return ToolResult(
        text="Success. Updated the following files:\n" + "\n".join(names),
        detail="".join(one.diff() for one in planned),
        changes=tuple(changes),
    )


def read_grammar() -> str:
    with open(os.path.join(os.path.dirname(__file__), "grammar.lark"), encoding="utf-8") as file:
        return file.read()


TOOL = ApplyPatch()
