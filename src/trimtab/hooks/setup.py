"""Gathers the hooks of a session: of files that may be used, and of its client."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.config.files import read_regular
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
LARGEST = 1024 * 1024
"""Bytes of a settings file that are looked at."""


async def set_up_hooks(
    context: "SessionContext", options: "SessionOptions", client: "Client", env: Mapping[str, str]
) -> tuple["HookCaller | None", tuple[str, ...]]:
    """Who calls the hooks of a session, None if it has none; and the prompts that start it."""
    entries: Sequence[HookEntry] = ()
    unreadable: Sequence[UnreadableGuard] = ()
    if (
        context.home is not None
        and context.trust is not None
        and (
            _plugin_roots(context)
            or _agent(context)
            or _may_have(context.home, context.trust, _user(context))
        )
    ):
        found = await find_session_hooks(context.home, context.trust, context)
        entries, unreadable = found.entries, found.unreadable
        report_problems(found, context.session)
    if not entries and not unreadable and client.hooks is None:
        return None, ()
    from trimtab.hooks.caller import ClientHook, FileHook, Hook, HookCaller, RefusingGuard

    root = context.trust.root if context.trust else options.cwd
    around = surround(context.workspace, options, root, env)
    hooks: list[Hook] = [FileHook(entry, around, watch_programs(entry, root)) for entry in entries]
    hooks += map(RefusingGuard, unreadable)
    if client.hooks is not None:
        hooks.append(ClientHook(client.hooks))
    prompts = tuple(entry.prompt for entry in entries if entry.type == "prompt")
    return HookCaller(context.session, options.cwd, hooks), prompts


def report_problems(found: "FoundHooks", session: "Session") -> None:
    """Say what is wrong with the files of hooks, and what follows from it."""
    refusing = {(guard.file, guard.line): guard for guard in found.unreadable}
    for problem in found.problems:
        if problem.note:
            continue
        guard = refusing.pop((problem.file, problem.line), None)
        message = problem.sentence if guard is None else f"{guard.reason}."
        session.emit(SessionWarning(warning_type="hook_configuration", message=message))


def watch_programs(entry: "HookEntry", root: str) -> Callable[[], bool]:
    """Says whether the programs of a repository's hook are as they were when a session began.

    An agent that may write files must not choose by them what runs as a hook, outside of its rules.
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
    """The main agent, if its file has hooks."""
    agent = context.customizations.agent if context.customizations else None
    return agent if agent is not None and agent.hooks else None


def _plugin_roots(context: "SessionContext") -> list[str]:
    """The folders of the plugins in use: a person installed them, so they are trusted."""
    return [one.root for one in context.customizations.plugins] if context.customizations else []


def _user(context: "SessionContext") -> str:
    """The person's home directory, where it is known."""
    return context.customizations.env.get("HOME", "") if context.customizations else ""


def _may_have(home: "Home", trust: "FolderTrust", user: str) -> bool:
    """Whether hook files can exist at all; most sessions learn here that they have none."""
    if os.path.isdir(POLICY) or os.path.isdir(os.path.join(home.config, "hooks")):
        return True
    if any(item.kind in ("hooks", "settings") for item in trust.items):
        return True
    return _names_hooks(home.settings) or bool(user and _names_hooks(user + CLAUDE_SETTINGS))


def _names_hooks(settings: str) -> bool:
    try:
        return b'"hooks"' in read_regular(settings, LARGEST)
    except OSError:
        return False


async def find_session_hooks(
    home: "Home", trust: "FolderTrust", context: "SessionContext"
) -> "FoundHooks":
    """The hooks that may run; those of the folder only as far as it is trusted."""
    from trimtab.contracts.hooks import FoundHooks
    from trimtab.customize.hook_files import find_hooks, fingerprint, read_agent_hooks

    repository = trust.root if trust.allows("hooks") else None
    roots, user = _plugin_roots(context), _user(context)
    found = find_hooks(home, repository, plugins=roots, policy=POLICY, user=user)
    if (agent := _agent(context)) is not None:
        more = read_agent_hooks(agent, trust.root)
        found = FoundHooks(
            entries=(*found.entries, *more.entries),
            unreadable=(*found.unreadable, *more.unreadable),
            problems=(*found.problems, *more.problems),
        )
    mine = [entry for entry in found.entries if entry.origin == "repository"]
    digests = [(name_hook(entry, trust.root), fingerprint(entry, trust.root)) for entry in mine]
    admitted = await trust.admit(context.session, "hooks", digests)
    trust.remember("hooks")
    refused = {id(entry) for entry, good in zip(mine, admitted, strict=True) if not good}
    off = read_disabled(home)
    kept = tuple(
        entry for entry in found.entries if id(entry) not in refused and not is_off(entry, off)
    )
    unreadable = tuple(guard for guard in found.unreadable if not is_off(guard, off))
    return FoundHooks(entries=kept, unreadable=unreadable, problems=found.problems)


def read_disabled(home: "Home") -> frozenset[str]:
    """The setting `disabledHooks` of the person; a repository must not switch off what guards."""
    from trimtab.config.jsonc import read_jsonc

    try:
        names = read_jsonc(read_regular(home.settings, LARGEST)).get("disabledHooks")
    except (OSError, ValueError, AttributeError):  # a broken file is told of where it is read whole
        return frozenset()
    return frozenset(name for name in names or () if isinstance(name, str))


def is_off(entry: "HookEntry | UnreadableGuard", names: frozenset[str]) -> bool:
    """Whether a hook is switched off: by what it does, its event and that, or its file's name."""
    if entry.origin == "policy":
        return False
    file = os.path.basename(entry.file)
    return not names.isdisjoint((entry.does, entry.name, entry.file, file, file.partition(".")[0]))


def name_hook(entry: "HookEntry", root: str) -> Loadable:
    file = os.path.relpath(entry.file, root)
    return Loadable("hooks", f"{file}:{entry.line} {entry.name}")


def surround(
    workspace: "LocalWorkspace", options: "SessionOptions", root: str, env: Mapping[str, str]
) -> "HookEnvironment":
    """What hooks of files get to run with."""
    from trimtab.hooks.runners import LARGEST_OUTPUT, HookEnvironment

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        from trimtab.providers.http import HttpClient

        http = HttpClient(env, offline=bool(options.offline))
        try:
            response = await http.request("POST", url, headers, [body])
            try:
                return response.status, await response.read(LARGEST_OUTPUT)
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
