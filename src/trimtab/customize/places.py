"""Where customizations are looked for, and what a search may cost."""

import os
from collections.abc import Mapping

import msgspec

from trimtab.config.paths import Home

LONGEST_CHAIN = 32
"""How many folders lie between the working directory and the root of its repository, at most."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The folders around a session. `trusted` says whether its folder's configuration is obeyed.

    `user` is the person's home directory, `home` the one of this program.
    """

    cwd: str
    home: Home
    user: str
    env: Mapping[str, str]
    repository: str | None = None
    trusted: bool = False

    @property
    def root(self) -> str:
        """The repository, or the working directory where there is none."""
        return self.repository or self.cwd

    @property
    def chain(self) -> tuple[str, ...]:
        """The folders from the working directory up to the root of the repository."""
        folders = [self.cwd]
        while folders[-1] != self.root and len(folders) < LONGEST_CHAIN:
            parent = os.path.dirname(folders[-1])
            if parent == folders[-1]:
                break
            folders.append(parent)
        return tuple(folders)

    def directories(self, variable: str) -> tuple[str, ...]:
        """The folders a variable names, separated by commas."""
        named = (name.strip() for name in self.env.get(variable, "").split(","))
        return tuple(os.path.join(self.cwd, self.expand(name)) for name in named if name)

    def expand(self, path: str) -> str:
        return self.user + path[1:] if path == "~" or path.startswith("~/") else path

    def shorten(self, path: str) -> str:
        """A path as a person would name it: below the repository, or below `~`."""
        for base, prefix in ((self.root, ""), (self.user, "~/")):
            if path.startswith(base + os.sep):
                return prefix + path[len(base) + 1 :]
        return path


class Boundary(msgspec.Struct, frozen=True):
    """Where imported files may lie. A folder nobody trusts must not bring in files from elsewhere:
    an instruction file is read without being asked for, and its text is sent to a model.
    """

    folders: tuple[str, ...]
    user: str

    def allows(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(
            real == one or real.startswith(one.rstrip(os.sep) + os.sep) for one in self.folders
        )


def find_places(
    cwd: str, home: Home, env: Mapping[str, str], *, repository: str | None, trusted: bool
) -> Places:
    """The places of a session in `cwd`."""
    user = env.get("HOME") or os.path.expanduser("~")
    return Places(cwd=cwd, home=home, user=user, env=env, repository=repository, trusted=trusted)
