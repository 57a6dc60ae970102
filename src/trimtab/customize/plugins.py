"""Plugins: folders that bring skills, commands, agents, MCP servers and hooks together."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.config.edit import read_object
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import Home
from trimtab.config.trust import Trust
from trimtab.contracts.customization import Problem
from trimtab.contracts.errors import TrimtabError
from trimtab.customize.folders import AgentFolder, SkillFolder
from trimtab.customize.mcp_servers import workspace_file
from trimtab.customize.plugin_content import digest_plugin
from trimtab.customize.reading import read_text
from trimtab.customize.server_entry import ServerFile

MANIFESTS = (
    ".plugin/plugin.json",
    "plugin.json",
    ".github/plugin/plugin.json",
    ".claude-plugin/plugin.json",
)
KIND = "plugins"
CHANGED = "it is not loaded: it was changed since you trusted it, or was never trusted"
REGISTRY = "installed_plugins"
"""The field of `config.json` that names installed plugins."""
_USED = frozenset(
    ("name", "description", "version", "skills", "commands", "agents", "hooks", "mcpServers")
)
_NO_EFFECT = {
    "lspServers": "language servers are not used",
    "extensions": "extensions are not run",
    "outputStyles": "there are no output styles",
    "monitors": "there are no monitors",
    "dependencies": "install what it needs yourself",
    "settings": "settings are the person's choice, not a plugin's",
    "userConfig": "set variables in the environment",
}
ABOUT = frozenset(
    ("author", "homepage", "repository", "license", "keywords", "category", "tags", "$schema")
)


class Installed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is kept about an installed plugin. `commit` is what was fetched, `pinned` if wanted."""

    name: str
    cache_path: str
    marketplace: str = ""
    version: str = ""
    enabled: bool = True
    source: str = ""
    ref: str = ""
    commit: str = ""
    pinned: bool = False


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin as its folder says. Paths are absolute and inside `root`."""

    name: str
    root: str
    file: str
    description: str = ""
    version: str = ""
    enabled: bool = True
    trusted: bool = True
    by_flag: bool = False
    skills: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    servers: tuple[ServerFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def skill_folders(self) -> list[SkillFolder]:
        return [
            SkillFolder(
                path=path, source="plugin", origin="plugin", plugin=self.name, commands=prompts
            )
            for paths, prompts in ((self.skills, False), (self.commands, True))
            for path in paths
        ]

    @property
    def agent_folders(self) -> list[AgentFolder]:
        return [
            AgentFolder(path=path, source="plugin", origin="plugin", plugin=self.name)
            for path in self.agents
        ]


def find_plugins(home: Home, folders: Sequence[str] = ()) -> tuple[Plugin, ...]:
    """Those a flag names, then the installed ones; of one name the first is used.

    An installed one that is not as it was when it was trusted is not trusted.
    """
    found: dict[str, Plugin] = {}
    for folder in folders:
        plugin = read_plugin(folder)
        found.setdefault(plugin.name, msgspec.structs.replace(plugin, by_flag=True))
    for one in read_registry(home):
        plugin = read_plugin(one.cache_path, one.name)
        plugin = msgspec.structs.replace(plugin, enabled=one.enabled)
        found.setdefault(plugin.name, _judge(plugin, home) if one.enabled else plugin)
    return tuple(found.values())


def _judge(plugin: Plugin, home: Home) -> Plugin:
    if Trust(home).accepts(home.config, KIND, plugin.name, digest_plugin(plugin.root)):
        return plugin
    message = f"{CHANGED}; look at it, then use `trimtab plugins trust {plugin.name}`"
    problem = Problem(message=message, file=plugin.file)
    return msgspec.structs.replace(plugin, trusted=False, problems=(*plugin.problems, problem))


def trust_plugins(home: Home, plugins: Iterable[Plugin]) -> None:
    """Remember plugins as they are now."""
    digests = [(one.name, digest_plugin(one.root)) for one in plugins]
    Trust(home).accept(home.config, KIND, digests)


def trust_first(home: Home, plugins: Iterable[Plugin]) -> None:
    """Remember the plugins another program installed, if none were ever looked at."""
    installed = [one for one in plugins if one.enabled and not one.by_flag]
    if installed and not Trust(home).has_seen(home.config, KIND):
        trust_plugins(home, installed)


def read_registry(home: Home) -> list[Installed]:
    """The installed plugins; entries that are not understood are left out."""
    try:
        entries = read_object(os.path.join(home.config, "config.json")).get(REGISTRY)
    except TrimtabError:
        return []
    found = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            found.append(msgspec.convert(entry, Installed))
        except msgspec.ValidationError:
            continue
    return found


def check_registry(home: Home) -> list[Problem]:
    """What is wrong with the file that lists plugins, trusted folders and flags."""
    path = os.path.join(home.config, "config.json")
    try:
        read_object(path)
    except TrimtabError as error:
        return [Problem(message=f"nothing of it is used: {error.message}", file=path)]
    return []


def find_manifest(root: str) -> str | None:
    paths = (os.path.join(root, name) for name in MANIFESTS)
    return next((path for path in paths if os.path.isfile(path)), None)


def read_plugin(root: str, name: str = "") -> Plugin:
    """What a folder brings. Without a manifest the usual folders count, under the folder's name."""
    root = os.path.abspath(root)
    name = name or os.path.basename(root)
    manifest = find_manifest(root)
    if manifest is None:
        missing = () if os.path.isdir(root) else (Problem(message="the folder is gone", file=root),)
        return _Reader(root, root).build({}, name, missing)
    text, problems = read_text(manifest)
    content: Any = {}
    try:
        content = read_jsonc(text.encode()) if text.strip() else {}
    except JsonProblem as error:
        problems = (*problems, Problem(message=str(error), file=manifest, line=error.line))
    if not isinstance(content, dict):
        problems = (*problems, Problem(message="it holds no object", file=manifest))
        content = {}
    return _Reader(root, manifest).build(content, name, problems)


class _Reader:
    def __init__(self, root: str, manifest: str) -> None:
        self._root = root
        self._manifest = manifest
        self.problems: list[Problem] = []

    def build(self, content: Mapping[str, Any], name: str, problems: Sequence[Problem]) -> Plugin:
        self.problems += problems
        given = content.get("name")
        for field in content:
            if field in _NO_EFFECT:
                self._note(f"{field} has no effect: {_NO_EFFECT[field]}", note=True, field=field)
            elif field not in _USED and field not in ABOUT:
                self._note(
                    f"the field {field} is not known and has no effect", note=True, field=field
                )
        return Plugin(
            name=given if isinstance(given, str) and is_plugin_name(given) else name,
            root=self._root,
            file=self._manifest,
            description=str(content.get("description") or ""),
            version=str(content.get("version") or ""),
            skills=self._paths(content, "skills"),
            commands=self._paths(content, "commands"),
            agents=self._paths(content, "agents"),
            servers=self._servers(content.get("mcpServers")),
            problems=tuple(self.problems),
            fields=tuple(content),
        )

    def _paths(self, content: Mapping[str, Any], field: str) -> tuple[str, ...]:
        """The usual folder, and those the manifest names."""
        value = content.get(field, [])
        named = [value] if isinstance(value, str) else value
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            self._note(f"{field} is ignored: it needs a path or a list of paths")
            named = []
        usual = os.path.join(self._root, field)
        paths = [usual] if os.path.isdir(usual) else []
        for one in named:
            path = self._inside(one, field)
            if path is not None and path not in paths:
                paths.append(path)
        return tuple(paths)

    def _inside(self, name: str, field: str) -> str | None:
        path = os.path.normpath(os.path.join(self._root, name))
        real, root = os.path.realpath(path), os.path.realpath(self._root)
        if real != root and not real.startswith(root + os.sep):
            self._note(f"{field} names {name}, which is outside the plugin; it is left out")
            return None
        if not os.path.exists(path):
            self._note(f"{field} names {name}, which does not exist")
            return None
        return path

    def _servers(self, value: Any) -> tuple[ServerFile, ...]:
        if isinstance(value, dict):
            inline = value.get("mcpServers", value)
            content = {"mcpServers": inline}
            return (self._file(self._manifest, content),)
        if isinstance(value, str):
            path = self._inside(value, "mcpServers")
            return (self._file(path),) if path else ()
        return (self._file(workspace_file(self._root)),)

    def _file(self, path: str, content: Any = None) -> ServerFile:
        return ServerFile(path=path, source="plugin", content=content, plugin_root=self._root)

    def _note(self, message: str, *, note: bool = False, field: str = "") -> None:
        problem = Problem(message=message, file=self._manifest, note=note, field=field)
        self.problems.append(problem)


def is_plugin_name(name: str) -> bool:
    """Whether a name can be a folder's, too."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return plain.isalnum() and not name.startswith(".") and len(name) <= 64
