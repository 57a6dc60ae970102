"""Events about changes to the workspace, which only Trimtab writes."""

from trimtab.contracts.changes import Change
from trimtab.contracts.events.envelope import EventData


class WorkspaceChanged(EventData, type="trimtab.workspace_changed"):
    """Files changed, for this reason; holds everything needed to undo the changes.

    `reason` is tool, shell, custom-tool, background (a background command was running),
    interrupted (the session was killed around then), person (anybody but this session), undo, redo
    or rewind. `detail` is the tool's name or the command. A long list is stored in the blob
    `list_digest`, and `count` is its length. `undoes` names the events that an undo or redo
    reverted; `partial` the paths that it reverted only in part.
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
    """Not everything that a command may change can be restored, for this reason."""

    root: str
    reason: str
    files: int = 0
    uncovered: int = 0


class Checkpoint(EventData, type="trimtab.checkpoint"):
    """The state of a git worktree was saved as a commit on a ref of ours."""

    ref: str
    commit: str
    turn: int
    at: str


class WorktreeUsed(EventData, type="trimtab.worktree"):
    """The session works in a git worktree of its own, which began at `commit`."""

    path: str
    branch: str
    repository: str
    commit: str
    created: bool = False
