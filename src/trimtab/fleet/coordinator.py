"""Carries out what the schedule of a fleet asks for, and records every step before its effect."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress

import msgspec

from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError
from trimtab.contracts.ids import new_id
from trimtab.fleet import events, schedule
from trimtab.fleet.checks import run_checks
from trimtab.fleet.engine import Engine, WorkEnded, WorkOrder
from trimtab.fleet.events import AnyEvent, Kind, Spent
from trimtab.fleet.integration import Merge, MergePorts, Repair
from trimtab.fleet.plan import read_session_plan
from trimtab.fleet.repository import FleetRepository, GitThread
from trimtab.fleet.schedule import Action, cut_slice, next_actions
from trimtab.fleet.state import FleetState, apply
from trimtab.fleet.store import FleetLog
from trimtab.fleet.worker_prompts import write_plan_prompt, write_work_prompt
from trimtab.session.todos import read_todos
from trimtab.workspace.git import GitError

STOP_POLL = 0.2
OUT_OF_BUDGET = "The budget is used up; resume the fleet with a higher limit."
OnEvent = Callable[[AnyEvent], None]
NOT_FOR_PLANS = ("--autopilot", "--mode", "--agent-runtime", "--runtime-models")
"""Flags that the planning run does not get: it needs plan mode and our own `sql` tool."""
ALWAYS = ("--allow-tool=write",)
"""A worker may write in its folder: nobody else works there, and nothing leaves it unmerged."""


class Halt(msgspec.Struct, frozen=True):
    """A reason to end before everything is done."""

    reason: str
    exit_code: int


def describe_failure(error: TrimtabError | OSError | GitError) -> str:
    """Return an error that ends a fleet as a sentence that says what to do."""
    if isinstance(error, TrimtabError):
        return error.message
    if isinstance(error, GitError):
        return f"git failed ({error}); correct that, and resume the fleet."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; correct that, and resume the fleet."


class Coordinator:
    """Runs one fleet to its end. Create it with the open log; `run` may be called once."""

    def __init__(
        self, log: FleetLog, engine: Engine, env: Mapping[str, str], on_event: OnEvent
    ) -> None:
        self.state = FleetState()
        for event in log.folder.read():
            self.state = apply(self.state, event)
        assert self.state.started is not None
        self._started = self.state.started
        self._log = log
        self._engine = engine
        self._env = env
        self._on_event = on_event
        self._git = GitThread()
        self._repository = FleetRepository(self._started, env)
        self._wake = asyncio.Event()
        self._halted: Halt | None = None
        self._bug: Exception | None = None
        self._tasks: dict[Action, asyncio.Task[None]] = {}

    async def run(self) -> FleetState:
        """Run the fleet until it is finished or stopped; return its last state.

        A fleet whose task is cancelled is stopped, and can be resumed as well.
        """
        if self.state.finished:
            await self._clean_up()
            return self.state
        try:
            await self._engine.open()
            try:
                await self._recover()
                await self._work()
            except GitError as error:
                self.halt(describe_failure(error), ExitCode.FAILURE)
            except asyncio.CancelledError:
                self.halt("It was interrupted.", ExitCode.INTERRUPTED)
                await self._end_tasks()
                await self._conclude()
                raise
            finally:
                await self._end_tasks()
            await self._conclude()
        finally:
            await self._engine.aclose()
        return self.state

    def halt(self, reason: str, exit_code: int) -> None:
        """End the fleet early; it can be resumed."""
        if self._halted is None:
            self._halted = Halt(reason, exit_code)
            self._wake.set()

    def record(self, event: AnyEvent) -> None:
        """Write an event to the disk, fold it, and show it."""
        stamped = self._log.append(event)
        self.state = apply(self.state, stamped)
        self._on_event(stamped)
        self._wake.set()

    async def _recover(self) -> None:
        """Bring the repository to what the log says, after a stop or a kill."""
        for job in list(self.state.jobs):
            self.record(
                events.WorkerEnded(
                    job=job,
                    exit_code=None,
                    message="The coordinator ended.",
                    spent=self._engine.spent(self.state.jobs[job].session),
                    interrupted=True,
                )
            )
        await self._git(self._set_branches)

    def _set_branches(self) -> None:
        """Point the branches where the log says, unless somebody else moved them."""
        for name, each in self.state.todos.items():
            if each.commit is not None:
                self._repository.advance(self._repository.branch(name), each.commit)
        if not self._repository.advance(self._started.branch, self.state.tip):
            raise UsageError(
                f"{self._started.branch} has commits that the fleet did not make; move them to "
                f"another branch, set it to {self.state.tip[:12]}, and resume."
            )

    async def _work(self) -> None:
        while self._halted is None and not self.state.over:
            self._wake.clear()
            while (action := self._next_action()) is not None:
                self._tasks[action] = asyncio.ensure_future(self._guard(action))
                await asyncio.sleep(0)  # until it has recorded that it began
            self._check_limits()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_POLL):
                    await self._wake.wait()

    def _next_action(self) -> Action | None:
        if self._halted is not None:
            return None
        return next((each for each in next_actions(self.state) if not self._under_way(each)), None)

    def _under_way(self, action: Action) -> bool:
        """Return True if a task already works on this action, whatever its share of the budget."""
        return any(
            type(each) is type(action)
            and getattr(each, "todo", None) == getattr(action, "todo", None)
            for each in self._tasks
        )

    def _check_limits(self) -> None:
        if os.path.exists(self._log.folder.stop_file):
            self.halt("It was stopped by `trimtab fleet stop`.", ExitCode.INCOMPLETE)
        if self.state.deadline is not None and time.time() >= self.state.deadline:
            self.halt("Its time is up.", ExitCode.INCOMPLETE)

    async def _guard(self, action: Action) -> None:
        try:
            await self._perform(action)
        except (TrimtabError, OSError, GitError) as error:
            # The disk or git failed: nothing that goes on now could be trusted.
            self.halt(describe_failure(error), ExitCode.FAILURE)
        except Exception as error:
            self._bug = error
            self.halt(f"Internal error ({type(error).__name__}: {error}).", ExitCode.FAILURE)
        finally:
            self._tasks.pop(action, None)
            self._wake.set()

    def _perform(self, action: Action) -> Coroutine[None, None, None]:
        work: Coroutine[None, None, None]
        match action:
            case schedule.MakePlan():
                work = self._make_plan(action.slice)
            case schedule.CheckBase():
                work = self._check_base()
            case schedule.StartWorker():
                work = self._do_todo(action)
            case schedule.CommitWork():
                work = self._commit(action.todo)
            case schedule.MergeWork():
                work = Merge(self._repository, self._merge_ports(), action.todo).run()
            case schedule.StopForBudget():
                work = self._stop(OUT_OF_BUDGET, ExitCode.BUDGET)
            case schedule.Finish():
                work = self._finish()
        return work

    async def _make_plan(self, budget: Spent) -> None:
        folder, base = self._repository.plan_folder, self._started.base
        order = self._order("plan", None, budget, write_plan_prompt(self._started.goal))
        self._record_start(order, "plan", None, budget)
        await self._git(self._repository.prepare, folder, base)
        ended = await self._run_worker(order)
        if ended.exit_code:
            code = ExitCode.BUDGET if ended.exit_code == ExitCode.BUDGET else ExitCode.INCOMPLETE
            await self._stop(f"The planning run failed: {ended.message}", code)
            return
        try:
            todos = read_session_plan(*read_todos(self._engine.database(order.session)))
        except TrimtabError as error:
            await self._stop(f"The planning run gave no usable plan: {error}", ExitCode.INCOMPLETE)
            return
        self.record(events.Planned(todos=todos))
        await self._git(self._repository.remove, folder)

    async def _check_base(self) -> None:
        folder, tip = self._repository.merge_folder, self.state.tip
        await self._git(self._repository.prepare, folder, tip)
        await self._git(self._repository.reset_merge, tip)
        runs = await run_checks(self.state.checks, self._repository.inside(folder), self._env)
        self.record(events.Checked(todo=None, commit=tip, checks=runs))
        for run in runs:
            if not run.passed:
                self.record(
                    events.Noted(
                        message=f"`{run.command}` fails at {tip[:12]} already, before any work: a "
                        "merge is not blamed for it."
                    )
                )

    async def _do_todo(self, action: schedule.StartWorker) -> None:
        name = action.todo
        order = self._order("work", name, action.slice, write_work_prompt(self.state, name))
        self._record_start(order, "work", name, action.slice)
        start = self.state.todos[name].start
        branch = self._repository.branch(name)
        try:
            await self._git(self._repository.prepare, self._repository.folder(name), start, branch)
        except GitError as error:
            message = f"Its worktree could not be made ({error})."
            self.record(
                events.WorkerEnded(job=order.job, exit_code=ExitCode.FAILURE, message=message)
            )
            return
        await self._run_worker(order)

    async def _commit(self, name: str) -> None:
        each = self.state.todos[name]
        try:
            commit = await self._git(self._repository.commit_work, each.todo, each.start)
        except GitError as error:
            where = self._repository.folder(name)
            reason = f"Its work in {where} could not be committed ({error})."
            self.record(events.WorkCommitted(todo=name, commit=None, failed=reason))
            return
        self.record(events.WorkCommitted(todo=name, commit=commit, failed=each.reason))
        if commit is not None:
            await self._git(self._repository.set_branch, self._repository.branch(name), commit)

    async def _repair(self, name: str, prompt: str) -> Repair:
        """Have an agent repair the merge folder."""
        budget = await self._wait_for_budget()
        order = self._order("repair", name, budget, prompt)
        self._record_start(order, "repair", name, budget)
        ended = await self._run_worker(order)
        if ended.exit_code:
            reason = f"the agent that was to repair it failed ({ended.message.rstrip('.')})"
            if ended.exit_code == ExitCode.BUDGET and budget != Spent():
                await self._give_up_for_budget()
            return Repair(done=False, reason=reason)
        return Repair(done=True)

    async def _wait_for_budget(self) -> Spent:
        """Return a part of the budget, which workers may have to give back first."""
        while True:
            waiting = any(each.status == "pending" for each in self.state.todos.values())
            budget = cut_slice(self.state, 2 if waiting else 1)
            if budget is not None:
                return budget
            if not self.state.jobs:
                await self._give_up_for_budget()
            await asyncio.sleep(STOP_POLL)

    async def _give_up_for_budget(self) -> None:
        """Stop the fleet, which ends this task: a merge that has begun is not judged without it."""
        self.halt(OUT_OF_BUDGET, ExitCode.BUDGET)
        await asyncio.Event().wait()

    def _order(self, kind: Kind, todo: str | None, budget: Spent, prompt: str) -> WorkOrder:
        where = self._repository
        folder = {"plan": where.plan_folder, "repair": where.merge_folder}.get(kind)
        title = "plan" if todo is None else todo if kind == "work" else f"merge {todo}"
        return WorkOrder(
            job=self.state.last_job + 1,
            session=new_id(),
            name=f"fleet {self._started.id}: {title}",
            folder=folder or where.folder(todo or ""),
            prompt=prompt,
            flags=self._flags(kind, budget),
        )

    def _flags(self, kind: Kind, budget: Spent) -> tuple[str, ...]:
        flags = [*self._started.flags]
        if kind == "plan":
            flags = [flag for flag in flags if flag.partition("=")[0] not in NOT_FOR_PLANS] + [
                "--plan"
            ]
        else:
            flags += ALWAYS
        if budget.tokens is not None:
            flags.append(f"--max-tokens={budget.tokens}")
        if budget.usd is not None:
            flags.append(f"--max-budget-usd={budget.usd:.6f}")
        if self.state.deadline is not None:
            flags.append(f"--deadline={max(1.0, self.state.deadline - time.time()):.0f}")
        return tuple(flags)

    def _record_start(self, order: WorkOrder, kind: Kind, todo: str | None, budget: Spent) -> None:
        self.record(
            events.WorkerStarted(
                job=order.job,
                kind=kind,
                todo=todo,
                session=order.session,
                start=self._started.base if kind == "plan" else self.state.tip,
                slice=budget,
            )
        )

    async def _run_worker(self, order: WorkOrder) -> WorkEnded:
        """Start a worker, wait for it, and record its end, whatever that is."""
        ended = WorkEnded(exit_code=ExitCode.INTERRUPTED, message="It was stopped.")
        interrupted = True
        try:
            order = msgspec.structs.replace(order, folder=self._repository.inside(order.folder))
            async with self._git.lock:
                worker = await self._engine.start(order)
            ended = await worker.ended()
            interrupted = False
        except OSError as error:
            interrupted = False
            ended = WorkEnded(exit_code=ExitCode.FAILURE, message=f"{error.strerror or error}.")
        finally:
            self.record(
                events.WorkerEnded(
                    job=order.job,
                    exit_code=ended.exit_code,
                    message=ended.message,
                    spent=self._engine.spent(order.session),
                    interrupted=interrupted,
                )
            )
        return ended

    def _merge_ports(self) -> MergePorts:
        return MergePorts(
            state=lambda: self.state,
            record=self.record,
            git=self._git,
            repair=self._repair,
            env=self._env,
        )

    async def _stop(self, reason: str, exit_code: int) -> None:
        self.halt(reason, exit_code)

    async def _finish(self) -> None:
        self.record(events.Finished())

    async def _end_tasks(self) -> None:
        """End everything under way. Each task ends its worker and records that."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _conclude(self) -> None:
        # A merge that was recorded just before the end is completed.
        with suppress(GitError, UsageError):
            await self._git(self._set_branches)
        halted = self._halted
        if halted is not None and not self.state.over:
            self.record(events.Stopped(reason=halted.reason, exit_code=halted.exit_code))
        if self.state.finished:
            await self._clean_up()
        if self._bug is not None:
            raise self._bug

    async def _clean_up(self) -> None:
        """Complete the branches and remove the worktrees, unless that was done before."""
        if not await asyncio.to_thread(os.path.isdir, self._started.folder):
            return
        with suppress(UsageError):  # somebody works on the branch already
            await self._git(self._set_branches)
        await self._git(self._repository.remove_all)
