"""The schedule of a fleet, played against workers, merges and checks with random outcomes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.fleet import events, schedule
from trimtab.fleet.events import CheckRun, Spent, Started
from trimtab.fleet.plan import Todo
from trimtab.fleet.schedule import Action, next_actions, step
from trimtab.fleet.state import FAILURES, GOOD, FleetState, fold


def started(workers: int, checks: tuple[str, ...], limits: Spent) -> Started:
    return Started(
        id="f", goal="g", checkout="/c", repository="/c", subfolder=".", base="base", target=None,
        branch="b", folder="/w", workers=workers, checks=checks, limits=limits,
    )  # fmt: skip


def random_plan(rng: random.Random) -> tuple[Todo, ...]:
    names = [f"t{number}" for number in range(rng.randint(1, 9))]
    return tuple(
        Todo(
            id=name,
            title=name,
            depends_on=tuple(rng.sample(names[:index], rng.randint(0, min(2, index)))),
        )
        for index, name in enumerate(names)
    )


class Game:
    """Plays a fleet: performs what the schedule asks for, in random order and with luck."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.workers = self.rng.randint(1, 4)
        tokens = self.rng.choice([None, 50, 400, 5000])
        checks = ("check",) if self.rng.random() < 0.7 else ()
        self.state = FleetState()
        self.log: list[events.AnyEvent] = []
        self.emit(started(self.workers, checks, Spent(tokens=tokens)))
        self.emit(events.Planned(todos=random_plan(self.rng)))
        self.busy: list[Action] = []
        self.jobs = 0

    def emit(self, event: events.AnyEvent) -> None:
        self.log.append(event)
        self.state, self.actions = step(self.state, event)
        self.check()

    def check(self) -> None:
        """Hold what must be true after every event."""
        state = self.state
        assert sum(job.kind == "work" for job in state.jobs.values()) <= max(1, self.game_workers)
        assert len(set(state.merged)) == len(state.merged), "merged twice"
        for index, name in enumerate(state.merged):
            for needed in state.todos[name].todo.depends_on:
                before = needed in state.merged[:index]
                assert before or state.todos[needed].status == "unchanged"
        for job in state.jobs.values():
            if job.kind == "work" and job.todo:
                needs = state.todos[job.todo].todo.depends_on
                assert all(state.todos[needed].status in GOOD for needed in needs)
        assert sum(each.status == "merging" for each in state.todos.values()) <= 1
        assert all(each.failures <= FAILURES for each in state.todos.values())
        left = state.remaining.tokens
        # Spending may pass a slice by less than one call, which this game makes at most 5.
        assert left is None or left >= -5 * (self.jobs_done + len(state.jobs))
        if left is not None:
            given_out = sum(job.slice.tokens or 0 for job in state.jobs.values())
            assert given_out + (state.spent.tokens or 0) <= (state.limits.tokens or 0) + (
                5 * self.jobs_done
            )

    @property
    def game_workers(self) -> int:
        return getattr(self, "workers", 1)

    @property
    def jobs_done(self) -> int:
        return sum(isinstance(event, events.WorkerEnded) for event in self.log)

    def play(self) -> FleetState:
        for _ in range(2000):
            for action in next_actions(self.state):
                self.begin(action)
            if self.state.over:
                return self.state
            assert self.busy, "nothing is under way, and nothing is to be done"
            self.end(self.busy.pop(self.rng.randrange(len(self.busy))))
        raise AssertionError("the fleet does not end")

    def begin(self, action: Action) -> None:
        if any(
            type(each) is type(action)
            and getattr(each, "todo", None) == getattr(action, "todo", None)
            for each in self.busy
        ):
            return
        if isinstance(action, schedule.StartWorker):
            if not any(
                isinstance(each, schedule.StartWorker) and each.todo == action.todo
                for each in next_actions(self.state)
            ):
                return  # an action before it took the budget
            self.jobs += 1
            self.emit(
                events.WorkerStarted(
                    job=self.jobs, kind="work", todo=action.todo, session="s", start="x",
                    slice=action.slice,
                )
            )  # fmt: skip
        elif isinstance(action, schedule.MergeWork):
            commit = self.state.todos[action.todo].commit or ""
            self.emit(events.MergeStarted(todo=action.todo, tip=self.state.tip, commit=commit))
        self.busy.append(action)

    def end(self, action: Action) -> None:
        match action:
            case schedule.StartWorker():
                self.end_worker(action.todo)
            case schedule.CommitWork():
                failed = self.state.todos[action.todo].reason
                commit = f"c-{action.todo}" if self.rng.random() < 0.9 else None
                self.emit(events.WorkCommitted(todo=action.todo, commit=commit, failed=failed))
            case schedule.MergeWork():
                self.end_merge(action.todo)
            case schedule.CheckBase():
                self.emit(events.Checked(todo=None, commit=self.state.tip, checks=self.runs()))
            case schedule.StopForBudget():
                self.emit(events.Stopped(reason="budget", exit_code=5))
            case schedule.Finish():
                self.emit(events.Finished())

    def end_worker(self, todo: str) -> None:
        job = next(job for job in self.state.jobs.values() if job.todo == todo)
        limit = job.slice.tokens
        spent = self.rng.randint(0, 120)
        code = self.rng.choice([0, 0, 0, 3])
        if limit is not None and spent > limit:
            spent, code = limit + self.rng.randint(0, 5), 5
        interrupted = self.rng.random() < 0.05
        self.emit(
            events.WorkerEnded(
                job=job.number,
                exit_code=code,
                message="failed" if code else "",
                spent=Spent(tokens=spent),
                interrupted=interrupted,
            )
        )

    def end_merge(self, todo: str) -> None:
        commit = f"m-{todo}"
        if self.rng.random() < 0.75:
            if self.state.checks:
                self.emit(events.Checked(todo=todo, commit=commit, checks=self.runs()))
            self.emit(events.MergeKept(todo=todo, commit=commit))
        else:
            self.emit(events.MergeTakenBack(todo=todo, reason="red"))

    def runs(self) -> tuple[CheckRun, ...]:
        return (CheckRun(command="check", passed=True, exit_code=0),)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9))
def test_every_fleet_ends_and_keeps_its_rules(seed: int) -> None:
    game = Game(seed)
    state = game.play()
    assert not state.jobs
    assert state.merging is None
    if state.finished:
        blocked = state.blocked
        for name, each in state.todos.items():
            assert each.status in (*GOOD, "failed") or name in blocked, (name, each.status)
            if name in blocked:
                assert any(
                    state.todos[needed].status == "failed" or needed in blocked
                    for needed in each.todo.depends_on
                )
    done = all(each.status in GOOD for each in state.todos.values())
    assert (state.exit_code == 0) is (state.finished and done)
    assert fold(game.log) == state


def test_what_is_ready_starts_at_once_up_to_the_number_of_workers() -> None:
    plan = tuple(Todo(id=name, title=name) for name in "abc")
    state = fold([started(2, (), Spent(tokens=100)), events.Planned(todos=plan)])
    assert next_actions(state) == (
        schedule.StartWorker("a", Spent(tokens=50)),
        schedule.StartWorker("b", Spent(tokens=50)),
    )


def test_a_fleet_whose_budget_is_used_up_stops_with_exit_code_5() -> None:
    plan = (Todo(id="a", title="a"),)
    log: list[events.AnyEvent] = [
        started(1, (), Spent(tokens=10)),
        events.Planned(todos=plan),
        events.WorkerStarted(job=1, kind="work", todo="a", session="s", start="x"),
        events.WorkerEnded(job=1, exit_code=5, message="Budget.", spent=Spent(tokens=12)),
    ]
    assert next_actions(fold(log)) == (schedule.StopForBudget(),)


def test_a_merge_is_blamed_only_for_checks_that_were_green() -> None:
    red = CheckRun(command="check", passed=False, exit_code=1)
    log: list[events.AnyEvent] = [
        started(1, ("check",), Spent()),
        events.Planned(todos=(Todo(id="a", title="a"),)),
        events.Checked(todo=None, commit="base", checks=(red,)),
    ]
    assert fold(log).green == {"check": False}


def test_a_resumed_fleet_merges_again_what_was_being_merged() -> None:
    log: list[events.AnyEvent] = [
        started(1, (), Spent(tokens=10)),
        events.Planned(todos=(Todo(id="a", title="a"),)),
        events.WorkerStarted(job=1, kind="work", todo="a", session="s", start="x"),
        events.WorkerEnded(job=1, exit_code=0),
        events.WorkCommitted(todo="a", commit="c"),
        events.MergeStarted(todo="a", tip="base", commit="c"),
        events.Stopped(reason="killed", exit_code=130),
        events.Resumed(limits=Spent(tokens=99)),
    ]
    state = fold(log)
    assert next_actions(state) == (schedule.MergeWork("a"),)
    assert state.limits.tokens == 99
