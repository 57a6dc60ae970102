"""Stores the folders that a person trusts, and the hooks and servers trusted in them.

Folders are listed in `config.json` as Copilot CLI does (`trusted_folders`). The contents of a
trusted folder are remembered by their digests in `trusted-content.json`, so that people are asked
again when they change. If a file cannot be read, nothing in it is trusted.
"""

import os
from collections.abc import Collection, Iterable
from typing import Any

from trimtab.config.files import format_json, make_private_dir, read_regular, update_file
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.questions import Loadable

FOLDERS = "trusted_folders"
LOADABLE = (
    ("hooks", ".github/hooks"),
    ("tools", ".github/tools"),
    ("settings", ".github/copilot/settings.json"),
    ("settings", ".github/copilot/settings.local.json"),
    ("hooks", ".claude/settings.json"),
    ("hooks", ".claude/settings.local.json"),
    ("mcp", ".mcp.json"),
    ("mcp", ".github/mcp.json"),
    ("mcp", ".vscode/mcp.json"),
    ("mcp", ".gemini/settings.json"),
    ("mcp", ".cursor/mcp.json"),
    ("mcp", ".codex/config.toml"),
    ("skills", ".github/skills"),
    ("skills", ".agents/skills"),
    ("skills", ".claude/skills"),
    ("skills", ".codex/skills"),
    ("skills", ".gemini/skills"),
    ("skills", ".cursor/skills"),
    ("commands", ".claude/commands"),
    ("commands", ".codex/prompts"),
    ("commands", ".gemini/commands"),
    ("commands", ".cursor/commands"),
    ("agents", ".github/agents"),
    ("agents", ".claude/agents"),
    ("agents", ".codex/agents"),
    ("agents", ".gemini/agents"),
    ("agents", ".cursor/agents"),
    ("extensions", ".github/extensions"),
    ("lsp", ".github/lsp.json"),
    ("lsp", ".lsp.json"),
)
"""Files and folders that need trust, by kind."""


class Trust:
    """The trust decisions of the person who owns `home`. Each call reads the files anew."""

    def __init__(self, home: Home) -> None:
        self._folders = os.path.join(home.config, "config.json")
        self._content = os.path.join(home.config, "trusted-content.json")
        self._settings = home.settings

    def is_trusted(self, folder: str) -> bool:
        """Return True if a folder, a parent of it, or its worktree's main repository is trusted."""
        trusted = {os.path.realpath(path) for path in self._listed()}
        return bool(trusted) and any(
            ancestor in trusted
            for identity in (os.path.realpath(folder), trust_key(folder))
            for ancestor in _ancestors(identity)
        )

    def trust(self, folder: str) -> None:
        """Trust a folder, or the repository it is in, from now on."""
        key = trust_key(folder)

        def add(content: dict[str, Any]) -> None:
            listed = _strings(content.get(FOLDERS))
            content[FOLDERS] = [*listed, key] if key not in listed else listed

        self._update(self._folders, add)

    def accepts(self, folder: str, kind: str, name: str, digest: str) -> bool:
        """Return True if an entry is as it was trusted, or if its kind was never reviewed."""
        known = self._known(folder, kind)
        return known is None or known.get(name) == digest or digest in known.values()

    def accept(self, folder: str, kind: str, entries: Iterable[tuple[str, str]]) -> None:
        """Trust entries (name, digest) as they are now."""
        key, found = trust_key(folder), dict(entries)

        def add(content: dict[str, Any]) -> None:
            kinds = _object(_object(content, "folders"), key)
            kinds[kind] = {**_object(kinds, kind), **found}

        self._update(self._content, add)

    def has_seen(self, folder: str, kind: str) -> bool:
        """Return True if entries of a kind were accepted in a folder before."""
        return self._known(folder, kind) is not None

    def _known(self, folder: str, kind: str) -> dict[str, Any] | None:
        folders = _read(self._content).get("folders")
        kinds = folders.get(trust_key(folder)) if isinstance(folders, dict) else None
        known = kinds.get(kind) if isinstance(kinds, dict) else None
        return known if isinstance(known, dict) else None

    def _listed(self) -> Collection[str]:
        settings = _read(self._settings).get("trustedFolders")
        config = _read(self._folders)
        listed = [*_strings(config.get(FOLDERS)), *_strings(config.get("trustedFolders"))]
        return [path for path in (*listed, *_strings(settings)) if os.path.isabs(path)]

    def _update(self, path: str, change: Any) -> None:
        def rewrite(before: bytes | None) -> bytes:
            content: dict[str, Any] = {}
            if before and before.strip():
                try:
                    read = read_jsonc(before)
                except JsonProblem as error:
                    raise ConfigurationError(
                        f"{path}:{error.line} is not valid JSON ({error}): fix it or move it away."
                    ) from error
                content = read if isinstance(read, dict) else {}
            change(content)
            return format_json(content) + b"\n"

        make_private_dir(os.path.dirname(path))
        update_file(path, rewrite)


def find_loadable(root: str, cwd: str | None = None) -> tuple[Loadable, ...]:
    """Find what needs trust in a repository, from its root down to the working directory.

    Looks for names only; reads no file.
    """
    found = []
    inner = os.path.relpath(cwd, root) if cwd else os.curdir
    parts = [] if inner == os.curdir else inner.split(os.sep)
    for base in ("", *(os.path.join(*parts[: depth + 1]) for depth in range(len(parts)))):
        for kind, name in LOADABLE:
            path = os.path.join(root, base, name)
            if os.path.isfile(path) or _has_entries(path):
                found.append(Loadable(kind, os.path.join(base, name)))
    return tuple(found)


def find_root(folder: str) -> str:
    """Return the repository that contains a folder, or the folder itself."""
    folder = os.path.abspath(folder)
    for ancestor in _ancestors(folder):
        if os.path.lexists(os.path.join(ancestor, ".git")):
            return ancestor
    return folder


def trust_key(folder: str) -> str:
    """Return the path that stands for a folder: its repository, for a worktree the main one."""
    root = find_root(os.path.realpath(folder))
    return _main_repository(root) or root


def _main_repository(root: str) -> str | None:
    """Return the main repository of a worktree, if that repository lists the worktree.

    Without this check, any folder with a `.git` file could claim to belong to a trusted repository.
    """
    marker = os.path.join(root, ".git")
    target = _first_line(marker).removeprefix("gitdir:").strip()
    if not target:
        return None
    private = os.path.realpath(os.path.join(root, target))
    folder, name = os.path.split(os.path.dirname(private))
    if name != "worktrees" or os.path.basename(folder) != ".git":
        return None
    known = _first_line(os.path.join(private, "gitdir"))
    same = os.path.realpath(os.path.join(private, known)) == os.path.realpath(marker)
    return os.path.dirname(folder) if known and same else None


def _first_line(path: str) -> str:
    try:
        return os.fsdecode(read_regular(path, 4096).split(b"\n")[0]).strip()
    except OSError:
        return ""


def _ancestors(folder: str) -> Iterable[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _has_entries(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _read(path: str) -> dict[str, Any]:
    try:
        content = read_jsonc(read_regular(path))
    except (OSError, JsonProblem):
        return {}
    return content if isinstance(content, dict) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _object(content: dict[str, Any], key: str) -> dict[str, Any]:
    inner = content.get(key)
    content[key] = inner = dict(inner) if isinstance(inner, dict) else {}
    return inner
