"""Decides what a fleet does next: a pure function of its state."""

import msgspec

from trimtab.fleet.events import AnyEvent, Spent
from trimtab.fleet.state import GOOD, FleetState, apply

MICRO_USD = 1_000_000


class MakePlan(msgspec.Struct, frozen=True, tag=True):
    slice: Spent = Spent()


class CheckBase(msgspec.Struct, frozen=True, tag=True):
    pass


class StartWorker(msgspec.Struct, frozen=True, tag=True):
    todo: str
    slice: Spent = Spent()


class CommitWork(msgspec.Struct, frozen=True, tag=True):
    todo: str


class MergeWork(msgspec.Struct, frozen=True, tag=True):
    todo: str


class StopForBudget(msgspec.Struct, frozen=True, tag=True):
    pass


class Finish(msgspec.Struct, frozen=True, tag=True):
    pass


Action = MakePlan | CheckBase | StartWorker | CommitWork | MergeWork | StopForBudget | Finish


def step(state: FleetState, event: AnyEvent) -> tuple[FleetState, tuple[Action, ...]]:
    """Return the state after an event, and what is to be done then."""
    after = apply(state, event)
    return after, next_actions(after)


def next_actions(state: FleetState) -> tuple[Action, ...]:
    """Return everything that is to be done now. An action stays in it until an event ends it.

    At most one merge is under way at a time; base checks use the same folder, so they count as
    one. A todo starts when everything it depends on is merged.
    """
    if state.over or state.started is None:
        return ()
    if not state.todos:
        budget = cut_slice(state, 1)
        return (StopForBudget(),) if budget is None else (MakePlan(budget),)
    actions: list[Action] = [*_integrate(state)]
    actions += [CommitWork(name) for name, each in state.todos.items() if each.status == "ended"]
    starts = _start_workers(state)
    actions += starts
    if actions or state.jobs or state.merging is not None:
        return tuple(actions)
    blocked = state.blocked
    waiting = [
        name
        for name, each in state.todos.items()
        if each.status == "pending" and name not in blocked
    ]
    return (StopForBudget(),) if waiting else (Finish(),)


def _integrate(state: FleetState) -> list[Action]:
    """Return the one merge or base check that is next, or under way."""
    if state.merging is not None:
        return [MergeWork(state.merging)]
    if state.checks and not state.tip_checks:
        return [CheckBase()]
    done = (name for name, each in state.todos.items() if each.status == "done")
    first = next(done, None)
    return [] if first is None else [MergeWork(first)]


def _start_workers(state: FleetState) -> list[Action]:
    assert state.started is not None
    working = sum(job.kind == "work" for job in state.jobs.values())
    free = state.started.workers - working
    ready = [name for name in state.todos if is_ready(state, name)]
    fresh = [name for name in ready if state.todos[name].starved is None][: max(0, free)]
    if fresh:
        budget = cut_slice(state, len(fresh))
        return [] if budget is None else [StartWorker(name, budget) for name in fresh]
    # What had too little gets all that remains, if that is more.
    whole = cut_slice(state, 1)
    if whole is None or free < 1:
        return []
    fed = [name for name in ready if exceeds(whole, state.todos[name].starved)]
    return [StartWorker(name, whole) for name in fed[:1]]


def exceeds(budget: Spent, other: Spent | None) -> bool:
    """Return True if a budget exceeds another in some limit and is smaller in none."""
    if other is None:
        return True
    pairs = [(budget.tokens, other.tokens), (budget.usd, other.usd)]
    limited = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    return all(mine >= theirs for mine, theirs in limited) and any(
        mine > theirs for mine, theirs in limited
    )


def is_ready(state: FleetState, name: str) -> bool:
    """Return True if a todo waits for nothing but a worker."""
    each = state.todos[name]
    return each.status == "pending" and all(
        state.todos[needed].status in GOOD for needed in each.todo.depends_on
    )


def cut_slice(state: FleetState, share: int) -> Spent | None:
    """Return one of `share` equal parts of the remaining budget; None if nothing remains."""
    left = state.remaining
    tokens = None if left.tokens is None else left.tokens // share
    # Rounded down, so that all slices together stay within the limit.
    usd = None if left.usd is None else int(left.usd * MICRO_USD / share) / MICRO_USD
    if (tokens is not None and tokens < 1) or (usd is not None and usd <= 0):
        return None
    return Spent(tokens=tokens, usd=usd)
