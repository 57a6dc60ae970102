"""Pages of the web, as a tool asks for them and the one egress fetches them."""

from collections.abc import Awaitable, Callable

import msgspec


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What stands at an address. `moved_to` is set, and `data` empty, when it leads elsewhere."""

    url: str
    status: int
    data: bytes = b""
    kind: str = ""
    """The media type in small letters, without parameters."""
    charset: str = ""
    complete: bool = True
    """Whether `data` is all there is; a page that is too large is cut."""
    moved_to: str = ""


class FetchProblem(Exception):
    """Why a page was not fetched; the message is for the model."""


Fetch = Callable[[str], Awaitable[Page]]
"""Fetches the page at an http or https address. Raises `FetchProblem`."""
