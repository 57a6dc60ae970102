"""Finds the hooks of a session, in trusted files and of its client, and builds their caller."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.config.files import read_regular
from trimtab.config.jsonc import read_jsonc
from trimtab.config.paths import POLICY
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.questions import Loadable

if TYPE_CHECKING:
    from trimtab.config.paths import Home
    from trimtab.contracts.customization import AgentDefinition
    from trimtab.contracts.hooks import FoundHooks, HookEntry, UnreadableGuard
    from trimtab.contracts.options import Client, SessionOptions
    from trimtab.customize.context import SessionContext
    from trimtab.hooks.caller import HookCaller
    from trimtab.hooks.runners import HookEnvironment
    from trimtab.policy.folder_trust import FolderTrust
    from trimtab.session.session import Session
    from trimtab.workspace.local import LocalWorkspace

CLAUDE_SETTINGS = "/.claude/settings.json"
MAX_SETTINGS_BYTES = 1024 * 1024


async def set_up_hooks(
    context: "SessionContext", options: "SessionOptions", client: "Client", env: Mapping[str, str]
) -> tuple["HookCaller | None", tuple[str, ...]]:
    """Return the caller of a session's hooks, or None if it has none, and its prompt hooks."""
    entries: Sequence[HookEntry] = ()
    unreadable: Sequence[UnreadableGuard] = ()
    if (
        context.home is not None
        and context.trust is not None
        and (
            _plugin_roots(context)
            or _named_folders(context)
            or _agent(context)
            or _may_have_hooks(context.home, context.trust, _user(context))
        )
    ):
        found = await find_session_hooks(context.home, context.trust, context)
        entries, unreadable = found.entries, found.unreadable
        report_problems(found, context.session)
    if not entries and not unreadable and client.hooks is None:
        return None, ()
    from trimtab.hooks.caller import ClientHook, FileHook, Hook, HookCaller, RefusingGuard

    root = context.trust.root if context.trust else options.cwd
    environment = build_environment(context.workspace, options, root, env)
    hooks: list[Hook] = [
        FileHook(entry, environment, watch_programs(entry, root)) for entry in entries
    ]
    hooks += map(RefusingGuard, unreadable)
    if client.hooks is not None:
        hooks.append(ClientHook(client.hooks))
    prompts = tuple(entry.prompt for entry in entries if entry.type == "prompt")
    return HookCaller(context.session, options.cwd, hooks), prompts


def report_problems(found: "FoundHooks", session: "Session") -> None:
    """Emit a warning for each problem of a hook file."""
    unreadable = {(guard.file, guard.line): guard for guard in found.unreadable}
    for problem in found.problems:
        if problem.note:
            continue
        guard = unreadable.pop((problem.file, problem.line), None)
        message = problem.sentence if guard is None else f"{guard.reason}."
        session.emit(SessionWarning(warning_type="hook_configuration", message=message))


def watch_programs(entry: "HookEntry", root: str) -> Callable[[], bool]:
    """Return a function that is True while the programs of a repository's hook are unchanged.

    Otherwise an agent could change a hook's program, which runs outside the agent's permissions.
    """
    if entry.origin != "repository":
        return lambda: True
    from trimtab.customize.hook_files import fingerprint

    before = fingerprint(entry, root)

    def is_current() -> bool:
        try:
            return fingerprint(entry, root) == before
        except OSError:
            return False

    return is_current


def _agent(context: "SessionContext") -> "AgentDefinition | None":
    """Return the main agent if its file has hooks."""
    agent = context.customizations.agent if context.customizations else None
    return agent if agent is not None and agent.hooks else None


def _plugin_roots(context: "SessionContext") -> list[str]:
    """Return the folders of active plugins, which are trusted because a person installed them."""
    custom = context.customizations
    return [plugin.root for plugin in custom.plugins] if custom else []


def _named_folders(context: "SessionContext") -> list[str]:
    """Return the folders of hooks that the client names."""
    custom = context.customizations
    names = custom.given.customize.hook_directories if custom else ()
    return [os.path.join(custom.checkout.cwd, name) for name in names] if custom else []


def _user(context: "SessionContext") -> str:
    """Return the person's home directory, or an empty string if it is unknown."""
    return context.customizations.env.get("HOME", "") if context.customizations else ""


def _may_have_hooks(home: "Home", trust: "FolderTrust", user: str) -> bool:
    """Return False if there cannot be any hook files: a quick check for most sessions."""
    if os.path.isdir(POLICY) or os.path.isdir(os.path.join(home.config, "hooks")):
        return True
    if any(item.kind in ("hooks", "settings") for item in trust.items):
        return True
    return _mentions_hooks(home.settings) or bool(user and _mentions_hooks(user + CLAUDE_SETTINGS))


def _mentions_hooks(settings: str) -> bool:
    try:
        return b'"hooks"' in read_regular(settings, MAX_SETTINGS_BYTES)
    except OSError:
        return False


async def find_session_hooks(
    home: "Home", trust: "FolderTrust", context: "SessionContext"
) -> "FoundHooks":
    """Return the hooks that may run; those of the folder only as far as it is trusted."""
    from trimtab.contracts.hooks import FoundHooks
    from trimtab.customize.hook_files import find_hooks, fingerprint, read_agent_hooks

    custom = context.customizations
    wanted = custom is None or custom.given.customize.loads_repository_hooks
    repository = trust.root if wanted and trust.allows("hooks") else None
    roots, user = _plugin_roots(context), _user(context)
    named = _named_folders(context)
    found = find_hooks(home, repository, plugins=roots, named=named, policy=POLICY, user=user)
    if (agent := _agent(context)) is not None:
        more = read_agent_hooks(agent, trust.root)
        found = FoundHooks(
            entries=(*found.entries, *more.entries),
            unreadable=(*found.unreadable, *more.unreadable),
            problems=(*found.problems, *more.problems),
        )
    own = [entry for entry in found.entries if entry.origin == "repository"]
    digests = [(name_hook(entry, trust.root), fingerprint(entry, trust.root)) for entry in own]
    admitted = await trust.admit(context.session, "hooks", digests)
    trust.remember("hooks")
    refused = {id(entry) for entry, allowed in zip(own, admitted, strict=True) if not allowed}
    disabled = read_disabled(home)
    entries = tuple(
        entry
        for entry in found.entries
        if id(entry) not in refused and not is_disabled(entry, disabled)
    )
    unreadable = tuple(guard for guard in found.unreadable if not is_disabled(guard, disabled))
    return FoundHooks(entries=entries, unreadable=unreadable, problems=found.problems)


def read_disabled(home: "Home") -> frozenset[str]:
    """Read the person's setting `disabledHooks`. A repository cannot disable hooks."""
    try:
        names = read_jsonc(read_regular(home.settings, MAX_SETTINGS_BYTES)).get("disabledHooks")
    except (OSError, ValueError, AttributeError):  # reported where the settings are read
        return frozenset()
    return frozenset(name for name in names or () if isinstance(name, str))


def is_disabled(entry: "HookEntry | UnreadableGuard", names: frozenset[str]) -> bool:
    """Return True if the names contain a hook's command, its event and command, or its file."""
    if entry.origin == "policy":
        return False
    file = os.path.basename(entry.file)
    return not names.isdisjoint((entry.does, entry.name, entry.file, file, file.partition(".")[0]))


def name_hook(entry: "HookEntry", root: str) -> Loadable:
    file = os.path.relpath(entry.file, root)
    return Loadable("hooks", f"{file}:{entry.line} {entry.name}")


def build_environment(
    workspace: "LocalWorkspace", options: "SessionOptions", root: str, env: Mapping[str, str]
) -> "HookEnvironment":
    """Build the environment that hooks of files run in."""
    from trimtab.hooks.runners import MAX_OUTPUT_BYTES, HookEnvironment

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        from trimtab.providers.http import HttpClient

        http = HttpClient(env, offline=bool(options.offline))
        try:
            response = await http.request("POST", url, headers, [body])
            try:
                return response.status, await response.read(MAX_OUTPUT_BYTES)
            finally:
                response.close()
        finally:
            await http.aclose()

    return HookEnvironment(
        cwd=options.cwd,
        project=root,
        env=workspace.child_env,
        outside=env,
        run=workspace.feed,
        post=post,
    )
