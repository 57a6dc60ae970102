"""Finds MCP servers in the configuration files of every convention; the last source wins."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.contracts.customization import (
    AgentDefinition,
    McpServer,
    Problem,
    Shadowed,
)
from trimtab.customize.parsing import find_line, parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import read_text
from trimtab.customize.server_entry import FILE_NO_EFFECT, ServerEntry, ServerFile


class FoundServers(msgspec.Struct, frozen=True):
    """Servers by name, those that a later source replaced, and the problems."""

    servers: dict[str, McpServer] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()


def server_files(places: Places, features: Collection[str]) -> list[ServerFile]:
    """Return the files that configure servers; later ones win."""
    user, config = places.user, places.home.config
    files = [
        _codex(user),
        _gemini(user),
        ServerFile(path=os.path.join(user, ".cursor/mcp.json"), source="cursor"),
        ServerFile(
            path=os.path.join(user, ".claude.json"),
            source="claude",
            settings=True,
            project=places.root,
        ),
        ServerFile(path=os.path.join(config, "mcp-config.json"), source="user"),
    ]
    if not places.trusted:
        return files
    for folder in dict.fromkeys((places.root, places.cwd)):
        files += [
            _codex(folder),
            _gemini(folder),
            ServerFile(path=os.path.join(folder, ".cursor/mcp.json"), source="cursor"),
            ServerFile(path=workspace_file(folder), source="repository"),
        ]
        if "VSCODE_INTEGRATION" in features:
            path = os.path.join(folder, ".vscode/mcp.json")
            files.append(ServerFile(path=path, source="repository"))
    return files


def _codex(folder: str) -> ServerFile:
    path = os.path.join(folder, ".codex/config.toml")
    return ServerFile(path=path, source="codex", keys=("mcp_servers",), settings=True)


def _gemini(folder: str) -> ServerFile:
    path = os.path.join(folder, ".gemini/settings.json")
    return ServerFile(path=path, source="gemini", settings=True)


def agent_servers(agent: AgentDefinition) -> ServerFile:
    """Return the servers in an agent's file. They are used while it is the main agent."""
    content = {"mcpServers": dict(agent.mcp_servers)}
    return ServerFile(path=agent.path, source=agent.source, content=content)


def given_servers(servers: Mapping[str, Any]) -> ServerFile:
    """Return the servers that a client of the SDK configures."""
    return ServerFile(path="", source="sdk", content={"mcpServers": dict(servers)}, literal=True)


def workspace_file(folder: str) -> str:
    """Return the path of `.mcp.json` or, if that does not exist, `.github/mcp.json`."""
    first = os.path.join(folder, ".mcp.json")
    return first if os.path.exists(first) else os.path.join(folder, ".github", "mcp.json")


def find_servers(
    files: Sequence[ServerFile],
    places: Places,
    flags: Sequence[str] = (),
    disabled: Collection[str] = (),
) -> FoundServers:
    """Return the servers of some files and then of `--additional-mcp-config`."""
    search = _Search(places, disabled)
    for file in files:
        if file.content is not None or os.path.exists(file.path):
            search.read_file(file)
    for number, text in enumerate(flags, 1):
        search.read_flag(text, number)
    return FoundServers(search.servers, tuple(search.shadowed), tuple(search.problems))


class _Search:
    """Collects servers from files, and their problems."""

    def __init__(self, places: Places, disabled: Collection[str]) -> None:
        self._places = places
        self._disabled = disabled
        self.servers: dict[str, McpServer] = {}
        self.shadowed: list[Shadowed] = []
        self.problems: list[Problem] = []

    def read_file(self, file: ServerFile) -> None:
        if file.content is not None:
            self._add_all(file.content, file)
            return
        text, problems = read_text(file.path, 16 * 1024 * 1024)
        self.problems += problems
        if not text.strip():
            return
        try:
            content = parse_config(file.path, text)
        except JsonProblem as error:
            message = f"{error}; no server of this file is used"
            self.problems.append(Problem(message=message, file=file.path, line=error.line))
            return
        self._add_all(content, file, text)
        if file.project and isinstance(content, dict):
            projects = content.get("projects")
            project = projects.get(file.project) if isinstance(projects, dict) else None
            self._add_all(project or {}, file, text)

    def read_flag(self, text: str, number: int) -> None:
        if text.startswith("@"):
            path = os.path.join(self._places.cwd, self._places.expand(text[1:]))
            self.read_file(ServerFile(path=path, source="flag"))
            return
        name = f"--additional-mcp-config ({number})"
        try:
            content = read_jsonc(text.encode("utf-8", "surrogateescape"))
        except JsonProblem as error:
            self.problems.append(Problem(message=str(error), file=name, line=error.line))
            return
        self._add_all(content, ServerFile(path=name, source="flag"))

    def _add_all(self, content: Any, file: ServerFile, text: str = "") -> None:
        named: Any = None
        if isinstance(content, dict):
            named = next((content[key] for key in file.keys if key in content), {})
        if file.settings and not isinstance(content, dict):
            return  # reported with the other settings of the file
        if not isinstance(named, dict):
            message = f"it has no object {file.keys[0]}"
            self.problems.append(Problem(message=message, file=file.path))
            return
        if not file.settings:
            self._note_others(content, file, text)
        for name, entry in named.items():
            self._add(str(name), entry, file, text)

    def _add(self, name: str, entry: Any, file: ServerFile, text: str) -> None:
        reader = ServerEntry(name, file, text)
        places = self._places
        server = reader.read(entry, places.env, places.root, disabled=name in self._disabled)
        self.problems += reader.problems
        if server is None:
            return
        if (before := self.servers.get(name)) is not None:
            why = "the source that is read last wins"
            self.shadowed.append(
                Shadowed(name, before.file, before.source, server.file, why, before.fields)
            )
        self.servers[name] = server

    def _note_others(self, content: dict[str, Any], file: ServerFile, text: str) -> None:
        """Note the other fields of a file that is for servers only: they have no effect."""
        for field in content:
            if field in file.keys or field.startswith("$"):
                continue
            why = FILE_NO_EFFECT.get(field, "it is not known")
            message, line = f"{field} has no effect: {why}", find_line(text, field)
            self.problems.append(
                Problem(message=message, file=file.path, line=line, note=True, field=field)
            )
