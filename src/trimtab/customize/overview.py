"""Lists everything that customizes a session in a folder, for `trimtab customizations`."""

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.checkout.checkout import find_checkout
from trimtab.config.paths import find_home
from trimtab.contracts.customization import Customization, Kind, Problem
from trimtab.contracts.options import SessionOptions
from trimtab.customize.customizations import Customizations
from trimtab.customize.hook_files import find_hooks
from trimtab.customize.plugins import check_registry
from trimtab.customize.subagent_settings import read_settings
from trimtab.customize.vendors import find_vendor_settings
from trimtab.customize.view import (
    attach_problems,
    view_agents,
    view_flags,
    view_hooks,
    view_instructions,
    view_language_servers,
    view_plugins,
    view_servers,
    view_settings,
    view_skills,
)

ORDER: tuple[Kind, ...] = (
    "instruction",
    "skill",
    "command",
    "agent",
    "mcp-server",
    "hook",
    "plugin",
    "setting",
)


class Overview(msgspec.Struct, frozen=True):
    """All entries, and by kind the problems that belong to no entry."""

    entries: list[Customization]
    problems: dict[Kind, list[Problem]]
    trusted: bool

    def find(self, name: str) -> list[Customization]:
        """Return entries by name, or by the end of their file's path."""
        wanted = name.removeprefix("/")
        return [
            entry
            for entry in self.entries
            if wanted in (entry.name, entry.file) or entry.file.endswith("/" + wanted)
        ]


def survey(env: Mapping[str, str], options: SessionOptions) -> Overview:
    """List what a session with these options would load, and what it would skip and why."""
    loaded = gather(env, options)
    overview = _build(loaded, trusted=loaded.trusted)
    if loaded.trusted:
        return overview
    everything = gather(env, options)
    everything.trusted = True
    seen = {(entry.kind, entry.name, entry.file) for entry in overview.entries}
    untrusted = [
        msgspec.structs.replace(entry, trusted=False, overridden_by="", why="")
        for entry in _build(everything, trusted=False).entries
        if (entry.kind, entry.name, entry.file) not in seen
    ]
    entries = sorted((*overview.entries, *untrusted), key=_position)
    return msgspec.structs.replace(overview, entries=entries)


def _position(entry: Customization) -> int:
    return ORDER.index(entry.kind)


def gather(env: Mapping[str, str], options: SessionOptions) -> Customizations:
    """Return the customizations of a session in a folder, without opening a session."""
    return Customizations(find_home(env), env, find_checkout(options.cwd), options)


def _build(found: Customizations, *, trusted: bool) -> Overview:
    repository = found.places.root if found.trusted else None
    roots = [plugin.root for plugin in found.plugins]
    hooks = find_hooks(found.places.home, repository, plugins=roots, user=found.places.user)
    flags = found.flags.values()
    parts: tuple[tuple[Kind, Iterable[Customization], Iterable[Problem]], ...] = (
        (
            "instruction",
            view_instructions(found.instructions, found.places),
            found.instructions.problems,
        ),
        ("skill", view_skills(found.skills), found.skills.problems),
        ("agent", view_agents(found.agents, _disabled_agents(found)), found.agents.problems),
        ("mcp-server", view_servers(found.servers), found.servers.problems),
        ("hook", view_hooks(hooks), hooks.problems),
        (
            "plugin",
            view_plugins(found.all_plugins),
            [
                *(problem for plugin in found.all_plugins for problem in plugin.problems),
                *check_registry(found.places.home),
            ],
        ),
        ("setting", view_settings(found.settings.entries), found.settings.problems),
        ("setting", view_flags(flags), ()),
        (
            "setting",
            view_language_servers(found.language_servers.configured),
            found.language_servers.problems,
        ),
        ("setting", *find_vendor_settings(found.places)),
    )
    entries: list[Customization] = []
    problems: dict[Kind, list[Problem]] = {}
    for kind, viewed, found_problems in parts:
        attached, rest = attach_problems(viewed, found_problems)
        entries += attached
        for problem in rest:
            _add_problem(problem, kind, problems)
    return Overview(sorted(entries, key=_position), problems, trusted)


def _disabled_agents(found: Customizations) -> tuple[str, ...]:
    if "subagents" not in found.settings.values:
        return ()
    return read_settings(found).disabled_subagents


def _add_problem(problem: Problem, kind: Kind, problems: dict[Kind, list[Problem]]) -> None:
    """Add a problem. A problem of a file that is read for two kinds is listed for the last only."""
    if problem.file and not problem.note:
        for other, known in problems.items():
            if other != kind:
                known[:] = [earlier for earlier in known if not _is_same(earlier, problem)]
    if problem not in problems.setdefault(kind, []):
        problems[kind].append(problem)


def _is_same(first: Problem, second: Problem) -> bool:
    return (first.file, first.line, first.note) == (second.file, second.line, second.note)
