"""The setting `stopGate`: rejects a premature stop, and says what is missing."""

from collections.abc import Callable

import msgspec

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import ToolResult
from trimtab.loop.checks import Checks

MAX_REJECTIONS = 8
SOURCE = "stop-gate"


class StopGateSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The conditions for the agent to stop; 0 and empty mean none."""

    files_read: int = 0
    files_written: int = 0
    turns: int = 0
    checks: tuple[str, ...] = ()


class StopRules(Processor):
    """Sends an agent that stops too early back to work, at most 8 times for a prompt.

    `count_written` returns the number of files the session has changed.
    """

    def __init__(
        self, settings: StopGateSettings, checks: Checks, count_written: Callable[[], int]
    ) -> None:
        self._settings = settings
        self.checks = checks
        self._count_written = count_written
        self._read: set[str] = set()
        self._turns = 0
        self._rejections = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source == "user":
            self._rejections = self._turns = 0
        return prompt

    async def before_request(self, run: Run) -> Stop | None:
        self._turns += 1
        return None

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if pending.call.name == "view" and result.kind == "success":
            self._read.add(str(pending.args.get("path")))
        if result.shell is not None and pending.call.name == "bash":
            self.checks.record(str(pending.args.get("command") or ""), result.shell.exit_code)
        return result

    async def before_stop(self, run: Run, stop: Stop) -> Prompt | Stop | None:
        missing = self._find_missing()
        if not missing:
            return None
        if self._rejections >= MAX_REJECTIONS:
            message = (
                f"The agent wanted to stop {MAX_REJECTIONS + 1} times although something was "
                f"missing: {'; '.join(missing)}. Correct the setting stopGate, or do the rest."
            )
            run.session.emit(SessionWarning(warning_type="stop_gate", message=message))
            return Stop(reason="stop_gate", exit_code=ExitCode.INCOMPLETE, message=message)
        self._rejections += 1
        lines = "\n".join(f"- {item}" for item in missing)
        text = f"<stop_gate>\nYou cannot stop yet. Still missing:\n{lines}\n</stop_gate>"
        return Prompt(text=text, source=SOURCE, billable=False)

    def _find_missing(self) -> list[str]:
        wanted, missing = self._settings, []
        for what, have, need in (
            ("read", len(self._read), wanted.files_read),
            ("changed", self._count_written(), wanted.files_written),
        ):
            if have < need:
                missing.append(f"{count(need, 'file')} must be {what}, and {have} were")
        if self._turns < wanted.turns:
            missing.append(f"work for at least {count(wanted.turns, 'turn')}, not {self._turns}")
        for check, passed in self.checks.outcomes.items():
            if passed is None:
                missing.append(f"run `{check}` with the bash tool, after your last change")
            elif not passed:
                missing.append(f"`{check}` failed; correct that and run it again")
        return missing
