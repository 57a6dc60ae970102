"""Files that clients keep in the folder of a session, or the session in a client's file system."""

import asyncio
import os
import shutil
import stat
from collections.abc import Sequence
from typing import Literal

import msgspec

from trimtab.config.files import make_private_dir, replace_file
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionWorkspaceFileChanged
from trimtab.contracts.ids import new_id
from trimtab.session.checkpoints import (
    add_checkpoint,
    keep_checkpoints,
    list_checkpoints,
    read_titles,
)
from trimtab.session.folder import SessionFolder
from trimtab.transports.rpc.diffs import diff_workspace
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.mirror import FileSystem

methods = Methods()
MAX_LISTED = 10_000
MAX_TITLE = 80
OBJECTIVE = "autopilot-objective.json"

WORKSPACE_FIELDS = (
    "cwd",
    "git_root",
    "branch",
    "repository",
    "host_type",
    "name",
    "user_named",
    "created_at",
    "updated_at",
)
OWN_FIELDS = ("client_name", "summary_count")
"""Fields that only the workspace's own methods report."""


class Path(msgspec.Struct):
    path: str


class CreateFile(msgspec.Struct):
    path: str
    content: str


class SavePaste(msgspec.Struct):
    content: str


@methods.on("session.workspaces.getWorkspace")
async def get_workspace(call: Call, params: Nothing) -> JsonObject:
    folder = call.session.live.folder
    return {"workspace": describe_workspace(folder, OWN_FIELDS), "path": folder.path}


def describe_workspace(folder: SessionFolder, more: Sequence[str] = ()) -> JsonObject:
    """Return what `workspace.yaml` says of a session, in its own words."""
    metadata = folder.read_metadata()
    fields = (*WORKSPACE_FIELDS, *more)
    found = {name: metadata[name] for name in fields if metadata.get(name) is not None}
    return {"id": folder.id, **found}


@methods.on("session.workspaces.ensure")
async def ensure(call: Call, params: Nothing) -> JsonObject:
    make_private_dir(call.session.live.folder.files)
    return await get_workspace(call, params)


@methods.on("session.workspaces.listFiles")
async def list_files(call: Call, params: Nothing) -> JsonObject:
    return {"files": _list(call.session.live.folder.files)}


@methods.on("session.workspaces.readFile", Path)
async def read_file(call: Call, params: Path) -> JsonObject:
    return {"content": _read(_inside(call, params.path))}


@methods.on("session.workspaces.createFile", CreateFile)
async def create_file(call: Call, params: CreateFile) -> None:
    operation = _write(_inside(call, params.path), params.content)
    call.session.live.emit(SessionWorkspaceFileChanged(path=params.path, operation=operation))


@methods.on("session.workspaces.createDirectory", Path)
async def create_directory(call: Call, params: Path) -> None:
    make_private_dir(_inside(call, params.path))


@methods.on("session.workspaces.removePath", Path)
async def remove_path(call: Call, params: Path) -> None:
    """Remove a file or folder. Clients know no event for that."""
    _remove(_inside(call, params.path))


@methods.on("session.workspaces.statFile", Path)
async def stat_file(call: Call, params: Path) -> JsonObject:
    found = os.stat(_inside(call, params.path))
    return {
        "isFile": stat.S_ISREG(found.st_mode),
        "isDirectory": stat.S_ISDIR(found.st_mode),
        "size": found.st_size,
        "mtimeMs": found.st_mtime_ns / 1e6,
        "birthtimeMs": found.st_ctime_ns / 1e6,
    }


class Rename(msgspec.Struct):
    source: str
    destination: str


@methods.on("session.workspaces.renamePath", Rename)
async def rename_path(call: Call, params: Rename) -> None:
    """Rename a file or folder; an existing file is replaced."""
    source, target = _inside(call, params.source), _inside(call, params.destination)
    make_private_dir(os.path.dirname(target))
    os.replace(source, target)


class Metadata(msgspec.Struct):
    context: JsonObject | None = None
    name: str | None = None


CONTEXT_FIELDS = {
    "cwd": "cwd",
    "gitRoot": "git_root",
    "branch": "branch",
    "repository": "repository",
    "hostType": "host_type",
}


@methods.on("session.workspaces.updateMetadata", Metadata)
async def update_metadata(call: Call, params: Metadata) -> JsonObject:
    """Record another context of the session, and a name unless a person has named it.

    The session goes on to work in its folder; `session.metadata.setWorkingDirectory` changes that.
    """
    folder = call.session.live.folder
    context = params.context or {}
    fields = {own: context[name] for name, own in CONTEXT_FIELDS.items() if name in context}
    if params.name and not folder.read_metadata().get("user_named"):
        fields["name"] = params.name
    folder.update_metadata(**fields)
    return await get_workspace(call, Nothing())


class Content(msgspec.Struct):
    content: str


def _objective(call: Call) -> str:
    return os.path.join(call.session.live.folder.path, OBJECTIVE)


@methods.on("session.workspaces.readAutopilotObjective")
async def read_objective(call: Call, params: Nothing) -> JsonObject:
    try:
        return {"content": _read(_objective(call))}
    except FileNotFoundError:
        return {"content": None}


@methods.on("session.workspaces.writeAutopilotObjective", Content)
async def write_objective(call: Call, params: Content) -> JsonObject:
    return {"operation": _write(_objective(call), params.content)}


@methods.on("session.workspaces.autopilotObjectiveExists")
async def has_objective(call: Call, params: Nothing) -> JsonObject:
    return {"exists": (await read_objective(call, params))["content"] is not None}


@methods.on("session.workspaces.deleteAutopilotObjective")
async def delete_objective(call: Call, params: Nothing) -> JsonObject:
    try:
        os.unlink(_objective(call))
    except FileNotFoundError:
        return {"deleted": False}
    return {"deleted": True}


@methods.on("session.workspaces.saveLargePaste", SavePaste)
async def save_paste(call: Call, params: SavePaste) -> JsonObject:
    name = f"paste-{new_id()[:8]}.txt"
    data = params.content.encode("utf-8", "replace")
    await create_file(call, CreateFile(path=name, content=params.content))
    path = _inside(call, name)
    return {"saved": {"filename": name, "filePath": path, "sizeBytes": len(data)}}


@methods.on("session.workspaces.listCheckpoints")
async def list_all_checkpoints(call: Call, params: Nothing) -> JsonObject:
    folder = call.session.live.folder.checkpoints
    titles = read_titles(folder)
    return {
        "checkpoints": [
            {"number": number, "title": titles.get(name, name), "filename": name}
            for number, name in enumerate(list_checkpoints(folder), 1)
        ]
    }


class Summary(msgspec.Struct):
    title: str
    content: str


@methods.on("session.workspaces.addSummary", Summary)
async def add_summary(call: Call, params: Summary) -> JsonObject:
    """Keep a summary of the conversation as a checkpoint."""
    folder = call.session.live.folder
    title = " ".join(params.title.split())[:MAX_TITLE] or "Checkpoint"
    number, path = add_checkpoint(folder.checkpoints, title, params.content)
    folder.update_metadata(summary_count=len(list_checkpoints(folder.checkpoints)))
    summary = {"checkpointNumber": number, "checkpointPath": path, "checkpointTitle": title}
    return {"summary": summary, "workspace": describe_workspace(folder, OWN_FIELDS)}


class Keep(msgspec.Struct, rename="camel"):
    keep_count: int


@methods.on("session.workspaces.truncateSummaries", Keep)
async def truncate_summaries(call: Call, params: Keep) -> JsonObject:
    """Remove all checkpoints but the oldest ones."""
    folder = call.session.live.folder
    folder.update_metadata(summary_count=keep_checkpoints(folder.checkpoints, params.keep_count))
    return await get_workspace(call, Nothing())


class Number(msgspec.Struct):
    number: int


@methods.on("session.workspaces.readCheckpoint", Number)
async def read_checkpoint(call: Call, params: Number) -> JsonObject:
    folder = call.session.live.folder.checkpoints
    names = list_checkpoints(folder)
    if not 1 <= params.number <= len(names):
        return {"status": "missing", "content": None}
    return {"status": "ok", "content": _read(f"{folder}/{names[params.number - 1]}")}


@methods.on("sessionFs.setProvider", FileSystem)
async def set_provider(call: Call, params: FileSystem) -> JsonObject:
    """Keep the files of sessions that this client opens in its file system, too."""
    call.peer.file_system = params
    return {"success": True}


class Diff(msgspec.Struct, rename="camel"):
    mode: Literal["session", "unstaged", "branch"]
    ignore_whitespace: bool = False


@methods.on("session.workspaces.diff", Diff)
async def diff(call: Call, params: Diff) -> JsonObject:
    """Return what differs in the session's folder: by session, working tree or branch."""
    live = call.session.live
    options = ("--ignore-all-space",) if params.ignore_whitespace else ()
    cwd = live.controls.options.cwd
    return await asyncio.to_thread(diff_workspace, live.history, cwd, params.mode, options)


def _inside(call: Call, path: str) -> str:
    """Return a path in the session's folder for files; raise if it is outside."""
    root = os.path.realpath(call.session.live.folder.files)
    target = os.path.realpath(os.path.join(root, path))
    if not target.startswith(root + os.sep):
        raise UsageError(
            f"Path must be within the workspace files directory: {path!r}; give a relative path."
        )
    return target


def _list(root: str) -> list[str]:
    """Return the files below a folder, as relative paths."""
    found: list[str] = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
        if len(found) >= MAX_LISTED:
            break
    return sorted(found)[:MAX_LISTED]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, content: str) -> str:
    """Write a file; return `create` or `update`."""
    known = os.path.exists(path)
    make_private_dir(os.path.dirname(path))
    replace_file(path, content.encode("utf-8", "replace"))
    return "update" if known else "create"


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
