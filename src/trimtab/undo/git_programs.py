"""Finds the programs that git starts from now on, among the files that a command changed."""

import os
from collections.abc import Iterator, Sequence

from trimtab.contracts.changes import Change, FileState
from trimtab.undo.blobs import BlobStore
from trimtab.workspace.git_settings import read_git_settings

SAMPLE = ".sample"
"""Ends the names of hooks that git does not start."""
CONFIGURATION = ("config", "config.worktree")
STARTING = frozenset(
    (
        *("hookspath", "fsmonitor", "sshcommand", "gitproxy", "askpass", "editor", "pager"),
        *("external", "textconv", "command", "clean", "smudge", "process", "driver", "program"),
        *("helper", "difffilter", "packobjectshook", "alternaterefscommand"),
    )
)
"""Names of settings that make git start a program."""


def find_new_programs(changes: Sequence[Change], store: BlobStore) -> list[str]:
    """Return the hooks and the settings that make git start something it did not start before."""
    return [name for change in changes for name in _find(change, store)]


def _find(change: Change, store: BlobStore) -> Iterator[str]:
    path = change.os_path
    folder, name = os.path.split(path)
    if ".git" not in folder.split(os.sep) or change.after.kind in ("absent", "directory"):
        return
    if os.path.basename(folder) == "hooks" and not name.endswith(SAMPLE):
        yield path
    elif name in CONFIGURATION:
        known = set(_list_starting(change.before, store))
        new = [key for key in _list_starting(change.after, store) if key not in known]
        yield from dict.fromkeys(f"{section}.{name} in {path}" for section, name, _ in new)


def _list_starting(state: FileState, store: BlobStore) -> list[tuple[str, str, str]]:
    if state.kind != "file" or not state.digest:
        return []
    text = store.get(state.digest).decode("utf-8", "replace")
    settings = read_git_settings(text)
    return [
        (section, name, value)
        for section, name, value in settings
        if _is_starting(section, name, value)
    ]


def _is_starting(section: str, name: str, value: str) -> bool:
    if section in ("include", "includeif"):
        return name == "path"
    if section == "alias":
        return value.startswith(("!", '"!'))
    return name in STARTING and "git-lfs" not in value
