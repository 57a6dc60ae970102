"""Hooks: code of other people at fixed points of a session, and how it is reached."""

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
"""Hooks that say whether something may happen: one that fails has not said so."""

Origin = Literal["policy", "user", "repository", "plugin"]


class HookEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of a file.

    `claude` says that its event was named in PascalCase: it is spoken to as Claude Code would.
    `command` is for a shell, `argv` for no shell; `folder` is where it runs, if not in the
    session's directory. `plugin` is the folder of the plugin it came with.
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
        """What it runs, sends to or says, for a person."""
        said = self.command or " ".join(self.argv) or self.powershell
        return self.url or self.prompt or said

    @property
    def name(self) -> str:
        return f"{self.event} {self.does}"


class UnreadableGuard(msgspec.Struct, frozen=True, kw_only=True):
    """A guard that nobody can read. It denies, because nobody knows what it would have allowed."""

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
        """Why a call is denied, and what to do about it."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return (
            f"{where}: the guard cannot be read ({self.problem}), so nothing is allowed; correct "
            "the file or remove it"
        )


class FoundHooks(msgspec.Struct, frozen=True, kw_only=True):
    """The hooks of some files in the order in which they run, and what was wrong there.

    `unreadable` are guards that deny until somebody corrects them. `fields` has the names of an
    entry's fields by its file and line.
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
    """A hook could not be run, or did not answer."""


class HookPort(Protocol):
    """A client that wants to be asked at fixed points."""

    @property
    def wanted(self) -> bool:
        """Whether anybody listens now."""
        ...

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        """Run a hook; its output, if it has one. Raises `HookFailed`."""
        ...


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run once: its input, and how much time and output it gets."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    input: bytes
    seconds: float
    limit: int
    on_line: Callable[[bytes], None] | None = None
    """Called with every whole line as soon as it is written."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. `exit_code` is None when it was killed, by the clock or for flooding."""

    exit_code: int | None
    output: bytes = b""
    errors: bytes = b""
    timed_out: bool = False


RunProgram = Callable[[Program], Awaitable[Ended]]
"""Runs a program; nothing it started outlives it. Raises `OSError` if it cannot be started."""

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]
"""Posts a body to an address; gives status and answer. Raises `TrimtabError` if there is none."""
