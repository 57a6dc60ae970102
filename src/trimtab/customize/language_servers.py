"""Finds language servers: those that files configure, and known ones that are installed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.contracts.customization import Problem
from trimtab.contracts.language import LanguageServer
from trimtab.customize.places import Places

PYTHON = {".py": "python", ".pyi": "python"}
SCRIPT = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}
C_FAMILY = {".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp"}
KNOWN: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = (
    (("basedpyright-langserver", "--stdio"), PYTHON),
    (("pyright-langserver", "--stdio"), PYTHON),
    (("ty", "server"), PYTHON),
    (("pylsp",), PYTHON),
    (("typescript-language-server", "--stdio"), SCRIPT),
    (("gopls",), {".go": "go"}),
    (("rust-analyzer",), {".rs": "rust"}),
    (("clangd",), C_FAMILY),
    (("zls",), {".zig": "zig"}),
    (("lua-language-server",), {".lua": "lua"}),
    (("ruby-lsp",), {".rb": "ruby"}),
    (("intelephense", "--stdio"), {".php": "php"}),
    (("jdtls",), {".java": "java"}),
)
"""Programs and the files they are for; of several for a suffix, the first that is installed."""
OPTIONS = {
    # Its syntax server answers while the project loads, and knows one file only.
    "typescript-language-server": {"tsserver": {"useSyntaxServer": "never"}},
}
"""The initialization options of known servers."""
PROJECT_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
KEYS = ("lspServers", "lsp-servers")
FIELDS = (
    *("command", "args", "env", "fileExtensions", "extensionToLanguage", "disabled"),
    *("initializationOptions", "settings"),
)


class FoundLanguageServers(msgspec.Struct, frozen=True):
    """The language servers of a project, and what is wrong with the files that configure them."""

    servers: tuple[LanguageServer, ...] = ()
    configured: tuple[LanguageServer, ...] = ()
    """Those that files configure, also for files that are not here."""
    problems: tuple[Problem, ...] = ()


def find_language_servers(
    places: Places, suffixes: frozenset[str], plugins: Sequence[tuple[str, Any]] = ()
) -> FoundLanguageServers:
    """Return the servers for files with these suffixes; the first one for a suffix is used.

    Folders that are not trusted get none: servers run code of the project they look at.
    """
    if not places.trusted:
        return FoundLanguageServers()
    problems: list[Problem] = []
    configured: list[LanguageServer] = []
    for path in configuration_files(places):
        configured += _read_file(path, problems)
    for path, content in plugins:
        configured += _read_entries(path, content, problems)
    taken = {suffix for server in configured for suffix in server.languages}
    servers = [*configured, *_find_known(places, set(suffixes) - taken)]
    used = tuple(server for server in servers if not suffixes.isdisjoint(server.languages))
    return FoundLanguageServers(used, tuple(configured), tuple(problems))


def configuration_files(places: Places) -> list[str]:
    """Return the files that may configure language servers; the first wins."""
    files = [os.path.join(places.home.config, "lsp-config.json")]
    for folder in dict.fromkeys((places.cwd, places.root)):
        files += [os.path.join(folder, name) for name in (".github/lsp.json", ".lsp.json")]
    return files


def _find_known(places: Places, suffixes: set[str]) -> Iterator[LanguageServer]:
    folders = [
        os.path.join(root, name)
        for root in dict.fromkeys((places.cwd, places.root))
        for name in PROJECT_FOLDERS
    ]
    folders += places.env.get("PATH", "").split(os.pathsep)
    for (program, *args), languages in KNOWN:
        if suffixes.isdisjoint(languages):
            continue
        folder = next((folder for folder in folders if _is_program(folder, program)), None)
        if folder is not None:
            suffixes -= languages.keys()
            argv = (os.path.join(folder, program), *args)
            yield LanguageServer(
                name=program,
                argv=argv,
                languages=languages,
                source=folder,
                options=OPTIONS.get(program),
            )


def _is_program(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return bool(folder) and os.path.isfile(path) and os.access(path, os.X_OK)


def _read_file(path: str, problems: list[Problem]) -> list[LanguageServer]:
    try:
        content: Any = read_jsonc(read_regular(path))
    except FileNotFoundError:
        return []
    except (OSError, JsonProblem) as error:
        problems.append(Problem(file=path, message=f"it cannot be read: {error}"))
        return []
    found = content if isinstance(content, dict) else {}
    key = next((key for key in KEYS if key in found), "")
    return _read_entries(path, found[key] if key else found, problems, key)


def _read_entries(
    path: str, entries: Any, problems: list[Problem], key: str = ""
) -> list[LanguageServer]:
    """Return the servers of a file, whose field `key` has them by name; "" is the whole file."""
    if not isinstance(entries, dict):
        problems.append(Problem(file=path, message="it does not contain servers by name"))
        return []
    servers = []
    for name, entry in entries.items():
        server = _read_entry(str(name), entry, path, key)
        if isinstance(server, str):
            problems.append(Problem(file=path, entry=str(name), message=server))
        elif server is not None:
            servers.append(server)
    return servers


def _read_entry(name: str, entry: Any, path: str, key: str) -> LanguageServer | str | None:
    """Return the server of an entry; None if it is disabled, or what is wrong with it."""
    if not isinstance(entry, dict):
        return "it must be an object with `command` and `fileExtensions`"
    if entry.get("disabled") is True:
        return None
    command, args = entry.get("command"), entry.get("args", [])
    languages = entry.get("fileExtensions") or entry.get("extensionToLanguage")
    if isinstance(command, list):
        command, args = (command[0], command[1:]) if command else (None, [])
    if not isinstance(command, str) or not isinstance(args, list):
        return "`command` must be a program, and `args` a list"
    if not isinstance(languages, dict) or not languages:
        return '`fileExtensions` must name languages by suffix, such as {".go": "go"}'
    env = entry.get("env", {})
    settings = entry.get("settings", {})
    return LanguageServer(
        name=name,
        argv=(command, *map(str, args)),
        languages={
            suffix if suffix.startswith(".") else f".{suffix}": str(language)
            for suffix, language in languages.items()
        },
        source=path,
        env={str(key): str(value) for key, value in env.items()} if isinstance(env, dict) else {},
        options=entry.get("initializationOptions"),
        settings=settings if isinstance(settings, dict) else {},
        fields=_describe_fields(entry, [key, name] if key else [name]),
    )


def _describe_fields(entry: Mapping[str, Any], above: list[str]) -> dict[str, str]:
    """Return the fields of an entry and those above it, and whether each is used."""
    fields = {".".join(above[: depth + 1]): "used" for depth in range(len(above))}
    for name in entry:
        used = "used" if name in FIELDS else "no effect: it is not known"
        fields[".".join((*above, name))] = used
    return fields
