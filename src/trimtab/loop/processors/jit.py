"""Just-in-time instructions: texts that a model is told when a condition comes true."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Literal

import msgspec

from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run
from trimtab.loop.checks import EndState

SOURCE = "jit-instruction"


class JitRules(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Conditions of an instruction; all that are set must hold.

    `turns` is a number of model calls for the prompt, `context` a percentage of the window,
    `budget` a percentage of the spending limit, each at least that; `checks` the state of the
    checks of `stopGate`. `python` is a function, as `FILE.py:NAME`.
    """

    turns: int | None = None
    context: float | None = None
    budget: float | None = None
    checks: Literal["green", "red", "unknown"] | None = None
    python: str | None = None


class PythonText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An instruction that a Python function returns, as `FILE.py:NAME`."""

    python: str


class JitEntry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One entry of the setting `jitInstructions`."""

    instruction: str | PythonText
    percent_remaining_of_timeout: float | None = None
    when_no_paths_changed: bool = False
    when: JitRules = JitRules()


class JitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that conditions use. Shares are from 0 to 1, or None without such a limit."""

    location: str
    turns: int
    time_left: float | None
    context: float
    budget: float | None
    checks: EndState | None


class JitPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of the processor to the session."""

    gather: Callable[[Run], JitFacts]
    sent: Callable[[], Collection[str]]
    """Returns the instructions that the session was told before, in other processes too."""
    has_changes: Callable[[], Awaitable[bool]]
    """Returns True if paths changed since the session began."""
    call: Callable[[str, JitFacts], Awaitable[Any]]
    """Calls a Python function, named as `FILE.py:NAME`."""


class JitInstructions(Processor):
    """Adds each instruction once, before the first model call for which its conditions hold."""

    def __init__(self, entries: Sequence[tuple[str, JitEntry]], ports: JitPorts) -> None:
        self._entries = entries
        self._ports = ports
        self._broken: set[str] = set()

    async def before_request(self, run: Run) -> Stop | None:
        if run.closing:
            return None
        facts = self._ports.gather(run)
        for name, entry in self._entries:
            if name in self._broken or self._is_known(entry):
                continue
            try:
                text = await self._find_text(entry, facts)
            except Exception as error:  # a person's function: the run goes on without it
                self._broken.add(name)
                message = (
                    f"The instruction {name} is left out: {type(error).__name__}: {error}; "
                    "correct the setting jitInstructions."
                )
                run.session.emit(SessionWarning(warning_type="jit_instruction", message=message))
                continue
            if text and text not in self._ports.sent():
                run.session.emit(
                    UserMessage(
                        content=text,
                        source=SOURCE,
                        agent_mode=run.agent.mode,
                        interaction_id=run.interaction_id,
                    )
                )
        return None

    def _is_known(self, entry: JitEntry) -> bool:
        return isinstance(entry.instruction, str) and entry.instruction in self._ports.sent()

    async def _find_text(self, entry: JitEntry, facts: JitFacts) -> str:
        """Return the text of an entry; empty if its conditions do not hold."""
        if not holds(entry, facts):
            return ""
        if entry.when.python and not await self._ports.call(entry.when.python, facts):
            return ""
        if entry.when_no_paths_changed and await self._ports.has_changes():
            return ""
        if isinstance(entry.instruction, str):
            return entry.instruction
        return str(await self._ports.call(entry.instruction.python, facts) or "")


def holds(entry: JitEntry, facts: JitFacts) -> bool:
    """Return True if the conditions of an entry hold that need no program."""
    percent, rules = entry.percent_remaining_of_timeout, entry.when
    if percent is not None and (facts.time_left is None or facts.time_left * 100 > percent):
        return False
    return (
        (rules.turns is None or facts.turns >= rules.turns)
        and (rules.context is None or facts.context * 100 >= rules.context)
        and (
            rules.budget is None
            or (facts.budget is not None and facts.budget * 100 >= rules.budget)
        )
        and (rules.checks is None or facts.checks == rules.checks)
    )
