"""Merges the work of one todo: conflicts and red checks go to an agent, red merges are dropped.

The branch moves only to commits on which the checks ran, so it is never red because of a merge,
not even if the coordinator is killed.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trimtab.fleet import events
from trimtab.fleet.checks import run_checks
from trimtab.fleet.events import AnyEvent, CheckRun
from trimtab.fleet.repository import FleetRepository, GitThread
from trimtab.fleet.state import FleetState
from trimtab.fleet.worker_prompts import write_check_prompt, write_conflict_prompt
from trimtab.workspace.git import GitError


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an agent that was to repair a merge. `reason` says why it did not."""

    done: bool
    reason: str = ""


class MergePorts(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator's services that a merge uses."""

    state: Callable[[], FleetState]
    record: Callable[[AnyEvent], None]
    git: GitThread
    repair: Callable[[str, str], Awaitable[Repair]]
    """Takes the todo and the prompt."""
    env: Mapping[str, str]


class TakenBack(Exception):
    """A merge that cannot be kept, with what the report says about it."""

    def __init__(
        self,
        reason: str,
        *,
        files: tuple[str, ...] = (),
        checks: tuple[CheckRun, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.files = files
        self.checks = checks


class Merge:
    """The merge of one todo into the branch."""

    def __init__(self, repository: FleetRepository, ports: MergePorts, todo: str) -> None:
        self._repository = repository
        self._ports = ports
        self._git = ports.git
        state = ports.state()
        self._state = state
        self._todo = state.todos[todo].todo
        self._start = state.todos[todo].start
        self._commit = state.todos[todo].commit or ""
        self._tip = state.tip
        self._green = state.green
        self._files: tuple[str, ...] = ()
        self._repaired = False

    async def run(self) -> None:
        """Merge, check, and record that the merge is kept or taken back."""
        name = self._todo.id
        self._ports.record(events.MergeStarted(todo=name, tip=self._tip, commit=self._commit))
        try:
            merge = await self._make()
        except (TakenBack, GitError) as error:
            back = error if isinstance(error, TakenBack) else TakenBack(f"git failed: {error}")
            self._ports.record(
                events.MergeTakenBack(
                    todo=name,
                    reason=str(back),
                    files=back.files or self._files,
                    checks=back.checks,
                )
            )
            return
        kept = await self._git(
            self._repository.find_sides, merge, self._tip, self._commit, self._files
        )
        self._ports.record(events.MergeKept(todo=name, commit=merge, kept=kept))
        started = self._state.started
        assert started is not None
        await self._git(self._repository.set_branch, started.branch, merge, self._tip)

    async def _make(self) -> str:
        """Return the commit of a merge that breaks no check."""
        files = await self._git(self._repository.begin_merge, self._tip, self._commit)
        if files:
            await self._resolve(tuple(files))
        merge, red = await self._check()
        if red:
            others = await self._git(self._find_others, ())
            prompt = write_check_prompt(self._state, self._todo.id, red, others)
            reason = f"{_quote(red)} failed after the merge"
            touched = await self._git(self._changed)
            outcome = await self._repair(prompt)
            if not outcome.done:
                raise TakenBack(f"{reason}, and {outcome.reason}", files=touched, checks=red)
            merge, red = await self._check()
            if red:
                raise TakenBack(
                    f"{reason}, and still after an agent's repair", files=touched, checks=red
                )
        return merge

    async def _resolve(self, files: tuple[str, ...]) -> None:
        self._files = files
        before = {name: self._repository.describe_conflict(name) for name in files}
        others = await self._git(self._find_others, files)
        name = self._todo.id
        self._ports.record(events.ConflictFound(todo=name, files=files, others=others))
        outcome = await self._repair(write_conflict_prompt(self._state, name, files, others))
        listed = ", ".join(files)
        if not outcome.done:
            raise TakenBack(f"it conflicts in {listed}, and {outcome.reason}")
        if left := await self._git(self._repository.unresolved, before):
            raise TakenBack(f"it conflicts in {listed}; {', '.join(left)} was left unresolved")

    async def _check(self) -> tuple[str, tuple[CheckRun, ...]]:
        """Commit the merge folder and run the checks; return those that now fail."""
        merge = await self._git(self._write)
        folder = self._repository.inside(self._repository.merge_folder)
        runs = await run_checks(self._state.checks, folder, self._ports.env)
        self._ports.record(events.Checked(todo=self._todo.id, commit=merge, checks=runs))
        await self._git(self._repository.reset_merge, merge)
        return merge, tuple(
            run for run in runs if not run.passed and self._green.get(run.command, True)
        )

    def _write(self) -> str:
        merge = self._repository.write_merge(
            self._tip, self._todo, self._commit, repaired=self._repaired
        )
        if self._repaired and self._repository.same_tree(merge, self._tip):
            raise TakenBack("the agent that repaired the merge dropped the work of the todo")
        # The folder must hold exactly the commit: checks run on nothing else.
        self._repository.reset_merge(merge)
        return merge

    async def _repair(self, prompt: str) -> Repair:
        self._repaired = True
        return await self._ports.repair(self._todo.id, prompt)

    def _find_others(self, files: tuple[str, ...]) -> tuple[str, ...]:
        """Return the todos merged since this one began; with `files`, those that changed them."""
        found = []
        for name in self._state.merged:
            other = self._state.todos[name]
            if other.commit is None or self._repository.contains(self._start, other.commit):
                continue
            changed = self._repository.changed_files(other.start, other.commit)
            if not files or changed.intersection(files):
                found.append(name)
        return tuple(found)

    def _changed(self) -> tuple[str, ...]:
        return tuple(sorted(self._repository.changed_files(self._start, self._commit)))


def _quote(checks: tuple[CheckRun, ...]) -> str:
    return " and ".join(f"`{check.command}`" for check in checks)
