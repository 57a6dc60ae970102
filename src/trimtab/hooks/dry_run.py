"""Hooks outside a session: which there are in a folder, and what each says to a sample input."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.config.paths import find_home
from trimtab.config.trust import Trust
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import GUARDS, FoundHooks, HookEntry, HookFailed, UnreadableGuard
from trimtab.contracts.options import SessionOptions
from trimtab.customize.hook_files import find_hooks, fingerprint
from trimtab.customize.plugins import find_plugins
from trimtab.hooks.answers import combine, deny
from trimtab.hooks.caller import FileHook, RefusingGuard
from trimtab.hooks.setup import (
    is_off,
    name_hook,
    read_disabled,
    surround,
)
from trimtab.policy.folder_trust import FolderTrust, judge_folder
from trimtab.workspace.local import LocalWorkspace

_CALL: JsonObject = {
    "toolName": "bash",
    "toolArgs": {"command": "echo hello", "description": "Say hello"},
    "toolCallId": "sample-call",
}
_AGENT: JsonObject = {
    "agentId": "sample-agent",
    "agentName": "explore",
    "agentDisplayName": "Explore",
    "agentDescription": "Looks around",
}
SAMPLES: dict[str, JsonObject] = {
    "sessionStart": {"source": "new", "initialPrompt": "Say hello"},
    "sessionEnd": {"reason": "complete", "finalMessage": "Hello."},
    "userPromptSubmitted": {"prompt": "Say hello"},
    "userPromptTransformed": {"prompt": "Say hello", "transformedPrompt": "Say hello"},
    "preToolUse": _CALL,
    "permissionRequest": {
        "toolName": "bash",
        "toolInput": _CALL["toolArgs"],
        "permissionSuggestions": ["shell(echo)"],
    },
    "postToolUse": {
        **_CALL,
        "toolResult": {"resultType": "success", "textResultForLlm": "hello"},
    },
    "postToolUseFailure": {**_CALL, "error": "No such file or directory"},
    "agentStop": {"transcriptPath": "", "stopReason": "end_turn", "stop_hook_active": False},
    "subagentStart": _AGENT,
    "subagentStop": {
        **_AGENT,
        "transcriptPath": "",
        "stopReason": "end_turn",
        "stop_hook_active": False,
        "response": "Hello.",
    },
    "preMcpToolCall": {
        "serverName": "sample",
        "toolName": "echo",
        "arguments": {"text": "hello"},
        "toolCallId": "sample-call",
    },
    "preCompact": {"trigger": "manual", "customInstructions": ""},
    "notification": {
        "notification_type": "permission_prompt",
        "message": "Permission is needed: touch file",
    },
    "errorOccurred": {
        "error": {"message": "The service did not answer.", "name": "ModelError"},
        "errorContext": "model_call",
        "recoverable": True,
    },
}
"""An input for each event that this version calls hooks at."""


SWITCHED_OFF = "switched off"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks of a folder, and whether its own may run."""

    found: FoundHooks
    trust: FolderTrust
    off: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    """Files and lines of the folder's hooks that are not as they were trusted."""

    @property
    def entries(self) -> Sequence[HookEntry | UnreadableGuard]:
        return self.found.all

    def runs(self, entry: HookEntry | UnreadableGuard) -> bool:
        return not self.obstacle(entry)

    def obstacle(self, entry: HookEntry | UnreadableGuard) -> str:
        """Why a hook does not run; nothing if it does."""
        if entry.origin == "repository" and not self.trust.allows("hooks"):
            return "not trusted"
        if f"{entry.file}:{entry.line}" in self.changed:
            return "changed since it was trusted"
        return SWITCHED_OFF if is_off(entry, self.off) else ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook said: its output, or how it failed."""

    entry: HookEntry | UnreadableGuard
    given: JsonObject
    output: JsonObject | None
    problem: str | None
    seconds: float


async def list_hooks(env: Mapping[str, str], cwd: str, *, trusted: bool) -> Listed:
    """All hooks that a session in a folder would have, those of an untrusted folder included."""
    home = find_home(env)
    trust = await judge_folder(home, cwd, env, trusted=trusted, ask=None)
    plugins = [one.root for one in find_plugins(home) if one.enabled and one.trusted]
    found = find_hooks(home, trust.root, plugins=plugins, user=env.get("HOME", ""))
    changed = find_changed(found, trust) if trust.trusted and not trust.for_now else ()
    return Listed(found=found, trust=trust, off=read_disabled(home), changed=frozenset(changed))


def find_changed(found: FoundHooks, trust: FolderTrust) -> Iterator[str]:
    """Hooks of a trusted folder that a session would ask about."""
    known = Trust(trust.home)
    for entry in found.entries:
        if entry.origin != "repository":
            continue
        name, digest = name_hook(entry, trust.root).path, fingerprint(entry, trust.root)
        if not known.accepts(trust.root, "hooks", name, digest):
            yield f"{entry.file}:{entry.line}"


async def try_hooks(
    listed: Listed, env: Mapping[str, str], cwd: str, event: str, given: JsonObject
) -> tuple[list[Said], JsonObject]:
    """Run the hooks of an event on an input; what each said, and what follows from it."""
    workspace = LocalWorkspace(root=cwd, files=cwd, session_id="sample", env=env)
    around = surround(workspace, SessionOptions(cwd=cwd), listed.trust.root, env)
    payload: JsonObject = {
        "sessionId": "sample",
        "timestamp": int(time.time() * 1000),
        "cwd": cwd,
        **given,
    }
    said: list[Said] = []
    try:
        for entry in listed.entries:
            hook = FileHook(entry, around) if isinstance(entry, HookEntry) else RefusingGuard(entry)
            if listed.runs(entry) and hook.applies(event, payload):
                said.append(await _try(hook, event, payload))
    finally:
        await workspace.aclose()
    return said, combine([_counted(event, one) for one in said])


async def _try(hook: FileHook | RefusingGuard, event: str, payload: JsonObject) -> Said:
    given = hook.shape(event, payload)
    started = time.perf_counter()
    output: Any = None
    problem = None
    try:
        output = await hook.run(event, given, lambda _: None)
    except HookFailed as failure:
        problem = str(failure)
    seconds = time.perf_counter() - started
    return Said(entry=hook.entry, given=given, output=output, problem=problem, seconds=seconds)


def _counted(event: str, said: Said) -> JsonObject:
    if said.problem is not None and event in GUARDS:
        return deny(event, f"the hook could not be asked ({said.problem})")
    return dict(said.output or {})
