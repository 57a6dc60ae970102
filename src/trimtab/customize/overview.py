"""The one view over everything that customizes a session in a folder."""

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.checkout.checkout import find_checkout
from trimtab.config.feature_flags import resolve_flags
from trimtab.config.paths import find_home
from trimtab.contracts.customization import Customization, Kind, Problem
from trimtab.contracts.options import SessionOptions
from trimtab.customize.customizations import Customizations
from trimtab.customize.hook_files import find_hooks
from trimtab.customize.plugins import check_registry
from trimtab.customize.vendors import find_vendor_settings
from trimtab.customize.view import (
    attach_problems,
    view_agents,
    view_flags,
    view_hooks,
    view_instructions,
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
    """Every entry, and by kind the problems of files that gave none."""

    entries: list[Customization]
    problems: dict[Kind, list[Problem]]
    trusted: bool

    def find(self, name: str) -> list[Customization]:
        """Entries by name, or by the end of their file's path."""
        wanted = name.removeprefix("/")
        return [
            entry
            for entry in self.entries
            if wanted in (entry.name, entry.file) or entry.file.endswith("/" + wanted)
        ]


def survey(env: Mapping[str, str], options: SessionOptions) -> Overview:
    """What a session with these options would load, and what it would leave out and why."""
    loaded = gather(env, options)
    overview = _build(loaded, env, trusted=loaded.trusted)
    if loaded.trusted:
        return overview
    everything = gather(env, options)
    everything.trusted = True
    seen = {(one.kind, one.name, one.file) for one in overview.entries}
    untrusted = [
        msgspec.structs.replace(one, trusted=False, overridden_by="", why="")
        for one in _build(everything, env, trusted=False).entries
        if (one.kind, one.name, one.file) not in seen
    ]
    entries = sorted((*overview.entries, *untrusted), key=_place)
    return msgspec.structs.replace(overview, entries=entries)


def _place(entry: Customization) -> int:
    return ORDER.index(entry.kind)


def gather(env: Mapping[str, str], options: SessionOptions) -> Customizations:
    """The customizations of a session in a folder, without the session."""
    return Customizations(find_home(env), env, find_checkout(options.cwd), options)


def _build(found: Customizations, env: Mapping[str, str], *, trusted: bool) -> Overview:
    repository = found.places.root if found.trusted else None
    roots = [plugin.root for plugin in found.plugins]
    hooks = find_hooks(found.places.home, repository, plugins=roots, user=found.places.user)
    flags = resolve_flags(found.places.home, env).values()
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
        ("setting", *find_vendor_settings(found.places)),
    )
    entries: list[Customization] = []
    problems: dict[Kind, list[Problem]] = {}
    for kind, viewed, wrong in parts:
        attached, rest = attach_problems(viewed, wrong)
        entries += attached
        for problem in rest:
            _tell(problem, kind, problems)
    return Overview(sorted(entries, key=_place), problems, trusted)


def _disabled_agents(found: Customizations) -> tuple[str, ...]:
    if "subagents" not in found.settings.values:
        return ()
    from trimtab.customize.subagent_settings import read_settings

    return read_settings(found).disabled_subagents


def _tell(problem: Problem, kind: Kind, told: dict[Kind, list[Problem]]) -> None:
    """Add a problem. What is wrong with a file that is read for two kinds is told by the last."""
    if problem.file and not problem.note:
        for other, known in told.items():
            if other != kind:
                known[:] = [one for one in known if not _is_same(one, problem)]
    if problem not in told.setdefault(kind, []):
        told[kind].append(problem)


def _is_same(one: Problem, other: Problem) -> bool:
    return (one.file, one.line, one.note) == (other.file, other.line, other.note)
