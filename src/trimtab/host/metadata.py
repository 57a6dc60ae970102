"""Metadata of a session beside its log: worktree, repository, and the details of each request.

None of it is in `events.jsonl`. What the log also tells can be folded from it again; the facts of
the moment (branch, commits, instructions of the mode) are only here.
"""

import os
from contextlib import suppress
from typing import Literal

import msgspec

from trimtab.config.files import read_regular, write_new_file
from trimtab.contracts.json_text import decode_json, indent_json
from trimtab.session.folder import SessionFolder

NAME = "host.json"


class ModeInstructions(msgspec.Struct, frozen=True, rename="camel"):
    """The custom agent whose instructions a request was answered with."""

    name: str
    content: str


class CheckpointRefs(msgspec.Struct, rename="camel", omit_defaults=True):
    """The refs of the worktree commits at the start and end of a request."""

    start: str = ""
    end: str = ""


class RequestDetails(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A prompt of a person or client, and the work on it.

    `steers` names the request that was being answered when this one was sent to it. `tool_calls`
    maps the ids of calls, also those of sub-agents, to the names of their tools. A request has
    `failed` if it ended with an `error`; it is `interrupted` if somebody aborted it, or if its
    process ended while it ran.
    """

    prompt: str
    state: Literal["queued", "running", "completed", "failed", "withdrawn", "interrupted"] = (
        "queued"
    )
    error: str = ""
    turn: int = 0
    steers: str = ""
    queued: str = ""
    started: str = ""
    ended: str = ""
    mode: str = ""
    model: str = ""
    mode_instructions: ModeInstructions | None = None
    tool_calls: dict[str, str] = {}
    checkpoints: CheckpointRefs = msgspec.field(default_factory=CheckpointRefs)
    branch: str = ""
    commit_before: str = ""
    commit_after: str = ""
    pull_requests: list[str] = []
    files_changed_by_others: int = 0


class WorktreeProperties(msgspec.Struct, frozen=True, rename="camel"):
    """The session's own worktree; `commit` is the one its branch began at."""

    path: str
    branch: str
    repository: str
    commit: str


class RepositoryProperties(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The repository of the session's folder, as it was at the last request."""

    root: str
    branch: str = ""
    commit: str = ""


class SessionMetadata(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """The file of a session; requests by the id of their prompt, in order."""

    version: Literal[1] = 1
    session_id: str
    cwd: str = ""
    folders: list[str] = []
    repository: RepositoryProperties | None = None
    worktree: WorktreeProperties | None = None
    requests: dict[str, RequestDetails] = {}


def read_metadata(folder: SessionFolder) -> SessionMetadata | None:
    """Return the metadata of a session; None if there is none that can be read."""
    try:
        data = read_regular(os.path.join(folder.path, NAME))
        return decode_json(data, SessionMetadata)
    except (OSError, msgspec.DecodeError):
        return None


def write_metadata(folder: SessionFolder, metadata: SessionMetadata) -> None:
    """Replace the file in one step. It need not survive a power cut. Raises `OSError`."""
    path = os.path.join(folder.path, NAME)
    temporary = f"{path}.{os.getpid()}.tmp"
    data = indent_json(metadata) + b"\n"
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        write_new_file(temporary, data, durable=False)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
