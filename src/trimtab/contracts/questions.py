"""Questions put to a person: about trust, a plan, or anything the model wants to know."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from trimtab.contracts.events.envelope import JsonObject


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model."""

    text: str
    choices: tuple[str, ...] = ()
    allow_freeform: bool = True
    call_id: str = ""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The person's answer; `freeform` is false if it is one of the choices."""

    text: str
    freeform: bool = True


AskPerson = Callable[[Question], Awaitable[Response | None]]
"""Asks a person; returns None if nobody can be asked."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form that an MCP server wants filled in, or an address that it wants visited."""

    source: str
    message: str
    schema: JsonObject = {}
    url: str = ""

    @property
    def mode(self) -> str:
        return "url" if self.url else "form"


AskForm = Callable[[Form], Awaitable[JsonObject | None]]
"""Shows a form and returns the answer: its `action` (accept, decline, cancel) and its `content`.

Returns None if no client shows forms, but a person can be asked one question after another."""


class SamplingQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A model call that an MCP server asks for, and the id of its request."""

    server: str
    request: JsonObject
    number: str | int


AskSampling = Callable[[SamplingQuestion], Awaitable[JsonObject | None]]
"""Lets a client answer a server; returns None if no client wants to.

The answer is `{"response": MESSAGE}`, or `{}` if the client rejects the request."""


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A token that an MCP server wants, and its challenge.

    The reason is `initial`, `refresh`, `reauth` or `upscope`.
    """

    server: str
    url: str
    reason: str
    scope: str = ""
    resource_metadata: str = ""
    error: str = ""
    client: JsonObject = {}
    """The client that the server's entry names: `clientId`, `publicClient` and so on."""


AskToken = Callable[[TokenRequest], Awaitable[JsonObject | None]]
"""Asks a client for a token: `accessToken` and perhaps `expiresIn`; None if it has none."""


class PlanReady(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that waits for approval."""

    summary: str
    actions: tuple[str, ...]
    recommended: str
    call_id: str = ""


class PlanVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about a plan. `feedback` are the person's words.

    `by_fleet` is true if a fleet carries the plan out, and the agent has nothing more to do.
    """

    approved: bool
    action: str | None = None
    feedback: str | None = None
    auto_approve_edits: bool = False
    """True if changes of files need no further permission in this session."""
    edited_plan: str | None = None
    """The plan as the person changed it while it waited for approval."""
    by_fleet: bool = False


AskApproval = Callable[[PlanReady], Awaitable[PlanVerdict]]


class Loadable(msgspec.Struct, frozen=True):
    """Configuration in a folder that would be run, connected to or obeyed."""

    kind: str
    path: str


class TrustQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Asks whether to trust a folder's configuration; `changed` since it was trusted."""

    folder: str
    items: tuple[Loadable, ...]
    changed: bool = False


TrustAnswer = Literal["always", "once", "no"]
AskTrust = Callable[[TrustQuestion], Awaitable[TrustAnswer]]
