"""Questions put to a person: about trust, a plan, or anything the model wants to know."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the model wants to know."""

    text: str
    choices: tuple[str, ...] = ()
    allow_freeform: bool = True
    call_id: str = ""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What the person said; `freeform` is false when it is one of the choices."""

    text: str
    freeform: bool = True


AskPerson = Callable[[Question], Awaitable[Response | None]]
"""Puts a question to a person; None when nobody can be asked."""


class PlanReady(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that waits for approval."""

    summary: str
    actions: tuple[str, ...]
    recommended: str
    call_id: str = ""


class PlanVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a plan. `feedback` are the person's words."""

    approved: bool
    action: str | None = None
    feedback: str | None = None


AskApproval = Callable[[PlanReady], Awaitable[PlanVerdict]]


class Loadable(msgspec.Struct, frozen=True):
    """Something in a folder that would be run, connected to or obeyed."""

    kind: str
    path: str


class TrustQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """May the configuration of `folder` be used? `changed` when it was trusted in another form."""

    folder: str
    items: tuple[Loadable, ...]
    changed: bool = False


TrustAnswer = Literal["always", "once", "no"]
AskTrust = Callable[[TrustQuestion], Awaitable[TrustAnswer]]
