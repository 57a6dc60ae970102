"""Hooks: programs and clients that are called at fixed points of a session."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

import msgspec

from trimtab.contracts.customization import Problem
from trimtab.contracts.events.envelope import JsonObject

EVENTS = (
    "sessionStart",
    "sessionEnd",
    "userPromptSubmitted",
    "userPromptTransformed",
    "preToolUse",
    "permissionRequest",
    "postToolUse",
    "postToolUseFailure",
    "agentStop",
    "subagentStart",
    "subagentStop",
    "preCompact",
    "notification",
    "errorOccurred",
    "preMcpToolCall",
)
GUARDS = frozenset(("preToolUse", "permissionRequest"))
"""Hooks that decide whether something may happen; if such a hook fails, the answer is no."""

Origin = Literal["policy", "user", "repository", "plugin"]


class HookEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A hook of a hook file.

    `claude` is true if its event was named in PascalCase: it gets its input as Claude Code would
    send it. `command` runs in a shell, `argv` without one; `folder` is the directory it runs in,
    if not the session's. `plugin` is the folder of the plugin it came with.
    """

    event: str
    type: Literal["command", "http", "prompt"]
    origin: Origin
    file: str
    line: int = 0
    claude: bool = False
    matcher: str = ""
    command: str = ""
    powershell: str = ""
    argv: tuple[str, ...] = ()
    folder: str = ""
    env: Mapping[str, str] = {}
    seconds: float = 30
    url: str = ""
    headers: Mapping[str, str] = {}
    allowed_env: tuple[str, ...] = ()
    prompt: str = ""
    plugin: str = ""

    @property
    def does(self) -> str:
        """The command, address or prompt, for a person."""
        command = self.command or " ".join(self.argv) or self.powershell
        return self.url or self.prompt or command

    @property
    def name(self) -> str:
        return f"{self.event} {self.does}"


class UnreadableGuard(msgspec.Struct, frozen=True, kw_only=True):
    """A guard that cannot be parsed. It denies everything, since its own answer is unknown."""

    event: str
    origin: Origin
    file: str
    problem: str
    line: int = 0
    type: Literal["unreadable"] = "unreadable"
    matcher: str = ""

    @property
    def does(self) -> str:
        """Its effect, for a person."""
        return f"denies everything, because it cannot be read ({self.problem})"

    @property
    def name(self) -> str:
        return f"{self.event} {self.does}"

    @property
    def reason(self) -> str:
        """The reason for denying a call, and what to do about it."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return (
            f"{where}: the guard cannot be read ({self.problem}), so nothing is allowed; correct "
            "the file or remove it"
        )


class FoundHooks(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks of some files in the order in which they run, and the files' problems.

    `unreadable` are guards that deny until their file is corrected. `fields` maps the file and line
    of an entry to the names of its fields.
    """

    entries: tuple[HookEntry, ...] = ()
    unreadable: tuple[UnreadableGuard, ...] = ()
    problems: tuple[Problem, ...] = ()
    fields: Mapping[tuple[str, int], tuple[str, ...]] = {}

    @property
    def all(self) -> "tuple[HookEntry | UnreadableGuard, ...]":
        """Every hook, and every guard that denies because it cannot be read."""
        return (*self.entries, *self.unreadable)


class HookFailed(Exception):
    """Raised when a hook cannot be run, or does not answer."""


class HookPort(Protocol):
    """A client that has hooks of its own."""

    @property
    def wanted(self) -> bool:
        """True while a client listens."""
        ...

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        """Run a hook and return its output, if any. Raises `HookFailed`."""
        ...


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run once: its input, and its limits of time and output."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    input: bytes
    seconds: float
    limit: int
    on_line: Callable[[bytes], None] | None = None
    """Called with each complete line as soon as it is written."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program. `exit_code` is None if it was killed: too slow, or too much output."""

    exit_code: int | None
    output: bytes = b""
    errors: bytes = b""
    timed_out: bool = False


RunProgram = Callable[[Program], Awaitable[Ended]]
"""Runs a program; nothing it started outlives it. Raises `OSError` if it cannot be started."""

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]
"""Posts a body to an address; returns status and answer. Raises `TrimtabError` if there is none."""
