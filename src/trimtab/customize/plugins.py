"""Reads plugins: folders with skills, commands, agents, MCP servers and hooks."""

import hashlib
import os
import stat
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
from trimtab.customize.reading import read_text
from trimtab.customize.server_entry import ServerFile

MANIFESTS = (
    ".plugin/plugin.json",
    "plugin.json",
    ".github/plugin/plugin.json",
    ".claude-plugin/plugin.json",
)
KIND = "plugins"
CHANGED = "it is not loaded: it changed after you trusted it, or you never trusted it"
REGISTRY = "installed_plugins"
"""The field of `config.json` that lists installed plugins."""
MAX_FILES = 20_000
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of a plugin that are hashed; of further files, only sizes and times are."""
GENERATED = frozenset(("__pycache__", ".git"))
"""Folders that change when a plugin is used."""
INERT = (".txt", ".log", ".db", ".sqlite", ".csv", ".tmp", ".lock", ".pid", ".out")
"""Suffixes of files that are never read or run here, and that hooks may write."""
_USED = frozenset(
    (
        "name",
        "description",
        "version",
        "skills",
        "commands",
        "agents",
        "hooks",
        "mcpServers",
        "lspServers",
    )
)
_NO_EFFECT = {
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
    """The entry of an installed plugin. `pinned` means that the person named the commit."""

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
    """A plugin, read from its folder. Paths are absolute and inside `root`."""

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
    language_servers: Mapping[str, Any] = {}
    """Entries of language servers by name, as its manifest has them."""
    problems: tuple[Problem, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def skill_folders(self) -> list[SkillFolder]:
        return [
            SkillFolder(
                path=path, source="plugin", origin="plugin", plugin=self.name, commands=commands
            )
            for paths, commands in ((self.skills, False), (self.commands, True))
            for path in paths
        ]

    @property
    def agent_folders(self) -> list[AgentFolder]:
        return [
            AgentFolder(path=path, source="plugin", origin="plugin", plugin=self.name)
            for path in self.agents
        ]


def find_plugins(
    home: Home, folders: Sequence[str] = (), *, installed: bool = True
) -> tuple[Plugin, ...]:
    """Return the plugins in `folders`, which a flag or a client names, and the installed ones.

    The first of a name wins. An installed plugin that changed after it was trusted is not trusted.
    """
    found: dict[str, Plugin] = {}
    for folder in folders:
        plugin = read_plugin(folder)
        found.setdefault(plugin.name, msgspec.structs.replace(plugin, by_flag=True))
    for entry in read_registry(home) if installed else ():
        plugin = read_plugin(entry.cache_path, entry.name)
        plugin = msgspec.structs.replace(plugin, enabled=entry.enabled)
        found.setdefault(plugin.name, _check_trust(plugin, home) if entry.enabled else plugin)
    return tuple(found.values())


def _check_trust(plugin: Plugin, home: Home) -> Plugin:
    if Trust(home).accepts(home.config, KIND, plugin.name, digest_plugin(plugin.root)):
        return plugin
    message = f"{CHANGED}; look at it, then use `trimtab plugins trust {plugin.name}`"
    problem = Problem(message=message, file=plugin.file)
    return msgspec.structs.replace(plugin, trusted=False, problems=(*plugin.problems, problem))


def trust_plugins(home: Home, plugins: Iterable[Plugin]) -> None:
    """Trust plugins as they are now."""
    digests = [(plugin.name, digest_plugin(plugin.root)) for plugin in plugins]
    Trust(home).accept(home.config, KIND, digests)


def trust_unseen(home: Home, plugins: Iterable[Plugin]) -> None:
    """Trust the plugins that another program installed before the first plugin was trusted."""
    installed = [plugin for plugin in plugins if plugin.enabled and not plugin.by_flag]
    if installed and not Trust(home).has_seen(home.config, KIND):
        trust_plugins(home, installed)


def digest_plugin(root: str) -> str:
    """Return a digest of the names, modes and contents of all files in a folder.

    Inert files are left out: hooks run in the folder and may write notes there.
    """
    digest = hashlib.sha256()
    left, count = MAX_BYTES, 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - GENERATED)
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in sorted((*files, *links)):
            path = os.path.join(folder, name)
            if name.endswith(INERT) and not os.access(path, os.X_OK):
                continue
            count += 1
            if count > MAX_FILES:
                return ""
            digest.update(os.fsencode(os.path.relpath(path, root)) + b"\0")
            left -= _digest_file(digest, path, left)
    return f"sha256:{digest.hexdigest()}"


def _digest_file(digest: "hashlib._Hash", path: str, max_bytes: int) -> int:
    """Add a file to a digest; return the number of bytes read."""
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            digest.update(b"link " + os.fsencode(os.readlink(path)))
            return 0
        digest.update(b"%o %d\0" % (info.st_mode, info.st_size))
        if not stat.S_ISREG(info.st_mode):
            return 0
        if info.st_size > max_bytes:
            digest.update(b"%d %d" % (info.st_mtime_ns, info.st_ctime_ns))
            return 0
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        digest.update(f"unreadable {error.errno}".encode())
        return 0
    return info.st_size


def read_registry(home: Home) -> list[Installed]:
    """Return the installed plugins, without invalid entries."""
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
    """Return the problems of `config.json`, which lists plugins, trusted folders and flags."""
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
    """Read the plugin in a folder. Without a manifest, it has the folder's name."""
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
        problems = (*problems, Problem(message="it does not contain an object", file=manifest))
        content = {}
    return _Reader(root, manifest).build(content, name, problems)


class _Reader:
    """Builds a plugin from its manifest, and collects problems."""

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
            language_servers=self._language_servers(content.get("lspServers")),
            problems=tuple(self.problems),
            fields=tuple(content),
        )

    def _paths(self, content: Mapping[str, Any], field: str) -> tuple[str, ...]:
        """Return the usual folder for a kind, and those that the manifest names."""
        value = content.get(field, [])
        named = [value] if isinstance(value, str) else value
        if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
            self._note(f"{field} is ignored: it must be a path or a list of paths")
            named = []
        usual = os.path.join(self._root, field)
        paths = [usual] if os.path.isdir(usual) else []
        for item in named:
            path = self._find_inside(item, field)
            if path is not None and path not in paths:
                paths.append(path)
        return tuple(paths)

    def _find_inside(self, name: str, field: str) -> str | None:
        path = os.path.normpath(os.path.join(self._root, name))
        real, root = os.path.realpath(path), os.path.realpath(self._root)
        if real != root and not real.startswith(root + os.sep):
            self._note(f"{field} names {name}, which is outside the plugin; it is left out")
            return None
        if not os.path.exists(path):
            self._note(f"{field} names {name}, which does not exist")
            return None
        return path

    def _language_servers(self, value: Any) -> dict[str, Any]:
        """Return the language servers of a manifest: by name, or in a file inside the plugin."""
        if isinstance(value, dict):
            return dict(value)
        path: str | None = os.path.join(self._root, ".lsp.json")
        if isinstance(value, str):
            path = self._find_inside(value, "lspServers")
        if path is None or not os.path.isfile(path):
            return {}
        try:
            content = read_jsonc(read_text(path)[0].encode())
        except JsonProblem as problem:
            self._note(f"its language servers cannot be read: {problem}", field="lspServers")
            return {}
        return dict(content) if isinstance(content, dict) else {}

    def _servers(self, value: Any) -> tuple[ServerFile, ...]:
        if isinstance(value, dict):
            inline = value.get("mcpServers", value)
            content = {"mcpServers": inline}
            return (self._file(self._manifest, content),)
        if isinstance(value, str):
            path = self._find_inside(value, "mcpServers")
            return (self._file(path),) if path else ()
        return (self._file(workspace_file(self._root)),)

    def _file(self, path: str, content: Any = None) -> ServerFile:
        return ServerFile(path=path, source="plugin", content=content, plugin_root=self._root)

    def _note(self, message: str, *, note: bool = False, field: str = "") -> None:
        problem = Problem(message=message, file=self._manifest, note=note, field=field)
        self.problems.append(problem)


def is_plugin_name(name: str) -> bool:
    """Return True if a name can also be the name of a folder."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return plain.isalnum() and not name.startswith(".") and len(name) <= 64
