"""Web pages, as tools request them and the only egress fetches them."""

from collections.abc import Awaitable, Callable

import msgspec


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The page at an address. After a redirect `moved_to` is set and `data` empty."""

    url: str
    status: int
    data: bytes = b""
    kind: str = ""
    """The media type in lower case, without parameters."""
    charset: str = ""
    complete: bool = True
    """False if the page was too large and `data` is only its beginning."""
    moved_to: str = ""


class SearchService(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The setting `webSearch`: an address with `{query}`, and headers.

    A header's value may be `$NAME`, which stands for a variable of the environment.
    """

    url: str
    headers: dict[str, str] = {}


class FetchProblem(Exception):
    """Raised when a page cannot be fetched; the message is for the model."""


Fetch = Callable[[str], Awaitable[Page]]
"""Fetches the page at an http or https address. Raises `FetchProblem`."""
