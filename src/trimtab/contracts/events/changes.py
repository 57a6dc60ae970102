"""Events about the workspace that only Trimtab writes: what changed in it, and why."""

from trimtab.contracts.changes import Change
from trimtab.contracts.events.envelope import EventData


class WorkspaceChanged(EventData, type="trimtab.workspace_changed"):
    """Files that became something else, and the reason: enough to take it back.

    `reason` is tool, shell, custom-tool, background (a command that goes on was running),
    interrupted (the session was killed around then), person (anybody but this session), undo, redo
    or rewind. `detail` is the tool's name or the command.
    A long list is in the blob `list_digest`, and `count` says how long it is. `undoes` names the
    events that an undo or redo took back; `partial` the paths for which it did so only in part.
    """

    reason: str
    count: int
    changes: list[Change] = []
    tool_call_id: str | None = None
    detail: str | None = None
    list_digest: str | None = None
    undoes: list[str] | None = None
    partial: list[str] | None = None


class SnapshotLimited(EventData, type="trimtab.snapshot_limited"):
    """Not everything a command may change could be brought back, and why."""

    root: str
    reason: str
    files: int = 0
    uncovered: int = 0


class Checkpoint(EventData, type="trimtab.checkpoint"):
    """The state of a git worktree was kept as a commit on a ref of ours."""

    ref: str
    commit: str
    turn: int
    at: str


class WorktreeUsed(EventData, type="trimtab.worktree"):
    """The session works in a git worktree of its own; `commit` is where it began."""

    path: str
    branch: str
    repository: str
    commit: str
    created: bool = False
