"""Trust in a folder: what it would load, and how a person is asked about it."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec


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
