"""What the files that customize a session look like from outside, to see when one was changed."""

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

MOST = 5000
"""Files that are looked at before each prompt; a look costs about a microsecond."""
RULE_DEPTH, PLUGIN_DEPTH, HOOK_DEPTH = 3, 4, 2
"""Levels of folders that are looked into."""
LARGEST = 1024 * 1024
"""Bytes of a file of hooks that are looked at."""
HOOK_SETTINGS = ("hooks", "disableAllHooks", "disabledHooks")
Stock = dict[str, tuple[int, int, int]]
"""When each path that is there was changed, its size and which file it is."""


class CustomizationWatcher:
    """Says, before each prompt, whether people edited what a session was read from."""

    def __init__(self, session: SessionPort, custom: Customizations | None) -> None:
        self._session = session
        self._custom = custom
        self._began = time.time_ns()
        self._seen: Stock | None = None
        self._seen_hooks: Stock | None = None
        self._hooks: dict[str, bytes] = {}

    def renew(self) -> None:
        """Everything was read again just now."""
        if self._custom is not None:
            self._seen = take_stock(self._custom)

    def has_changed(self) -> bool:
        """Whether anything did since the last look. That hooks did is told here: they stay."""
        custom = self._custom
        if custom is None:
            return False
        before, self._seen = self._seen, take_stock(custom)
        if before is None:
            changed = any(info[0] > self._began for info in self._seen.values())
        else:
            changed = before != self._seen
        self._look_at_hooks(custom)
        return changed

    def _look_at_hooks(self, custom: Customizations) -> None:
        """Tell of hooks that changed. They stay: what guards a session must not change by its own
        doing."""
        before, self._seen_hooks = self._seen_hooks, take_hook_stock(custom)
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


def take_stock(custom: Customizations) -> Stock:
    """A look at everything a session was read from, and at where it could find more."""
    return _look(_paths(custom))


def _look(paths: Iterable[str]) -> Stock:
    stock: Stock = {}
    for count, path in enumerate(paths):
        if count == MOST:
            break
        try:
            info = os.stat(path)
        except OSError:
            continue
        stock[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return stock


def _read(path: str) -> bytes:
    try:
        return read_regular(path, LARGEST)
    except OSError:
        return b""


def read_hooks(path: str, data: bytes | None) -> Any:
    """What a file says about hooks; all of it, if that cannot be told from the rest."""
    data = data or b"{}"
    try:
        content = read_jsonc(data)
    except JsonProblem:
        return data if b"hooks" in data.lower() else {}
    if not isinstance(content, dict) or not os.path.basename(path).startswith("settings."):
        return content
    return {key: content[key] for key in HOOK_SETTINGS if content.get(key)}


def take_hook_stock(custom: Customizations) -> Stock:
    """A look at the files hooks are read from."""
    places = custom.places
    folders = [os.path.join(places.home.config, "hooks")]
    files = [places.home.settings, os.path.join(places.user, ".claude", "settings.json")]
    if custom.trusted:
        folders.append(os.path.join(places.root, ".github", "hooks"))
        for folder in (".claude", os.path.join(".github", "copilot")):
            files += [os.path.join(places.root, folder, name) for name in SETTINGS_FILES]
    listed = (entry for folder in folders for entry in _below(folder, HOOK_DEPTH))
    return _look(path for path in (*files, *listed) if path.endswith(".json"))


def _paths(custom: Customizations) -> Iterator[str]:
    places, read = custom.places, custom.__dict__
    yield places.home.settings
    yield os.path.join(places.home.config, "config.json")  # which plugins there are
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
    if "agents" in read:
        yield from (agent.path for agent in custom.agents.agents.values() if agent.path)
    for skill in custom.skills.skills.values():
        yield skill.path
        yield os.path.dirname(skill.path)
    for plugin in custom.all_plugins:
        yield from _below(plugin.root, PLUGIN_DEPTH)


def _below(path: str, depth: int) -> Iterator[str]:
    """A path, and what is in it if it is a folder."""
    yield path
    if depth:
        try:
            with os.scandir(path) as entries:
                some = islice(entries, MOST)
                found = [(one.path, one.is_dir(follow_symlinks=False)) for one in some]
        except OSError:  # a file, or nothing
            return
        for inner, is_folder in found:
            yield from _below(inner, depth - 1 if is_folder else 0)
