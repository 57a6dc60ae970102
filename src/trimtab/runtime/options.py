"""What a person or program may choose about a session."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Ask
from trimtab.contracts.run import Mode
from trimtab.loop.processors.compaction import Thresholds
from trimtab.prompts.customize import SystemMessageOptions
from trimtab.session.session import Subscriber

if TYPE_CHECKING:
    from trimtab.contracts.provider import Provider
    from trimtab.tools.ask_user.tool import AskPerson
    from trimtab.tools.exit_plan_mode.tool import AskApproval

Transform = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""Given sections of the system message by name, gives their new texts."""


class HookFailed(Exception):
    """A hook could not be run, or did not answer."""


class HookPort(Protocol):
    """Somebody outside who wants to be asked at fixed points."""

    @property
    def wanted(self) -> bool:
        """Whether anybody listens now."""
        ...

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        """Run a hook; its output, if it has one. Raises `HookFailed`."""
        ...


class PermissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed without asking."""

    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow_destructive: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    temp_dir: bool = True


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run must end. `deadline` is in seconds from the start of the session."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    deadline: float | None = None
    max_continues: int = 5
    retries: int = 5
    retry_delay: float = 1.0
    max_retry_delay: float = 60.0
    max_repeats: int | None = None
    """How often the same call may have the same result; None: 25 in autopilot, else any number."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on the other side of a session from its first event on.

    `on_event` is given every event and its line; `ask` answers permission questions. Without
    `ask` nobody can be asked, and what would be asked is denied.
    """

    on_event: Subscriber | None = None
    ask: Ask | None = None
    judges: bool = False
    """Whether everything no rule decides is put to `ask`, reads in the workspace included."""
    hooks: HookPort | None = None
    transform: Transform | None = None
    ask_person: "AskPerson | None" = None
    ask_approval: "AskApproval | None" = None


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for one session. Everything has a default that works."""

    cwd: str
    model: str | None = None
    effort: str | None = None
    stream: bool = True
    mode: Mode = "interactive"
    name: str | None = None
    session_id: str | None = None
    client_name: str | None = None
    available_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] = ()
    instructions: Literal["load", "skip"] = "load"
    system_message: SystemMessageOptions = SystemMessageOptions()
    offline: bool = False
    """Whether only this machine may be contacted."""
    fallback: tuple[str, ...] = ()
    """Models to go on with, in order, when the chosen one cannot answer."""
    provider: "Provider | None" = None
    """The model service of this session, where it is not the runtime's choice."""
    compaction: Thresholds | None = Thresholds()
    """When old messages are summarised; None: only when it must be, or somebody asks."""
    permissions: PermissionOptions = PermissionOptions()
    limits: LimitOptions = LimitOptions()
