"""Calls every hook of an event, whoever it belongs to, and makes one answer of theirs."""

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
from trimtab.hooks.runners import HookEnvironment, Tell, run_entry

_SUBJECTS = {
    "sessionStart": "source",
    "sessionEnd": "reason",
    "notification": "notification_type",
    "preCompact": "trigger",
    "subagentStart": "agentName",
    "subagentStop": "agentName",
    "errorOccurred": "errorContext",
}
"""What a matcher is compared with, where it is not the tool's name."""

_FOR_FILES = frozenset(("permissionRequest", "preCompact", "notification"))

_CHANGES = {
    "modifiedPrompt": "prompt",
    "modifiedTransformedPrompt": "transformedPrompt",
    "modifiedArgs": "toolArgs",
    "modifiedResult": "toolResult",
}
"""What the next hook sees changed by the one before."""


SETTLE_SECONDS = 3.0


class Hook(Protocol):
    """One that is asked: a hook of a file, or a client."""

    def applies(self, event: str, payload: JsonObject) -> bool: ...

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        """The input in the form this hook expects."""
        ...

    async def run(self, event: str, given: JsonObject, tell: Tell) -> JsonObject | None:
        """Its output in our words; `tell` hears how far it is. Raises `HookFailed`."""
        ...


class ClientHook:
    """A client that is asked about everything while it wants to be."""

    def __init__(self, port: HookPort) -> None:
        self._port = port

    def applies(self, event: str, payload: JsonObject) -> bool:
        # Clients get questions and events as such; they need no hook to hear of them.
        return event not in _FOR_FILES and self._port.wanted

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        if "toolArgs" not in payload:
            return payload
        return payload | {"toolArgs": msgspec.json.encode(payload["toolArgs"]).decode()}

    async def run(self, event: str, given: JsonObject, tell: Tell) -> JsonObject | None:
        output = await self._port.call(event, given)
        return check(event, output) if output else None


class FileHook:
    """A hook somebody configured in a file. It runs only while it `is_current`: as it was found."""

    def __init__(
        self,
        entry: HookEntry,
        around: HookEnvironment,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        self.entry = entry
        self._around = around
        self._is_current = is_current

    def applies(self, event: str, payload: JsonObject) -> bool:
        entry = self.entry
        return event == entry.event and entry.type != "prompt" and matches(entry, payload)

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        return claude.translate(event, payload) if self.entry.claude else payload

    async def run(self, event: str, given: JsonObject, tell: Tell) -> JsonObject | None:
        if not self._is_current():
            raise HookFailed("a program it runs was changed since; start or resume a session")
        output = await run_entry(self.entry, given, self._around, tell)
        if output and self.entry.claude and "modifiedArgs" in output:
            tool = str(given.get("tool_name", ""))
            ours = next((mine for mine, theirs in claude.TOOLS.items() if theirs == tool), tool)
            output["modifiedArgs"] = claude.read_arguments(ours, output["modifiedArgs"])
        return output


class RefusingGuard:
    """Stands for a guard that cannot be read: it denies whatever it would have been asked."""

    def __init__(self, guard: UnreadableGuard) -> None:
        self.entry = guard

    def applies(self, event: str, payload: JsonObject) -> bool:
        return event == self.entry.event

    def shape(self, event: str, payload: JsonObject) -> JsonObject:
        return payload

    async def run(self, event: str, given: JsonObject, tell: Tell) -> JsonObject | None:
        return deny(event, self.entry.reason)


def matches(entry: HookEntry, payload: JsonObject) -> bool:
    """Whether a hook's matcher fits. One that cannot be read fits everything a guard is asked."""
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
    """Calls the hooks of a session in order, and records that it did."""

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
        """Hook calls that the run does not wait for."""

    async def settle(self) -> None:
        """Give hook calls that nobody waits for a few seconds to finish."""
        if self.unawaited:
            await asyncio.wait(self.unawaited, timeout=SETTLE_SECONDS)

    def for_agent(self, session: SessionPort, identity: JsonObject) -> "HookCaller":
        """The same hooks for another agent, recorded as called for it and told which it is."""
        return HookCaller(session, self._cwd, self._hooks, identity)

    def listens(self, event: str) -> bool:
        """Whether any hook may want to hear of an event."""
        return any(hook.applies(event, {}) for hook in self._hooks)

    async def call(self, event: str, **given: Any) -> JsonObject:
        """What the hooks of an event say together; empty if they say nothing."""
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
            outputs += await self._ask_again(hooks[:changed_by], payload)
        return combine(outputs)

    async def _ask_again(self, hooks: Sequence[Hook], payload: JsonObject) -> list[JsonObject]:
        """Those who judged a call before another hook changed it judge what it has become."""
        outputs = []
        for hook in hooks:
            output = await self._invoke(hook, "preToolUse", payload)
            if output.pop("modifiedArgs", payload["toolArgs"]) != payload["toolArgs"]:
                output |= deny("preToolUse", "hooks do not agree on the arguments")
            outputs.append(output)
        return outputs

    def _tell(self, message: str) -> None:
        self._session.emit(HookProgress(message=message))

    async def _invoke(self, hook: Hook, event: str, payload: JsonObject) -> JsonObject:
        call_id = new_id()
        given = hook.shape(event, payload)
        self._session.emit(HookStart(hook_invocation_id=call_id, hook_type=event, input=given))
        output: JsonObject | None = None
        problem: str | None = "The hook was interrupted."
        try:
            output = await hook.run(event, given, self._tell)
            problem = None
        except HookFailed as failure:
            problem = str(failure)
            if event in GUARDS:  # nobody said that this may happen
                output = deny(event, f"the hook could not be asked ({failure})")
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
