"""The state of a fleet, folded from its events without any effect."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from trimtab.contracts.errors import ExitCode
from trimtab.fleet import events
from trimtab.fleet.events import AnyEvent, CheckRun, Kind, Spent
from trimtab.fleet.plan import Todo

Status = Literal["pending", "running", "ended", "done", "merging", "merged", "unchanged", "failed"]
GOOD = ("merged", "unchanged")
FAILURES = 2
"""The number of failed attempts after which a todo has failed."""
FINAL = (ExitCode.USAGE, ExitCode.DENIED, ExitCode.AUTHENTICATION)
"""Exit codes of workers that another attempt would end with, too."""


class TodoState(msgspec.Struct, frozen=True, kw_only=True):
    """A todo and its work. `ended`: the worker has ended, and its work is not committed yet."""

    todo: Todo
    status: Status = "pending"
    attempts: int = 0
    failures: int = 0
    start: str = ""
    """The commit that the first attempt began at."""
    starved: Spent | None = None
    """The budget that was too small for it; only a larger one is worth another attempt."""
    commit: str | None = None
    reason: str = ""
    files: tuple[str, ...] = ()
    checks: tuple[CheckRun, ...] = ()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A process at work."""

    number: int
    kind: Kind
    todo: str | None
    session: str
    start: str
    slice: Spent


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    todo: str
    files: tuple[str, ...]
    others: tuple[str, ...]
    resolved: bool = False
    kept: dict[str, str] = {}


class FleetState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a fleet knows about itself. `green` is each check's outcome at `tip`."""

    started: events.Started | None = None
    todos: dict[str, TodoState] = {}
    jobs: dict[int, Job] = {}
    last_job: int = 0
    sessions: tuple[str, ...] = ()
    tip: str = ""
    merging: str | None = None
    checked: dict[str, tuple[CheckRun, ...]] = {}
    """Commit → the checks that ran on it: the base, the tip, and the merge that is under way."""
    merged: tuple[str, ...] = ()
    """The merged todos in order."""
    conflicts: dict[str, Conflict] = {}
    limits: Spent = Spent()
    deadline: float | None = None
    spent: Spent = Spent(tokens=0, usd=0.0)
    notes: tuple[str, ...] = ()
    stopped: events.Stopped | None = None
    finished: bool = False
    landing: events.Landing | None = None
    landed: events.Landed | None = None
    undone: bool = False

    @property
    def over(self) -> bool:
        return self.finished or self.stopped is not None

    @property
    def checks(self) -> tuple[str, ...]:
        return self.started.checks if self.started else ()

    @property
    def tip_checks(self) -> tuple[CheckRun, ...]:
        return self.checked.get(self.tip, ())

    @property
    def green(self) -> dict[str, bool]:
        return {check.command: check.passed for check in self.tip_checks}

    @property
    def remaining(self) -> Spent:
        """Budget that is neither spent nor given to a worker."""
        given = [job.slice for job in self.jobs.values()]
        tokens = self.limits.tokens
        if tokens is not None:
            tokens -= (self.spent.tokens or 0) + sum(each.tokens or 0 for each in given)
        usd = self.limits.usd
        if usd is not None:
            usd -= (self.spent.usd or 0.0) + sum(each.usd or 0.0 for each in given)
        return Spent(tokens=tokens, usd=usd)

    @property
    def blocked(self) -> dict[str, str]:
        """Blocked todos, each with the todo that it waits for in vain."""
        found: dict[str, str] = {}
        for name, state in self.todos.items():  # each follows what it depends on
            if state.status == "pending":
                for needed in state.todo.depends_on:
                    if self.todos[needed].status == "failed" or needed in found:
                        found[name] = needed
                        break
        return found

    @property
    def exit_code(self) -> int:
        if self.stopped is not None:
            return self.stopped.exit_code
        complete = all(state.status in GOOD for state in self.todos.values()) and self.todos
        landed = self.landed is None or not self.landed.refused
        good = complete and all(self.green.values()) and landed
        return ExitCode.SUCCESS if good else ExitCode.INCOMPLETE


def fold(log: Iterable[AnyEvent]) -> FleetState:
    state = FleetState()
    for event in log:
        state = apply(state, event)
    return state


def apply(state: FleetState, event: AnyEvent) -> FleetState:
    """Return the state after an event."""
    return _RULES[type(event)](state, event)


def _start(state: FleetState, event: events.Started) -> FleetState:
    return replace(
        state,
        started=event,
        todos={todo.id: TodoState(todo=todo) for todo in event.todos},
        tip=event.base,
        limits=event.limits,
        deadline=event.deadline,
        notes=event.notes,
    )


def _plan(state: FleetState, event: events.Planned) -> FleetState:
    return replace(state, todos={todo.id: TodoState(todo=todo) for todo in event.todos})


def _note(state: FleetState, event: events.Noted) -> FleetState:
    return replace(state, notes=(*state.notes, event.message))


def _start_worker(state: FleetState, event: events.WorkerStarted) -> FleetState:
    job = Job(
        number=event.job,
        kind=event.kind,
        todo=event.todo,
        session=event.session,
        start=event.start,
        slice=event.slice,
    )
    state = replace(
        state,
        jobs={**state.jobs, event.job: job},
        last_job=event.job,
        sessions=(*state.sessions, event.session),
    )
    if event.kind != "work" or event.todo is None:
        return state
    before = state.todos[event.todo]
    return _set(
        state,
        event.todo,
        status="running",
        attempts=before.attempts + 1,
        start=before.start or event.start,
    )


def _end_worker(state: FleetState, event: events.WorkerEnded) -> FleetState:
    job = state.jobs[event.job]
    spent = Spent(
        tokens=(state.spent.tokens or 0) + (event.spent.tokens or 0),
        usd=(state.spent.usd or 0.0) + (event.spent.usd or 0.0),
    )
    state = replace(
        state,
        jobs={number: each for number, each in state.jobs.items() if number != event.job},
        spent=spent,
    )
    if job.kind != "work" or job.todo is None:
        return state
    if event.interrupted:
        return _set(state, job.todo, status="pending")
    if event.exit_code == ExitCode.SUCCESS:
        return _set(state, job.todo, status="ended", reason="")
    if event.exit_code == ExitCode.BUDGET and job.slice != Spent():
        return _set(state, job.todo, status="pending", starved=job.slice, reason=event.message)
    failures = state.todos[job.todo].failures + 1
    if event.exit_code in FINAL:
        failures = FAILURES
    status = "ended" if failures >= FAILURES else "pending"
    return _set(state, job.todo, status=status, failures=failures, reason=event.message)


def _commit(state: FleetState, event: events.WorkCommitted) -> FleetState:
    if event.failed:
        return _set(state, event.todo, status="failed", commit=event.commit, reason=event.failed)
    if event.commit is None:
        return _set(state, event.todo, status="unchanged")
    return _set(state, event.todo, status="done", commit=event.commit)


def _start_merge(state: FleetState, event: events.MergeStarted) -> FleetState:
    return replace(_set(state, event.todo, status="merging"), merging=event.todo)


def _conflict(state: FleetState, event: events.ConflictFound) -> FleetState:
    conflict = Conflict(todo=event.todo, files=event.files, others=event.others)
    return replace(state, conflicts={**state.conflicts, event.todo: conflict})


def _check(state: FleetState, event: events.Checked) -> FleetState:
    return replace(state, checked={**state.checked, event.commit: event.checks})


def _keep(state: FleetState, event: events.MergeKept) -> FleetState:
    state = _set(state, event.todo, status="merged")
    conflicts = dict(state.conflicts)
    if event.todo in conflicts:
        conflicts[event.todo] = replace(conflicts[event.todo], resolved=True, kept=event.kept)
    return replace(
        state,
        tip=event.commit,
        merging=None,
        merged=(*state.merged, event.todo),
        conflicts=conflicts,
        checked={event.commit: state.checked.get(event.commit, ())},
    )


def _take_back(state: FleetState, event: events.MergeTakenBack) -> FleetState:
    state = _set(
        state,
        event.todo,
        status="failed",
        reason=event.reason,
        files=event.files,
        checks=event.checks,
    )
    kept = {commit: runs for commit, runs in state.checked.items() if commit == state.tip}
    return replace(state, merging=None, checked=kept)


def _stop(state: FleetState, event: events.Stopped) -> FleetState:
    return replace(state, stopped=event)


def _resume(state: FleetState, event: events.Resumed) -> FleetState:
    merging = state.merging
    if merging is not None:
        state = _set(state, merging, status="done")
    limits = Spent(
        tokens=state.limits.tokens if event.limits.tokens is None else event.limits.tokens,
        usd=state.limits.usd if event.limits.usd is None else event.limits.usd,
    )
    return replace(
        state,
        todos={name: replace(each, starved=None) for name, each in state.todos.items()},
        stopped=None,
        merging=None,
        limits=limits,
        deadline=event.deadline,
        conflicts={name: each for name, each in state.conflicts.items() if name != merging},
    )


def _finish(state: FleetState, _: events.Finished) -> FleetState:
    return replace(state, finished=True)


def _land(state: FleetState, event: events.Landing) -> FleetState:
    return replace(state, landing=event)


def _landed(state: FleetState, event: events.Landed) -> FleetState:
    return replace(state, landed=event)


def _undo(state: FleetState, _: events.Undone) -> FleetState:
    return replace(state, undone=True)


def _set(state: FleetState, todo: str, **changes: Any) -> FleetState:
    return replace(state, todos={**state.todos, todo: replace(state.todos[todo], **changes)})


_RULES: dict[type[events.FleetEvent], Callable[[FleetState, Any], FleetState]] = {
    events.Started: _start,
    events.Planned: _plan,
    events.Noted: _note,
    events.WorkerStarted: _start_worker,
    events.WorkerEnded: _end_worker,
    events.WorkCommitted: _commit,
    events.MergeStarted: _start_merge,
    events.ConflictFound: _conflict,
    events.Checked: _check,
    events.MergeKept: _keep,
    events.MergeTakenBack: _take_back,
    events.Stopped: _stop,
    events.Resumed: _resume,
    events.Finished: _finish,
    events.Landing: _land,
    events.Landed: _landed,
    events.Undone: _undo,
}
