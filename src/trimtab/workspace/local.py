"""The workspace on this machine: files, search and shell commands."""

import asyncio
import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.workspace import (
    EditorBuffers,
    FileContent,
    FoundLines,
    Lines,
    Listing,
    PathInfo,
    Stamp,
)
from trimtab.workspace import files
from trimtab.workspace.environment import child_environment
from trimtab.workspace.processes import LocalShells
from trimtab.workspace.search import LineFilter, find_ripgrep, search

if TYPE_CHECKING:
    from trimtab.contracts import hooks
    from trimtab.workspace.programs import Confined

AT_ONCE = 4 * 1024 * 1024
"""Smaller files are read and written on the event loop's thread, which is faster than another."""


class LocalWorkspace:
    """Files and processes below `root`. Artifacts of the session go to the folder `files`.

    Child processes get `env` without our keys and the variables named in `secrets`. Raises
    `ConfigurationError` if ripgrep is missing.
    """

    def __init__(
        self,
        *,
        root: str,
        files: str,
        session_id: str = "",
        env: Mapping[str, str] | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        given = os.environ if env is None else env
        self.root = os.path.abspath(root)
        self.child_env = child_environment(given, session_id, secrets)
        self.shells = LocalShells(self.root, files, self.child_env)
        self._home = given.get("HOME", "")
        self._env = {"PATH": given.get("PATH", os.defpath), "HOME": self._home, "LC_ALL": "C.UTF-8"}
        self._ripgrep = find_ripgrep(given)
        self._seen: dict[str, tuple[int, int]] = {}
        self.pins: Mapping[str, str] = {}
        self._hidden: Sequence[str] = ()
        self._find_hidden: Callable[[], Sequence[str]] | None = None
        self.editor: EditorBuffers | None = None
        """The editor through which files are read and written, if a client has one."""

    @property
    def home(self) -> str:
        """The person's home directory, even if HOME is not set."""
        return self._home or os.path.expanduser("~")

    def enter(self, root: str) -> None:
        """Work in another folder from now on; commands that already run stay where they are."""
        self.root = os.path.abspath(root)
        self.shells.enter(self.root)

    def resolve(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        parts = os.path.join(self.root, path).split("/")
        if ".." in parts and "\0" not in path:
            # Only the operating system knows what `..` after a symlink means.
            last = len(parts) - parts[::-1].index("..")
            parts = [os.path.realpath("/".join(parts[:last])), *parts[last:]]
        return os.path.normpath("/".join(parts))

    def inspect(self, path: str) -> PathInfo:
        return files.inspect(path)

    def follow(self, path: str) -> str:
        """Resolve the symlinks in a path. The methods below open the result and follow no more."""
        return self.pins.get(path) or os.path.realpath(path)

    def pinned(
        self,
        pins: Mapping[str, str],
        hidden: Sequence[str] = (),
        find_hidden: Callable[[], Sequence[str]] | None = None,
    ) -> "LocalWorkspace":
        """Return a copy of this workspace with paths resolved as they were when they were checked.

        Searches omit what matches a pattern in `hidden`, or one that `find_hidden` returns then.
        """
        pinned_copy = object.__new__(type(self))  # `copy` would import a module for the first call
        pinned_copy.__dict__.update(self.__dict__)
        pinned_copy.pins, pinned_copy._hidden = pins, hidden
        pinned_copy._find_hidden = find_hidden
        return pinned_copy

    def list(self, path: str, limit: int) -> Listing:
        return files.list_names(self.follow(path), limit)

    def load(self, path: str) -> FileContent:
        return files.load(self.follow(path))

    async def read(self, path: str) -> FileContent:
        real = self.follow(path)
        if os.stat(real).st_size > AT_ONCE:
            return await asyncio.to_thread(files.load, real)
        content = files.load(real)
        if self.editor is None:
            return content
        from trimtab.workspace.editor_files import read_buffer

        return await read_buffer(self.editor, real, content)

    async def save_buffer(self, path: str, stamp: Stamp | None = None) -> Stamp | None:
        """Save what a person has not saved yet of a file that is about to be changed.

        Returns the stamp that the file has now, if it had `stamp` before.
        """
        if self.editor is None:
            return stamp
        from trimtab.workspace.editor_files import save_buffer

        return await save_buffer(self.editor, self.follow(path), stamp)

    async def read_lines(self, path: str, first: int, last: int | None, limit: int) -> Lines:
        return await asyncio.to_thread(files.read_lines, self.follow(path), first, last, limit)

    async def write(
        self, path: str, data: bytes, *, new: bool = False, stamp: Stamp | None = None
    ) -> None:
        real = self.follow(path)
        if not new:
            require_writable(real)
        if self.editor is not None and len(data) <= AT_ONCE:
            from trimtab.workspace.editor_files import write_buffer

            await write_buffer(self.editor, real, data, new=new, stamp=stamp)
        elif len(data) <= AT_ONCE:
            files.write(real, data, new=new, stamp=stamp)
        else:
            await uninterrupted(lambda: files.write(real, data, new=new, stamp=stamp))

    async def remove(self, path: str) -> None:
        files.remove_file(self._resolve_parents(path))

    async def move(self, path: str, target: str) -> None:
        files.move_file(self._resolve_parents(path), self._resolve_parents(target))

    def _resolve_parents(self, path: str) -> str:
        """Resolve the symlinks in a path's folders, but not the path itself."""
        real = self.follow(path)
        if real != os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)):
            raise OSError(errno.EINVAL, "It is a symlink, or its folder was moved meanwhile", path)
        return real

    def remember(self, path: str, data: bytes) -> None:
        self._seen[path] = len(data), hash(data)

    def changed(self, path: str, data: bytes) -> bool:
        return self._seen.get(path, (len(data), hash(data))) != (len(data), hash(data))

    async def search(
        self,
        arguments: Sequence[str],
        *,
        seconds: float,
        limit: int,
        keep: Callable[[bytes], bool] | None = None,
    ) -> FoundLines:
        hidden = self._hidden
        if self._find_hidden is not None:
            hidden = (*hidden, *await asyncio.to_thread(self._find_hidden))
        return await search(
            # If patterns conflict, ripgrep gives case-insensitive ones precedence.
            [
                self._ripgrep,
                "--no-config",
                *(f"--iglob=!{pattern}" for pattern in hidden),
                *arguments,
            ],
            cwd=self.root,
            env=self._env,
            seconds=seconds,
            lines=LineFilter(limit, keep),
            confinement=self._confine_search(),
        )

    def _confine_search(self) -> "Confined | None":
        """Return a confinement to what may be read, or to the checked folders."""
        confinement = self.shells.confinement
        if confinement and confinement.policy.denied:
            return confinement
        if not self.pins:
            return None
        from trimtab.workspace.sandbox.search_confinement import confine_search

        roots = (os.path.realpath(self.root), *self.pins.values())
        return confine_search(roots, self._ripgrep, self.home)

    async def run(
        self, argv: Sequence[str], *, seconds: float, limit: int = 1_000_000
    ) -> tuple[int, bytes]:
        from trimtab.workspace.programs import Program

        output = bytearray()

        def take(chunk: bytes) -> bool:
            output.extend(chunk[: limit - len(output)])
            return len(output) < limit

        ended = await Program(take).run(argv, cwd=self.root, env=self._env, seconds=seconds)
        return -1 if ended.exit_code is None else ended.exit_code, bytes(output)

    async def feed(self, program: "hooks.Program") -> "hooks.Ended":
        """Run a hook's program with its input. Raises `OSError`."""
        from trimtab.workspace.fed_program import FedProgram

        self.shells.guard()
        return await FedProgram(program).finish()

    async def aclose(self) -> None:
        await self.shells.aclose()


def require_writable(path: str) -> None:
    """Raise for a write-protected file, which could be replaced, but must not be."""
    effective = os.access in os.supports_effective_ids
    if os.path.exists(path) and not os.access(path, os.W_OK, effective_ids=effective):
        advice = "It is write-protected: ask the person, or make it writable if they requested that"
        raise PermissionError(errno.EACCES, f"{advice} (chmod u+w)", path)


async def uninterrupted(work: Callable[[], None]) -> None:
    """Run work in a thread. When cancelled, wait for its end, so that nothing happens later."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
