"""Builds what keeps runs without a person on their way: instructions, stop rules, the deadline."""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.agents.agent import agent_of
from trimtab.agents.setup import SessionSetup
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.run import Run
from trimtab.loop.checks import Checks
from trimtab.loop.ledger import Ledger
from trimtab.loop.processors.jit import JitEntry, JitFacts, JitInstructions, JitPorts
from trimtab.loop.processors.stop_rules import StopGateSettings, StopRules
from trimtab.policy.git_programs import safe_git_variables
from trimtab.providers.windows import DEFAULT

if TYPE_CHECKING:
    from trimtab.loop.time_limit import TimeLimit

GIT_SECONDS = 5.0
LONG = 40
"""The number of messages from which a conversation is summarised when a run repeats itself."""


def build_stop_rules(setup: SessionSetup) -> StopRules | None:
    """Build the gate of the setting `stopGate`, if it is set. Raises `ConfigurationError`."""
    given = read_setting(setup, "stopGate", StopGateSettings)
    if given is None:
        return None
    changes = 0

    def on_event(event: Event, _line: bytes) -> None:
        nonlocal changes
        changes += event.type == "trimtab.workspace_changed"

    setup.session.subscribe(on_event)
    projection = setup.session.projections
    checks = Checks(given.checks, lambda: changes, setup.checkout.cwd)
    return StopRules(given, checks, lambda: len(projection.changes.files))


def build_jit(
    setup: SessionSetup, limit: "TimeLimit | None", rules: StopRules | None
) -> JitInstructions | None:
    """Build the instructions of the setting `jitInstructions`. Raises `ConfigurationError`."""
    entries = read_setting(setup, "jitInstructions", dict[str, JitEntry]) or {}
    check_entries(entries.items())

    def gather(run: Run) -> JitFacts:
        budget = run.agent.budget
        window = run.agent.model.prompt_limit or DEFAULT
        return JitFacts(
            location=setup.checkout.cwd,
            turns=run.turn,
            time_left=limit.share_left if limit else None,
            context=(run.measured.total if run.measured else 0) / window,
            budget=budget.share() if isinstance(budget, Ledger) else None,
            checks=rules.checks.end_state if rules else None,
        )

    async def has_changes() -> bool:
        return bool(setup.session.projections.changes.files) or await git_shows_changes(setup)

    async def call(name: str, facts: JitFacts) -> Any:
        return await asyncio.to_thread(call_python, setup, name, facts)

    ports = JitPorts(
        gather=gather,
        sent=lambda: setup.session.projections.instructions.texts,
        has_changes=has_changes,
        call=call,
    )
    return JitInstructions(list(entries.items()), ports)


def check_entries(entries: "Sequence[tuple[str, JitEntry]] | Any") -> None:
    for name, entry in entries:
        percent = entry.percent_remaining_of_timeout
        if percent is not None and not 0 <= percent <= 100:
            raise ConfigurationError(
                f"The setting `jitInstructions.{name}.percentRemainingOfTimeout` is {percent:g}; "
                "set it to a number from 0 to 100."
            )


def read_setting(setup: SessionSetup, name: str, kind: Any) -> Any:
    """Return a setting as a struct; None if it is not set. Raises `ConfigurationError`."""
    custom = setup.customizations
    if custom is None or not custom.has_settings or name not in custom.settings.values:
        return None
    try:
        return msgspec.convert(custom.settings.values[name], kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `{name}` is not valid: {error}; correct it."
        ) from None


async def git_shows_changes(setup: SessionSetup) -> bool:
    """Return True if git lists changed paths, or another commit than at the start."""
    checkout = setup.checkout
    if not checkout.git_root:
        return False
    changed = await run_git(setup, "status", "--porcelain")
    head = await run_git(setup, "rev-parse", "HEAD")
    return bool(changed) or (bool(checkout.head) and head != checkout.head)


async def run_git(setup: SessionSetup, *args: str) -> str:
    env = setup.workspace.child_env
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *args,
            cwd=setup.checkout.git_root,
            env={**env, **safe_git_variables(env)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(GIT_SECONDS):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return out.decode("utf-8", "replace").strip()


def call_python(setup: SessionSetup, name: str, facts: JitFacts) -> Any:
    """Call a function of a Python file, named as `FILE.py:NAME`, with the facts."""
    path, _, function = name.rpartition(":")
    full = os.path.join(setup.checkout.cwd, os.path.expanduser(path))
    with open(full, encoding="utf-8") as file:
        namespace: dict[str, Any] = {"__file__": full, "__name__": "jit_instructions"}
        exec(compile(file.read(), full, "exec"), namespace)  # noqa: S102 - the person's own code
    return namespace[function](facts)


async def change_way(run: Run) -> str:
    """Give a run that repeats itself another effort or model, and a fresh context if it is long.

    Returns what was done, as a sentence for the warning about it; empty if nothing was.
    """
    agent, done = agent_of(run), []
    if agent.model.effort:  # a model that was not given one may not take any
        effort = "medium" if agent.model.effort == "high" else "high"
        run.agent = agent.with_model(effort=effort)
        done.append(f"the effort is {effort}")
    elif agent.parts.retry.fallbacks.switch_when_stuck(run):
        done.append(f"the model is {run.agent.model.name}")
    if len(run.session.conversation.messages) > LONG:
        await agent.parts.compaction.compact(run, "manual")
        done.append("the context is fresh")
    return f" From now on {' and '.join(done)}." if done else ""
