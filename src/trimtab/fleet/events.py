"""The events of a fleet. Its log holds them in order; its state is folded from them.

An event is on the disk before its effect begins, so that a fleet which was killed knows what may
have happened.
"""

import json
from typing import Literal

import msgspec

from trimtab.fleet.plan import Todo

Kind = Literal["plan", "work", "repair"]


class Spent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens and USD; as a limit, None means that there is none."""

    tokens: int | None = None
    usd: float | None = None


class CheckRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A check that ran. `output` is the end of what it printed."""

    command: str
    passed: bool
    exit_code: int | None
    output: str = ""
    seconds: float = 0.0


class FleetEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    timestamp: str = ""


class Started(FleetEvent, frozen=True, kw_only=True, tag="fleet.started"):
    """`target` is the person's branch, None if HEAD is detached; `subfolder` is below the top.

    `todos` is empty if a planning run is to write them.
    """

    id: str
    goal: str
    checkout: str
    repository: str
    subfolder: str
    base: str
    target: str | None
    branch: str
    folder: str
    workers: int
    checks: tuple[str, ...] = ()
    limits: Spent = Spent()
    deadline: float | None = None
    flags: tuple[str, ...] = ()
    land: bool = False
    todos: tuple[Todo, ...] = ()
    notes: tuple[str, ...] = ()


class Planned(FleetEvent, frozen=True, kw_only=True, tag="fleet.planned"):
    """The todos that the planning run wrote."""

    todos: tuple[Todo, ...]


class Noted(FleetEvent, frozen=True, kw_only=True, tag="fleet.note"):
    message: str


class WorkerStarted(FleetEvent, frozen=True, kw_only=True, tag="fleet.worker_started"):
    job: int
    kind: Kind
    todo: str | None
    session: str
    start: str
    slice: Spent = Spent()


class WorkerEnded(FleetEvent, frozen=True, kw_only=True, tag="fleet.worker_ended"):
    """`interrupted` if the coordinator ended it or died; such an attempt has not failed."""

    job: int
    exit_code: int | None
    message: str = ""
    spent: Spent = Spent()
    interrupted: bool = False


class WorkCommitted(FleetEvent, frozen=True, kw_only=True, tag="fleet.committed"):
    """`commit` is None if the worker changed nothing. Work that `failed` is kept, not merged."""

    todo: str
    commit: str | None
    failed: str = ""


class MergeStarted(FleetEvent, frozen=True, kw_only=True, tag="fleet.merge_started"):
    todo: str
    tip: str
    commit: str


class ConflictFound(FleetEvent, frozen=True, kw_only=True, tag="fleet.conflict"):
    """`others` are merged todos that changed the same files."""

    todo: str
    files: tuple[str, ...]
    others: tuple[str, ...] = ()


class Checked(FleetEvent, frozen=True, kw_only=True, tag="fleet.checked"):
    """Checks ran on a commit: the base if `todo` is None, else a merge that is not kept yet."""

    todo: str | None
    commit: str
    checks: tuple[CheckRun, ...]


class MergeKept(FleetEvent, frozen=True, kw_only=True, tag="fleet.merged"):
    """The branch moves to `commit`. `kept` says for each file in conflict which side it holds."""

    todo: str
    commit: str
    kept: dict[str, str] = {}


class MergeTakenBack(FleetEvent, frozen=True, kw_only=True, tag="fleet.taken_back"):
    todo: str
    reason: str
    files: tuple[str, ...] = ()
    checks: tuple[CheckRun, ...] = ()


class Stopped(FleetEvent, frozen=True, kw_only=True, tag="fleet.stopped"):
    """The fleet ended early and can be resumed."""

    reason: str
    exit_code: int


class Resumed(FleetEvent, frozen=True, kw_only=True, tag="fleet.resumed"):
    limits: Spent = Spent()
    deadline: float | None = None


class Finished(FleetEvent, frozen=True, kw_only=True, tag="fleet.finished"):
    pass


class Landing(FleetEvent, frozen=True, kw_only=True, tag="fleet.landing"):
    """The person's branch in `checkout` is about to move."""

    checkout: str
    branch: str
    before: str
    after: str


class Landed(FleetEvent, frozen=True, kw_only=True, tag="fleet.landed"):
    """`refused` says why the person's branch was not moved."""

    refused: str = ""


class Undone(FleetEvent, frozen=True, kw_only=True, tag="fleet.undone"):
    kept: tuple[str, ...] = ()


AnyEvent = (
    Started
    | Planned
    | Noted
    | WorkerStarted
    | WorkerEnded
    | WorkCommitted
    | MergeStarted
    | ConflictFound
    | Checked
    | MergeKept
    | MergeTakenBack
    | Stopped
    | Resumed
    | Finished
    | Landing
    | Landed
    | Undone
)

_decoder = msgspec.json.Decoder(AnyEvent)


def decode_event(line: bytes) -> AnyEvent:
    """Decode a line. Raises `ValueError` if it is not an event of a fleet."""
    try:
        event: AnyEvent = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        event = msgspec.convert(json.loads(line), AnyEvent)
    return event
