"""May this happen? Policies, decisions, and how somebody is asked."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from trimtab.contracts.events.envelope import JsonObject


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed without asking. `allow` and `deny` are rules of the form `kind(argument)`.

    `roots` are the directories in which paths are allowed: the working directory, those added, the
    session's own folder and, unless disallowed, the temp directory. Deny beats everything.
    """

    cwd: str
    roots: tuple[str, ...]
    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    client_judges: bool = False
    """Whether a client is asked about everything that no rule decides, harmless or not."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "may this happen?", with the reason as a sentence."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said to a permission question, in the protocol's words.

    `kind` is approve-once, approve-for-session, approve-for-location, approve-permanently, reject
    or user-not-available; `feedback` are a person's words for the model.
    """

    kind: str
    feedback: str | None = None


Ask = Callable[[str, JsonObject], Awaitable[Answer]]
"""Given the request id and the permission request as it stands in the event, gives the answer."""
