"""The tools of an MCP server as they are kept between sessions."""

from typing import Any

import msgspec

HeaderParameters = tuple[tuple[tuple[str, ...], str], ...]
"""Paths of parameters, and the names of the headers of HTTP that repeat them."""


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it, cleaned for a model. `name` is the server's own."""

    name: str
    parameters: dict[str, Any]
    description: str = ""
    title: str = ""
    read_only: bool = False
    headers: HeaderParameters = ()
    """The parameters that are repeated in headers of HTTP."""
    app_only: bool = False
    """True if the tool is for the server's interface (MCP Apps), not for the model."""


class Listing(msgspec.Struct, frozen=True):
    """The usable tools of a server, and the problems with others."""

    tools: tuple[ListedTool, ...] = ()
    problems: tuple[str, ...] = ()
