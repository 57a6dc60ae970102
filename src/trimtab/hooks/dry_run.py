"""Lists the hooks of a folder, and runs them on sample inputs without a session."""

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
from trimtab.hooks.setup import build_environment, is_disabled, name_hook, read_disabled
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
    "subagentStart": {**_AGENT, "transcriptPath": ""},
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
"""A sample input for each event with hooks."""


DISABLED = "disabled"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks that a session in a folder would find, and the reasons why some would not run."""

    found: FoundHooks
    trust: FolderTrust
    disabled: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    """The files and lines of the folder's hooks that changed since they were trusted."""

    @property
    def entries(self) -> Sequence[HookEntry | UnreadableGuard]:
        return self.found.all

    def runs(self, entry: HookEntry | UnreadableGuard) -> bool:
        return not self.obstacle(entry)

    def obstacle(self, entry: HookEntry | UnreadableGuard) -> str:
        """Return why a hook does not run; empty if it does."""
        if entry.origin == "repository" and not self.trust.allows("hooks"):
            return "not trusted"
        if f"{entry.file}:{entry.line}" in self.changed:
            return "changed since it was trusted"
        return DISABLED if is_disabled(entry, self.disabled) else ""


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """A hook's run on a sample input: its output, or how it failed."""

    entry: HookEntry | UnreadableGuard
    given: JsonObject
    output: JsonObject | None
    problem: str | None
    seconds: float


async def list_hooks(env: Mapping[str, str], cwd: str, *, trusted: bool) -> Listed:
    """Return all hooks a session in a folder would find, those of an untrusted folder included."""
    home = find_home(env)
    trust = await judge_folder(home, cwd, env, trusted=trusted, ask=None)
    plugins = [plugin.root for plugin in find_plugins(home) if plugin.enabled and plugin.trusted]
    found = find_hooks(home, trust.root, plugins=plugins, user=env.get("HOME", ""))
    changed = find_changed(found, trust) if trust.trusted and not trust.for_now else ()
    disabled = read_disabled(home)
    return Listed(found=found, trust=trust, disabled=disabled, changed=frozenset(changed))


def find_changed(found: FoundHooks, trust: FolderTrust) -> Iterator[str]:
    """Yield the hooks of a trusted folder that changed since they were trusted."""
    known = Trust(trust.home)
    for entry in found.entries:
        if entry.origin != "repository":
            continue
        name, digest = name_hook(entry, trust.root).path, fingerprint(entry, trust.root)
        if not known.accepts(trust.root, "hooks", name, digest):
            yield f"{entry.file}:{entry.line}"


async def try_hooks(
    listed: Listed, env: Mapping[str, str], cwd: str, event: str, given: JsonObject
) -> tuple[list[HookRun], JsonObject]:
    """Run the hooks of an event on an input; return each run and the combined answer."""
    workspace = LocalWorkspace(root=cwd, files=cwd, session_id="sample", env=env)
    options = SessionOptions(cwd=cwd)
    environment = build_environment(workspace, options, listed.trust.root, env)
    payload: JsonObject = {
        "sessionId": "sample",
        "timestamp": int(time.time() * 1000),
        "cwd": cwd,
        **given,
    }
    runs: list[HookRun] = []
    try:
        for entry in listed.entries:
            hook: FileHook | RefusingGuard
            if isinstance(entry, HookEntry):
                hook = FileHook(entry, environment)
            else:
                hook = RefusingGuard(entry)
            if listed.runs(entry) and hook.applies(event, payload):
                runs.append(await _try(hook, event, payload))
    finally:
        await workspace.aclose()
    return runs, combine([_find_answer(event, run) for run in runs])


async def _try(hook: FileHook | RefusingGuard, event: str, payload: JsonObject) -> HookRun:
    given = hook.shape(event, payload)
    started = time.perf_counter()
    output: Any = None
    problem = None
    try:
        output = await hook.run(event, given, lambda _: None)
    except HookFailed as failure:
        problem = str(failure)
    seconds = time.perf_counter() - started
    return HookRun(entry=hook.entry, given=given, output=output, problem=problem, seconds=seconds)


def _find_answer(event: str, run: HookRun) -> JsonObject:
    if run.problem is not None and event in GUARDS:
        return deny(event, f"the hook failed ({run.problem})")
    return dict(run.output or {})
