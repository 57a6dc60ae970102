"""Turns customizations of each kind into entries of the overview."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from trimtab.config.feature_flags import UNKNOWN, Flag
from trimtab.config.settings import Setting
from trimtab.contracts.customization import (
    Customization,
    FoundAgents,
    FoundInstructions,
    FoundSkills,
    Kind,
    Problem,
    Shadowed,
    Source,
)
from trimtab.contracts.hooks import FoundHooks
from trimtab.contracts.language import LanguageServer
from trimtab.customize.mcp_servers import FoundServers
from trimtab.customize.places import Places
from trimtab.customize.plugins import ABOUT, CHANGED, Plugin

MERGED = "files with the same text are one instruction"
USED_FIELD = "used"
FOR_PEOPLE = "it is for people who share the plugin"


def view_instructions(found: FoundInstructions, places: Places) -> Iterable[Customization]:
    for instruction in found.instructions:
        for index, path in enumerate(instruction.paths):
            yield Customization(
                name=places.shorten(path),
                kind="instruction",
                source=instruction.source,
                file=path,
                scope=", ".join(instruction.globs) or "always",
                description=instruction.description,
                overridden_by=places.shorten(instruction.paths[0]) if index else "",
                why=MERGED if index else "",
                prompt="" if index or instruction.globs else instruction.text,
                fields=dict.fromkeys(instruction.fields, USED_FIELD),
            )
    yield from _view_shadowed(found.left_out, "instruction")


def view_skills(found: FoundSkills) -> Iterable[Customization]:
    for skill in found.skills.values():
        yield Customization(
            name=skill.name,
            kind="command" if skill.is_command else "skill",
            source="plugin" if skill.plugin else skill.source,
            file=skill.path,
            scope=_callers(skill.user_invocable, skill.model_invocable, f"/{skill.name}"),
            description=skill.description,
            enabled=skill.enabled,
            prompt=f"- {skill.name}: {skill.description}"
            if skill.enabled and skill.model_invocable
            else "",
            fields=dict.fromkeys(skill.fields, USED_FIELD),
        )
    yield from _view_shadowed(found.shadowed, "skill")


def view_agents(found: FoundAgents, disabled: Collection[str] = ()) -> Iterable[Customization]:
    for agent in found.agents.values():
        yield Customization(
            name=agent.name,
            kind="agent",
            source="plugin" if agent.plugin else agent.source,
            file=agent.path,
            scope=_callers(agent.user_invocable, agent.model_invocable, f"--agent {agent.name}"),
            description=agent.description,
            enabled=agent.name not in disabled,
            fields=dict.fromkeys(agent.fields, USED_FIELD),
        )
    yield from _view_shadowed(found.shadowed, "agent")


def view_servers(found: FoundServers) -> Iterable[Customization]:
    for server in found.servers.values():
        yield Customization(
            name=server.name,
            kind="mcp-server",
            source=server.source,
            file=server.file,
            description=server.url or " ".join((server.command, *server.args)),
            enabled=server.enabled,
            fields=dict.fromkeys(server.fields, USED_FIELD),
        )
    yield from _view_shadowed(found.shadowed, "mcp-server")


def view_language_servers(servers: Iterable[LanguageServer]) -> Iterable[Customization]:
    for server in servers:
        yield Customization(
            name=f"lspServers.{server.name}",
            kind="setting",
            source="user" if server.source.endswith("lsp-config.json") else "repository",
            file=server.source,
            scope=" ".join(sorted(server.languages)),
            description=" ".join(server.argv),
            fields=server.fields,
        )


def view_plugins(plugins: Iterable[Plugin]) -> Iterable[Customization]:
    for plugin in plugins:
        yield Customization(
            name=plugin.name,
            kind="plugin",
            source="flag" if plugin.by_flag else "plugin",
            file=plugin.file,
            description=f"{plugin.version} {plugin.description}".strip(),
            trusted=plugin.trusted,
            enabled=plugin.enabled,
            why="" if plugin.trusted else CHANGED,
            fields={field: FOR_PEOPLE if field in ABOUT else USED_FIELD for field in plugin.fields},
        )


def view_hooks(found: FoundHooks) -> Iterable[Customization]:
    sources: dict[str, Source] = {"policy": "environment", "user": "user", "plugin": "plugin"}
    for hook in found.all:
        yield Customization(
            name=hook.event,
            kind="hook",
            source=sources.get(hook.origin, "repository"),
            file=hook.file,
            line=hook.line,
            scope=hook.matcher or "always",
            description=hook.does,
            fields=dict.fromkeys(found.fields.get((hook.file, hook.line), ()), USED_FIELD),
        )


def view_settings(settings: Sequence[Setting]) -> Iterable[Customization]:
    for setting in settings:
        yield Customization(
            name=setting.key,
            kind="setting",
            source="user" if setting.level == "user" else "repository",
            file=setting.file,
            scope=setting.level,
            description=_shorten(str(setting.value)),
            overridden_by=f"the {setting.overridden_by} settings" if setting.overridden_by else "",
            why="local wins over repository, repository over user" if setting.overridden_by else "",
        )


def view_flags(flags: Iterable[Flag]) -> Iterable[Customization]:
    """Yield the feature flags that do not have their default."""
    for flag in flags:
        if not flag.by_tier:
            by_file = "/" in flag.decided_by
            yield Customization(
                name=f"feature_flags.{flag.name}",
                kind="setting",
                source="user" if by_file else "environment",
                file=flag.decided_by if by_file else "",
                description=f"{flag.tier}, by {flag.decided_by}",
                enabled=flag.enabled and flag.description != UNKNOWN,
                why="no such flag exists" if flag.description == UNKNOWN else "",
            )


def attach_problems(
    entries: Iterable[Customization], problems: Iterable[Problem]
) -> tuple[list[Customization], list[Problem]]:
    """Add problems to the entries they belong to; return the entries and the other problems."""
    viewed = list(entries)
    entries_of: dict[str, int] = {}
    for entry in viewed:
        entries_of[entry.file] = entries_of.get(entry.file, 0) + 1
    unattached: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        unattached.setdefault((problem.file, problem.entry), []).append(problem)
    attached = []
    for entry in viewed:
        name = f"line {entry.line}" if entry.kind == "hook" else entry.name
        found = unattached.pop((entry.file, name), [])
        if entries_of[entry.file] == 1:
            found += unattached.pop((entry.file, ""), [])
        attached.append(_with_problems(entry, found) if found else entry)
    return attached, [problem for rest in unattached.values() for problem in rest]


def _with_problems(entry: Customization, problems: Sequence[Problem]) -> Customization:
    messages = {
        problem.field: problem.message for problem in problems if problem.field in entry.fields
    }
    return msgspec.structs.replace(
        entry, problems=tuple(problems), fields={**entry.fields, **messages}
    )


def _view_shadowed(shadowed: Iterable[Shadowed], kind: Kind) -> Iterable[Customization]:
    for entry in shadowed:
        yield Customization(
            name=entry.name,
            kind=kind,
            source=entry.source,
            file=entry.path,
            enabled=bool(entry.by),
            overridden_by=entry.by,
            why=entry.why,
            fields=dict.fromkeys(entry.fields, "no effect: the whole file is not used"),
        )


def _callers(person: bool, model: bool, call: str) -> str:
    callers = [call] if person else []
    if model:
        callers.append("the model")
    return " or ".join(callers) or "nobody"


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
