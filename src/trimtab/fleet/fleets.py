"""Starts, resumes, stops and undoes the fleets of a home."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping

import msgspec

from trimtab.config.paths import Home
from trimtab.config.trust import Trust, find_root
from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError
from trimtab.fleet import events
from trimtab.fleet.coordinator import Coordinator, OnEvent
from trimtab.fleet.events import Spent, Started
from trimtab.fleet.landing import land, plan_landing, undo_fleet
from trimtab.fleet.local_engine import LocalEngine, clean_environment, read_ledger
from trimtab.fleet.plan import Todo
from trimtab.fleet.repository import inspect_checkout, name_branch
from trimtab.fleet.state import FleetState, apply
from trimtab.fleet.store import FleetFolder, FleetLog, FleetStore
from trimtab.policy.git_programs import find_git_programs
from trimtab.session.projections.usage import ModelUsage
from trimtab.session.store import SessionStore
from trimtab.workspace.git import GitError

WORKERS = 4
STOP_SECONDS = 20.0
"""Seconds a coordinator has to end its workers after it was asked to stop."""


class FleetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet to start. Without `todos`, a planning run splits the goal.

    `flags` are those of `trimtab` that every worker gets; `deadline` is in seconds from now.
    """

    goal: str
    cwd: str
    todos: tuple[Todo, ...] = ()
    workers: int = WORKERS
    checks: tuple[str, ...] = ()
    limits: Spent = Spent()
    deadline: float | None = None
    flags: tuple[str, ...] = ()
    land: bool = False


class Fleets:
    """The fleets of a home."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        self._home = home
        self._env = env
        self.store = FleetStore(home)

    def create(self, request: FleetRequest) -> FleetFolder:
        """Write the beginning of a fleet; nothing runs yet. Raises `UsageError`."""
        if not request.goal.strip():
            raise UsageError("The goal is empty; say what the fleet is to do.")
        facts = inspect_checkout(request.cwd)
        self._check_trust(request)
        fleet_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(2).hex()}"
        folder = self.store.create(fleet_id)
        started = Started(
            id=fleet_id,
            goal=request.goal,
            checkout=facts.checkout,
            repository=facts.repository,
            subfolder=facts.subfolder,
            base=facts.base,
            target=facts.target,
            branch=name_branch(fleet_id),
            folder=os.path.join(f"{facts.repository}.worktrees", f"fleet-{fleet_id}"),
            workers=request.workers,
            checks=request.checks,
            limits=request.limits,
            deadline=None if request.deadline is None else time.time() + request.deadline,
            flags=request.flags,
            land=request.land,
            todos=request.todos,
            notes=facts.notes,
        )
        log = FleetLog(folder)
        try:
            log.append(started)
        finally:
            log.close()
        return folder

    def _check_trust(self, request: FleetRequest) -> None:
        """Refuse worktrees whose checkout would start programs of an untrusted repository."""
        setting = find_git_programs(request.cwd)
        trusted = (
            "--trust-folder" in request.flags
            or self._env.get("COPILOT_ALLOW_ALL") == "true"
            or Trust(self._home).is_trusted(request.cwd)
        )
        if setting and not trusted:
            raise UsageError(
                f"No fleet was started: {find_root(request.cwd)} is not trusted, and its git "
                f"settings would start a program ({setting}); start with --trust-folder if you "
                "trust it."
            )

    async def run(
        self,
        folder: FleetFolder,
        on_event: OnEvent,
        *,
        resumed: events.Resumed | None = None,
        on_start: Callable[[Coordinator], None] = lambda _: None,
    ) -> FleetState:
        """Run a fleet to its end in this process. A finished one is left as it is.

        Cancelling the task stops the fleet, which can be resumed then.
        """
        log = FleetLog(folder)
        try:
            engine = LocalEngine(folder, self._env, SessionStore(self._home))
            coordinator = Coordinator(log, engine, clean_environment(self._env), on_event)
            on_start(coordinator)
            if resumed is not None and not coordinator.state.finished:
                coordinator.record(resumed)
            state = await coordinator.run()
            return await asyncio.to_thread(_land, log, state, on_event)
        finally:
            log.close()

    def find_resumable(self, wanted: str) -> FleetFolder:
        """Return a fleet that can go on, or has finished. Raises `UsageError`."""
        folder = self.store.find(wanted)
        state = folder.state()
        if state.started is None:
            raise UsageError(f"The fleet {folder.id} never started; start another one.")
        if state.undone:
            raise UsageError(f"The fleet {folder.id} was undone; start another one.")
        return folder

    def usage(self, state: FleetState) -> ModelUsage:
        """Return what all agents of a fleet have spent together."""
        sessions = SessionStore(self._home)
        return read_ledger(*(sessions.folder(name) for name in state.sessions)).total

    def stop(self, folder: FleetFolder) -> FleetState:
        """Ask the process of a fleet to stop, and wait for it. Raises `TrimtabError`."""
        if folder.owner() is None:
            raise TrimtabError(f"The fleet {folder.id} is not running; nothing was stopped.")
        with open(folder.stop_file, "wb"):
            pass
        deadline = time.monotonic() + STOP_SECONDS
        while folder.owner() is not None:
            if time.monotonic() > deadline:
                raise TrimtabError(f"The fleet {folder.id} did not stop; kill its process.")
            time.sleep(0.02)
        return folder.state()

    def undo(self, folder: FleetFolder) -> list[str]:
        """Take back everything a fleet did; return what was kept. Raises `UsageError`."""
        log = FleetLog(folder)
        try:
            state = folder.state()
            if state.undone:
                raise UsageError(f"The fleet {folder.id} was undone already; nothing is left.")
            try:
                kept = undo_fleet(state, self._env)
            except GitError as error:
                raise TrimtabError(
                    f"git failed ({error}); correct that, then undo again."
                ) from None
            log.append(events.Undone(kept=tuple(kept)))
        finally:
            log.close()
        return kept


def _land(log: FleetLog, state: FleetState, on_event: OnEvent) -> FleetState:
    """Land a finished fleet if that was asked for. A landing that was interrupted is completed."""

    def record(event: events.Landing | events.Landed) -> None:
        nonlocal state
        stamped = log.append(event)
        state = apply(state, stamped)
        on_event(stamped)

    started = state.started
    if started is None or not started.land or not state.finished or state.landed is not None:
        return state
    if state.exit_code != ExitCode.SUCCESS:
        record(events.Landed(refused="not everything is merged and green"))
        return state
    if state.landing is None:
        planned = plan_landing(state)
        if isinstance(planned, str):
            record(events.Landed(refused=planned))
            return state
        record(planned)
    assert state.landing is not None
    record(events.Landed(refused=land(state.landing)))
    return state
