"""Hooks outside a session: which there are in a folder, and what each says to a sample input."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.config.paths import find_home
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import GUARDS, FoundHooks, HookEntry, HookFailed
from trimtab.customize.hook_files import find_hooks
from trimtab.hooks.answers import combine, deny
from trimtab.hooks.caller import FileHook
from trimtab.runtime.folder_trust import FolderTrust, judge_folder
from trimtab.runtime.hook_setup import is_off, read_disabled, surround
from trimtab.runtime.options import SessionOptions
from trimtab.workspace.local import LocalWorkspace

_CALL: JsonObject = {
    "toolName": "bash",
    "toolArgs": {"command": "echo hello", "description": "Say hello"},
    "toolCallId": "sample-call",
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


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks of a folder, and whether its own may run."""

    found: FoundHooks
    trust: FolderTrust
    off: frozenset[str] = frozenset()

    def runs(self, entry: HookEntry) -> bool:
        return not self.obstacle(entry)

    def obstacle(self, entry: HookEntry) -> str:
        """Why a hook does not run; nothing if it does."""
        if entry.origin == "repository" and not self.trust.allows("hooks"):
            return "not trusted"
        return "switched off" if is_off(entry, self.off) else ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook said: its output, or how it failed."""

    entry: HookEntry
    given: JsonObject
    output: JsonObject | None
    problem: str | None
    seconds: float


async def list_hooks(env: Mapping[str, str], cwd: str, *, trusted: bool) -> Listed:
    """All hooks that a session in a folder would have, those of an untrusted folder included."""
    home = find_home(env)
    trust = await judge_folder(home, cwd, env, trusted=trusted, ask=None)
    found = find_hooks(home, trust.root, user=env.get("HOME", ""))
    return Listed(found=found, trust=trust, off=read_disabled(home))


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
        for entry in listed.found.entries:
            hook = FileHook(entry, around)
            if listed.runs(entry) and hook.applies(event, payload):
                said.append(await _try(hook, event, payload))
    finally:
        await workspace.aclose()
    return said, combine([_counted(event, one) for one in said])


async def _try(hook: FileHook, event: str, payload: JsonObject) -> Said:
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
