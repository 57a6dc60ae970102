"""What a person or program may choose about a session."""

from typing import Literal

import msgspec

from trimtab.contracts.permission import Ask
from trimtab.contracts.run import Mode
from trimtab.session.session import Subscriber


class PermissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed without asking."""

    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    temp_dir: bool = True


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run must end. `deadline` is in seconds from the start of the session."""

    max_turns: int | None = None
    deadline: float | None = None
    max_continues: int = 5
    retries: int = 5
    retry_delay: float = 1.0


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on the other side of a session from its first event on.

    `on_event` is given every event and its line; `ask` answers permission questions. Without
    `ask` nobody can be asked, and what would be asked is denied.
    """

    on_event: Subscriber | None = None
    ask: Ask | None = None


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
    permissions: PermissionOptions = PermissionOptions()
    limits: LimitOptions = LimitOptions()
