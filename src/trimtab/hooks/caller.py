"""Calls all hooks of an event, of files and clients, and combines their answers."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.hook import HookEnd, HookProgress, HookStart
from trimtab.contracts.hooks import GUARDS, HookEntry, HookFailed, HookPort, UnreadableGuard
from trimtab.contracts.ids import new_id
from trimtab.contracts.run import SessionPort
from trimtab.hooks import claude
from trimtab.hooks.answers import check, combine, deny
from trimtab.hooks.runners import HookEnvironment, OnProgress, run_entry

_SUBJECTS = {
    "sessionStart": "source",
    "sessionEnd": "reason",
    "notification": "notification_type",
    "preCompact": "trigger",
    "subagentStart": "agentName",
    "subagentStop": "agentName",
    "errorOccurred": "errorContext",
}
"""The input field that a matcher is compared with, if it is not the tool's name."""

_FILE_ONLY = frozenset(("permissionRequest", "preCompact", "notification"))
"""Events that clients receive as such, without a hook."""

_CHANGES = {
    "modifiedPrompt": "prompt",
    "modifiedTransformedPrompt": "transformedPrompt",
    "modifiedArgs": "toolArgs",
    "modifiedResult": "toolResult",
}
"""Output fields that change the input of the next hook, and the input field they change."""


SETTLE_SECONDS = 3.0


class Hook(Protocol):
    """A hook of a file or of a client."""

    def applies(self, event: str, payload: JsonObject) -> bool: ...

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        """Return the input in the form this hook expects."""
        ...

    async def run(
        self, event: str, given: JsonObject, on_progress: OnProgress
    ) -> JsonObject | None:
        """Run the hook and return its output in our vocabulary. Raises `HookFailed`."""
        ...


class ClientHook:
    """The hooks of a client, called for every event while it has any."""

    def __init__(self, port: HookPort) -> None:
        self._port = port

    def applies(self, event: str, payload: JsonObject) -> bool:
        return event not in _FILE_ONLY and self._port.wanted

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        if "toolArgs" not in payload:
            return payload
        return payload | {"toolArgs": msgspec.json.encode(payload["toolArgs"]).decode()}

    async def run(
        self, event: str, given: JsonObject, on_progress: OnProgress
    ) -> JsonObject | None:
        output = await self._port.call(event, given)
        return check(event, output) if output else None


class FileHook:
    """A hook configured in a file. It runs only while `is_current` says that it is unchanged."""

    def __init__(
        self,
        entry: HookEntry,
        environment: HookEnvironment,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        self.entry = entry
        self._environment = environment
        self._is_current = is_current

    def applies(self, event: str, payload: JsonObject) -> bool:
        entry = self.entry
        return event == entry.event and entry.type != "prompt" and matches(entry, payload)

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        return claude.translate(event, payload) if self.entry.claude else payload

    async def run(
        self, event: str, given: JsonObject, on_progress: OnProgress
    ) -> JsonObject | None:
        if not self._is_current():
            raise HookFailed(
                "a program it runs has changed since the session started; start or resume a session"
            )
        output = await run_entry(self.entry, given, self._environment, on_progress)
        if output and self.entry.claude and "modifiedArgs" in output:
            name = str(given.get("tool_name", ""))
            tool = next((ours for ours, theirs in claude.TOOLS.items() if theirs == name), name)
            output["modifiedArgs"] = claude.read_arguments(tool, output["modifiedArgs"])
        return output


class RefusingGuard:
    """Stands for a guard that cannot be parsed, and denies every call."""

    def __init__(self, guard: UnreadableGuard) -> None:
        self.entry = guard

    def applies(self, event: str, payload: JsonObject) -> bool:
        return event == self.entry.event

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        return payload

    async def run(
        self, event: str, given: JsonObject, on_progress: OnProgress
    ) -> JsonObject | None:
        return deny(event, self.entry.reason)


def matches(entry: HookEntry, payload: JsonObject) -> bool:
    """Return True if a hook's matcher fits. An invalid matcher of a guard fits everything."""
    if entry.matcher in ("", "*"):
        return True
    subject = payload.get(_SUBJECTS.get(entry.event, "toolName"))
    if not isinstance(subject, str):
        return True
    names = {subject, claude.served_name(payload) or subject}
    if entry.claude:
        names.add(claude.tool_name(subject))
    try:
        return any(re.fullmatch(entry.matcher, name) for name in names)
    except re.error:
        return entry.event in GUARDS


class HookCaller:
    """Calls the hooks of a session in order, and emits an event before and after each call."""

    def __init__(
        self,
        session: SessionPort,
        cwd: str,
        hooks: Sequence[Hook],
        identity: JsonObject | None = None,
    ) -> None:
        self._session = session
        self._cwd = cwd
        self._hooks = hooks
        self._identity = identity or {"sessionId": session.id}
        self.unawaited: set[asyncio.Task[None]] = set()
        """Calls in the background, which the run does not await."""

    def move(self, cwd: str) -> None:
        """Name another working directory in the input of hooks from now on."""
        self._cwd = cwd

    async def settle(self) -> None:
        """Wait a few seconds for calls in the background to finish."""
        if self.unawaited:
            await asyncio.wait(self.unawaited, timeout=SETTLE_SECONDS)

    def for_agent(self, session: SessionPort, identity: JsonObject) -> "HookCaller":
        """Return a caller of the same hooks for a sub-agent, with its identity in their input."""
        return HookCaller(session, self._cwd, self._hooks, identity)

    def listens(self, event: str) -> bool:
        """Return True if any hook applies to an event."""
        return any(hook.applies(event, {}) for hook in self._hooks)

    async def call(self, event: str, **given: Any) -> JsonObject:
        """Call the hooks of an event and return their combined answer, empty if there is none."""
        payload: JsonObject = {
            **self._identity,
            "timestamp": int(time.time() * 1000),
            "cwd": self._cwd,
            **given,
        }
        hooks = [hook for hook in self._hooks if hook.applies(event, payload)]
        outputs: list[JsonObject] = []
        changed_by = 0
        for index, hook in enumerate(hooks):
            output = await self._invoke(hook, event, payload)
            outputs.append(output)
            after = payload | _changes(output, payload)
            if after != payload:
                payload, changed_by = after, index
        if event == "preToolUse" and changed_by:
            outputs += await self._call_again(hooks[:changed_by], payload)
        return combine(outputs)

    async def _call_again(self, hooks: Sequence[Hook], payload: JsonObject) -> list[JsonObject]:
        """Call the hooks again that saw the call before a later hook changed its arguments."""
        outputs = []
        for hook in hooks:
            output = await self._invoke(hook, "preToolUse", payload)
            if output.pop("modifiedArgs", payload["toolArgs"]) != payload["toolArgs"]:
                output |= deny("preToolUse", "two hooks change the arguments differently")
            outputs.append(output)
        return outputs

    def _report_progress(self, message: str) -> None:
        self._session.emit(HookProgress(message=message))

    async def _invoke(self, hook: Hook, event: str, payload: JsonObject) -> JsonObject:
        call_id = new_id()
        given = hook.shape(event, payload)
        self._session.emit(HookStart(hook_invocation_id=call_id, hook_type=event, input=given))
        output: JsonObject | None = None
        problem: str | None = "The hook was interrupted."
        try:
            output = await hook.run(event, given, self._report_progress)
            problem = None
        except HookFailed as failure:
            problem = str(failure)
            if event in GUARDS:  # guards fail closed
                output = deny(event, f"the hook failed ({failure})")
        finally:
            self._session.emit(
                HookEnd(
                    hook_invocation_id=call_id,
                    hook_type=event,
                    success=problem is None,
                    output=output,
                    error=None if problem is None else {"message": problem},
                )
            )
        return dict(output or {})


def _changes(output: JsonObject, payload: JsonObject) -> JsonObject:
    changes: JsonObject = {}
    for field, name in _CHANGES.items():
        if field not in output or name not in payload:
            continue
        value, before = output[field], payload[name]
        if name == "toolResult":
            change = value if isinstance(value, dict) else {"textResultForLlm": str(value)}
            value = before | change
            output[field] = value
        changes[name] = value
    return changes
