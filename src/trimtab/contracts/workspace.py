"""The workspace of an agent as tools see it: files, search, processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

Stamp = tuple[int, int, int, int]
"""Identity of a file's content on disk: device, inode, size, modification time in nanoseconds."""


class PathInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a path; for `other` (device, FIFO, kernel file), `reason` says what it is."""

    kind: Literal["missing", "file", "directory", "other"]
    size: int = 0
    reason: str = ""


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was at one moment."""

    data: bytes
    stamp: Stamp


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Names in a directory, sorted; `total` also counts names beyond the limit."""

    names: tuple[str, ...]
    total: int


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a large file as bytes; `complete` is false if a limit cut them off."""

    data: bytes
    complete: bool


class FoundLines(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a search. `stopped` says why it is incomplete: time or size."""

    lines: tuple[bytes, ...]
    error: str = ""
    stopped: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A shell command to start.

    `background` gives it a standard input that stays open; `terminal` a pseudo-terminal; `detached`
    lets it outlive the session. `env` are additional variables. `confined` is
    false if a person allowed it to run outside the sandbox; `fenced` is true if nobody approved it,
    so that it must change nothing. `call_id` is the tool call it
    belongs to.
    """

    text: str
    description: str = ""
    shell_id: str | None = None
    background: bool = False
    detached: bool = False
    terminal: bool = False
    env: Mapping[str, str] = {}
    confined: bool = True
    fenced: bool = False
    call_id: str = ""
    agent_id: str = ""
    """The sub-agent whose call it is; empty for the main agent."""


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a command at one moment.

    `output` is the output not read before, or only its beginning if it exceeds the limit: then
    `saved_to` names the file that holds everything. `exit_code` is None while it runs; `awaits`
    is `input` if it seems to wait for some.
    """

    shell_id: str
    output: bytes
    size: int
    exit_code: int | None
    saved_to: str | None = None
    terminal: bool = False
    no_terminal: str = ""
    """The reason why a command runs on pipes although a terminal was requested."""
    awaits: str = ""
    let_go: bool = False
    """True if the person sent the command to the background."""
    flooded: bool = False
    lost: int = 0
    left_behind: tuple[str, ...] = ()


class ShellInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One started command, for lists and notifications."""

    shell_id: str
    pid: int
    command: str
    description: str
    mode: Literal["sync", "async", "detached"]
    exit_code: int | None
    elapsed: float
    unread: bool
    agent_id: str = ""
    foreground: bool = False
    """True while a tool call waits for it."""


class ShellError(Exception):
    """Raised when a shell command cannot be started or reached; the message is for the model."""


class UnknownShell(ShellError):
    """Raised when no command has the given id."""


class Shells(Protocol):
    """Commands started in a workspace. All but detached ones end with it."""

    async def execute(
        self,
        command: Command,
        *,
        wait: float,
        limit: int,
        listener: Callable[[bytes], None] | None = None,
    ) -> CommandState:
        """Start a command and wait for it; after `wait` seconds it goes on in the background.

        Cancelling kills the command with all its descendants. Raises `ShellError`.
        """
        ...

    async def read(self, shell_id: str, *, wait: float, limit: int) -> CommandState:
        """Wait until the command ends, asks for input, or `wait` is over. Raises `ShellError`."""
        ...

    async def write(self, shell_id: str, keys: Sequence[str | bytes]) -> None:
        """Send input: bytes as they are, a name for a key (`enter`, `up`, `ctrl-c`, …)."""
        ...

    async def stop(self, shell_id: str) -> None:
        """Kill the command with all its descendants. Raises `ShellError`."""
        ...

    def list(self) -> Sequence[ShellInfo]: ...


class Workspace(Protocol):
    """Files and processes below a root directory, which is never the process's own state.

    File methods raise `OSError`. Paths given to them are absolute, from `resolve`.
    """

    root: str

    @property
    def shells(self) -> Shells: ...

    def resolve(self, path: str) -> str:
        """Return the absolute path for a path relative to the root. Symlinks are not resolved."""
        ...

    def inspect(self, path: str) -> PathInfo:
        """Return what is at a path, following symlinks. Never blocks, never raises."""
        ...

    def list(self, path: str, limit: int) -> Listing: ...

    def load(self, path: str) -> FileContent:
        """Read a regular file at once, on the caller's thread."""
        ...

    async def read(self, path: str) -> FileContent:
        """Read a regular file; a large one without blocking the loop."""
        ...

    async def read_lines(self, path: str, first: int, last: int | None, limit: int) -> Lines:
        """Read lines `first` to `last` (from 1, inclusive) of a file too large to be read whole."""
        ...

    async def write(
        self, path: str, data: bytes, *, new: bool = False, stamp: Stamp | None = None
    ) -> None:
        """Replace or create a file atomically; missing parent directories are created.

        Mode, owner, extended attributes and links of an existing file are kept. `new` raises
        `FileExistsError` rather than replacing; `stamp` raises `StaleFile` if the file has
        changed since it was read.
        """
        ...

    async def remove(self, path: str) -> None:
        """Delete a regular file. A symlink is refused: its target may belong to somebody else."""
        ...

    async def move(self, path: str, target: str) -> None:
        """Move a file with all its attributes. Raises `FileExistsError` if the target exists."""
        ...

    def remember(self, path: str, data: bytes) -> None:
        """Record the content the model was last shown of a file, or has written to it."""
        ...

    def changed(self, path: str, data: bytes) -> bool:
        """Return True if a remembered file now has other content."""
        ...

    async def search(
        self,
        arguments: Sequence[str],
        *,
        seconds: float,
        limit: int,
        keep: Callable[[bytes], bool] | None = None,
    ) -> FoundLines:
        """Run ripgrep in the root; return up to `limit` bytes of lines for which `keep` is true."""
        ...

    async def run(
        self, argv: Sequence[str], *, seconds: float, limit: int = 1_000_000
    ) -> tuple[int, bytes]:
        """Run a helper program (git); return its exit code and at most `limit` bytes of output."""
        ...

    async def aclose(self) -> None:
        """Kill every command that was not detached."""
        ...


class EditorBuffers(Protocol):
    """The files that a person has open in an editor, which may differ from those on disk."""

    async def read(self, path: str) -> str | None:
        """Return the text of a file as the editor has it; None if it does not say."""
        ...

    async def write(self, path: str, text: str) -> bool:
        """Have the editor write a file; return False if it cannot. Raises `OSError`."""
        ...


class EditorTerminals(Protocol):
    """The terminals of an editor, in which commands run. The methods raise `OSError`."""

    async def create(self, command: Command, cwd: str, env: Mapping[str, str]) -> str:
        """Start a command and return the id of its terminal."""
        ...

    async def read(self, terminal_id: str) -> str:
        """Return the whole output so far."""
        ...

    async def wait(self, terminal_id: str) -> int:
        """Wait until the command ends; return its exit code."""
        ...

    def discard(self, terminal_id: str) -> None:
        """Kill the command if it still runs, and give the terminal back. Does not wait."""
        ...


class StaleFile(OSError):
    """Raised when a file changed between being read and being written."""
