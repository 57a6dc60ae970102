"""Notices before each prompt that files which customize the session have changed."""

import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.run import SessionPort
from trimtab.customize.customizations import SETTINGS_FILES, Customizations
from trimtab.customize.folders import (
    agent_folders,
    command_folders,
    instruction_places,
    server_paths,
    skill_folders,
)

MAX_FILES = 5000
"""Files that are checked before each prompt, at about a microsecond each."""
RULE_DEPTH, PLUGIN_DEPTH, HOOK_DEPTH = 3, 4, 2
"""Levels of folders that are checked."""
MAX_BYTES = 1024 * 1024
"""Bytes that are read of a file of hooks."""
HOOK_SETTINGS = ("hooks", "disableAllHooks", "disabledHooks")
Stamps = dict[str, tuple[int, int, int]]
"""Path → mtime, size and inode, for each path that exists."""


class CustomizationWatcher:
    """Compares the files that a session was loaded from with their state at the last prompt."""

    def __init__(self, session: SessionPort, custom: Customizations | None) -> None:
        self._session = session
        self._custom = custom
        self._began = time.time_ns()
        self._seen: Stamps | None = None
        self._seen_hooks: Stamps | None = None
        self._hooks: dict[str, bytes] = {}

    def renew(self) -> None:
        """Take the present state as known, because everything was just loaded again."""
        if self._custom is not None:
            self._seen = read_stamps(self._custom)

    def has_changed(self) -> bool:
        """Return True if a file changed since the last call. Warns of changed hooks."""
        custom = self._custom
        if custom is None:
            return False
        before, self._seen = self._seen, read_stamps(custom)
        if before is None:
            changed = any(info[0] > self._began for info in self._seen.values())
        else:
            changed = before != self._seen
        self._check_hooks(custom)
        return changed

    def _check_hooks(self, custom: Customizations) -> None:
        """Warn of changed hooks. They are not loaded: a session must not change its own guards."""
        before, self._seen_hooks = self._seen_hooks, read_hook_stamps(custom)
        if before == self._seen_hooks:
            return
        files, self._hooks = self._hooks, {path: _read(path) for path in self._seen_hooks}
        paths = [
            path
            for path in {**files, **self._hooks}
            if read_hooks(path, files.get(path)) != read_hooks(path, self._hooks.get(path))
        ]
        if before is None or not paths:
            return
        message = (
            f"{', '.join(paths[:3])} changed; the hooks of this session stay as they were. "
            "Start or resume a session to use what is there now."
        )
        self._session.emit(SessionWarning(warning_type="hooks_changed", message=message))


def read_stamps(custom: Customizations) -> Stamps:
    """Return the stamps of all files and folders that customizations are loaded from."""
    return _stamp_all(_paths(custom))


def _stamp_all(paths: Iterable[str]) -> Stamps:
    stamps: Stamps = {}
    for count, path in enumerate(paths):
        if count == MAX_FILES:
            break
        try:
            info = os.stat(path)
        except OSError:
            continue
        stamps[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return stamps


def _read(path: str) -> bytes:
    try:
        return read_regular(path, MAX_BYTES)
    except OSError:
        return b""


def read_hooks(path: str, data: bytes | None) -> Any:
    """Return the hooks in a file; the whole content if they cannot be separated."""
    data = data or b"{}"
    try:
        content = read_jsonc(data)
    except JsonProblem:
        return data if b"hooks" in data.lower() else {}
    if not isinstance(content, dict) or not os.path.basename(path).startswith("settings."):
        return content
    return {key: content[key] for key in HOOK_SETTINGS if content.get(key)}


def read_hook_stamps(custom: Customizations) -> Stamps:
    """Return the stamps of the files that hooks are read from."""
    places = custom.places
    folders = [os.path.join(places.home.config, "hooks")]
    files = [places.home.settings, os.path.join(places.user, ".claude", "settings.json")]
    if custom.trusted:
        folders.append(os.path.join(places.root, ".github", "hooks"))
        for folder in (".claude", os.path.join(".github", "copilot")):
            files += [os.path.join(places.root, folder, name) for name in SETTINGS_FILES]
    listed = (entry for folder in folders for entry in _below(folder, HOOK_DEPTH))
    return _stamp_all(path for path in (*files, *listed) if path.endswith(".json"))


def _paths(custom: Customizations) -> Iterator[str]:
    places = custom.places
    yield places.home.settings
    yield os.path.join(places.home.config, "config.json")  # the list of plugins
    if custom.trusted:
        folder = os.path.join(places.root, ".github", "copilot")
        yield from (os.path.join(folder, name) for name in SETTINGS_FILES)
    if custom.loads_instructions:
        for place in instruction_places(places):
            yield from _below(place, RULE_DEPTH)
        for instruction in custom.instructions.instructions:
            yield from instruction.paths
            yield from instruction.imports
    yield from server_paths(places)
    yield from (folder.path for folder in (*skill_folders(places), *command_folders(places)))
    yield from (folder.path for folder in agent_folders(places))
    if custom.is_loaded("agents"):
        yield from (agent.path for agent in custom.agents.agents.values() if agent.path)
    for skill in custom.skills.skills.values():
        yield skill.path
        yield os.path.dirname(skill.path)
    for plugin in custom.all_plugins:
        yield from _below(plugin.root, PLUGIN_DEPTH)


def _below(path: str, depth: int) -> Iterator[str]:
    """Yield a path and, if it is a folder, the paths in it."""
    yield path
    if depth:
        try:
            with os.scandir(path) as entries:
                first = islice(entries, MAX_FILES)
                found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in first]
        except OSError:  # a file, or nothing
            return
        for inner, is_folder in found:
            yield from _below(inner, depth - 1 if is_folder else 0)
