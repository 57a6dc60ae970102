"""The folders in which customizations are looked for, and the limits of imports."""

import os
from collections.abc import Mapping

import msgspec

from trimtab.config.paths import Home

MAX_CHAIN = 32
"""Folders from the working directory up to the root of its repository."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of a session. The configuration in its repository counts only if `trusted`.

    `user` is the person's home directory, `home` holds the files of this program.
    """

    cwd: str
    home: Home
    user: str
    env: Mapping[str, str]
    repository: str | None = None
    trusted: bool = False

    @property
    def root(self) -> str:
        """The root of the repository, or the working directory outside of one."""
        return self.repository or self.cwd

    @property
    def chain(self) -> tuple[str, ...]:
        """The folders from the working directory up to the root of the repository."""
        folders = [self.cwd]
        while folders[-1] != self.root and len(folders) < MAX_CHAIN:
            parent = os.path.dirname(folders[-1])
            if parent == folders[-1]:
                break
            folders.append(parent)
        return tuple(folders)

    def directories(self, variable: str) -> tuple[str, ...]:
        """Return the comma-separated folders in an environment variable."""
        named = (name.strip() for name in self.env.get(variable, "").split(","))
        return tuple(os.path.join(self.cwd, self.expand(name)) for name in named if name)

    def expand(self, path: str) -> str:
        return self.user + path[1:] if path == "~" or path.startswith("~/") else path

    def shorten(self, path: str) -> str:
        """Return a path relative to the repository, or with `~` for the home directory."""
        for base, prefix in ((self.root, ""), (self.user, "~/")):
            if path.startswith(base + os.sep):
                return prefix + path[len(base) + 1 :]
        return path


class Boundary(msgspec.Struct, frozen=True):
    """The folders from which files may be imported.

    Instruction files are read without a question and sent to a model, so an untrusted folder must
    not import files from elsewhere.
    """

    folders: tuple[str, ...]
    user: str

    def allows(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(
            real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)
            for folder in self.folders
        )


def find_places(
    cwd: str, home: Home, env: Mapping[str, str], *, repository: str | None, trusted: bool
) -> Places:
    """Return the folders of a session in `cwd`."""
    user = env.get("HOME") or os.path.expanduser("~")
    return Places(cwd=cwd, home=home, user=user, env=env, repository=repository, trusted=trusted)
