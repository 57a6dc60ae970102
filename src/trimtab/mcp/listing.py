"""Fetches the list of a server's tools, and checks and cleans it for model services."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.text import count, neutralise
from trimtab.mcp.listed_tools import ListedTool, Listing
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.parameter_headers import find_header_problem, find_headers
from trimtab.mcp.result_cache import MAX_SECONDS, read_ttl

if TYPE_CHECKING:
    from trimtab.mcp.client import McpClient

MAX_TOOLS = 200
"""The number of tools of one server; services accept no more than a few hundred."""
MAX_PAGES = 100
MAX_DESCRIPTION_LENGTH = 4000
MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 40
TOP_LEVEL_REJECTED = frozenset(
    ("$schema", "$id", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const")
)
"""Keywords that services reject at the top of a tool's schema; the server still checks them."""
TYPES = frozenset(("string", "integer", "number", "boolean", "array", "object", "null"))


async def fetch_tools(
    client: "McpClient", server: McpServer, seconds: float
) -> tuple[Listing, float]:
    """Fetch all pages of a list; return it, and the seconds for which the server says it holds.

    Raises `ServerProblem`, `RemoteError` or `TimeoutError`.
    """
    entries: list[Any] = []
    holds = MAX_SECONDS if client.is_stateless else 0.0
    cursor: Any = None
    for _ in range(MAX_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        page = await client.request("tools/list", params, seconds)
        found = page.get("tools")
        if not isinstance(found, list):
            raise ServerProblem("it answered tools/list without a list of tools")
        entries += found
        holds = min(holds, read_ttl(page))
        before, cursor = cursor, page.get("nextCursor")
        if not isinstance(cursor, str) or cursor == before or len(entries) > MAX_TOOLS * 10:
            break
    return read_tools(entries, server), holds


def read_tools(entries: Iterable[Any], server: McpServer) -> Listing:
    """Return the tools that the server's configuration selects and that are valid."""
    tools: dict[str, ListedTool] = {}
    problems: list[str] = []
    selected = 0
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            problems.append("an entry without a name is left out")
        elif name in tools:
            problems.append(f"{_short(name)} is listed twice; the first is used")
        elif is_selected(name, server):
            selected += 1
            if len(tools) < MAX_TOOLS:
                tool = _read(name, entry)
                if isinstance(tool, str):
                    problems.append(f"{_short(name)} is left out: {tool}")
                else:
                    tools[name] = tool
    if selected > MAX_TOOLS:
        problems.append(f"only the first {MAX_TOOLS} of {count(selected, 'tool')} are used")
    return Listing(tuple(tools.values()), tuple(dict.fromkeys(problems)))


def is_selected(name: str, server: McpServer) -> bool:
    """Return True if a server's configuration includes a tool."""
    return ("*" in server.tools or name in server.tools) and name not in server.excluded_tools


def _read(name: str, entry: dict[str, Any]) -> ListedTool | str:
    """Return a tool, or the reason why it cannot be used."""
    if len(name) > 256 or not name.isprintable():
        return "its name has more than 256 characters, or invisible ones"
    schema = entry.get("inputSchema")
    if problem := _find_problem(schema):
        return problem
    assert isinstance(schema, dict)
    if problem := find_header_problem(schema):
        return problem
    description, annotations = entry.get("description"), entry.get("annotations")
    hints: dict[str, Any] = annotations if isinstance(annotations, dict) else {}
    title = entry.get("title") or hints.get("title")
    return ListedTool(
        name=name,
        parameters={"type": "object", "properties": {}, **_clean_top(schema)},
        description=_fit(description) if isinstance(description, str) else "",
        title=_short(title) if isinstance(title, str) else "",
        read_only=hints.get("readOnlyHint") is True,
        headers=find_headers(schema),
        app_only=is_for(entry, "app") and not is_for(entry, "model"),
    )


def find_interface(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool says about interfaces (`_meta.ui`); empty if it says nothing."""
    meta = entry.get("_meta")
    found = meta.get("ui") if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def is_for(entry: dict[str, Any], user: Literal["model", "app"]) -> bool:
    """Return True if a tool may be called by the model, or by the server's interface."""
    visibility = find_interface(entry).get("visibility")
    return user in visibility if isinstance(visibility, list) else True


def _find_problem(schema: Any) -> str:
    """Return why model services would reject every request with this schema; empty if valid."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its input schema is not the schema of an object"
    if len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
        return f"its input schema is larger than {MAX_SCHEMA_BYTES >> 10} KB"
    for value, depth in _walk(schema):
        if depth > MAX_SCHEMA_DEPTH:
            return f"its input schema is nested more than {MAX_SCHEMA_DEPTH} levels deep"
        reference = value.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            return "its input schema refers to an external schema"
    return "" if _is_schema(schema) else "its input schema is invalid"


def _is_schema(value: Any) -> bool:
    """Return True for a valid schema, as far as services check it. Its depth must be limited."""
    if not isinstance(value, dict):
        return isinstance(value, bool)
    types, properties = value.get("type", []), value.get("properties", {})
    required, items = value.get("required", []), value.get("items", True)
    types = types if isinstance(types, list) else [types]
    return (
        all(isinstance(name, str) and name in TYPES for name in types)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and isinstance(properties, dict)
        and all(map(_is_schema, properties.values()))
        and all(map(_is_schema, items if isinstance(items, list) else [items]))
    )


def _walk(schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield every object in a schema with its depth, to one level below the maximum."""
    left: list[tuple[Any, int]] = [(schema, 0)]
    while left:
        value, depth = left.pop()
        if isinstance(value, dict):
            yield value, depth
            children: Iterable[Any] = value.values()
        else:
            children = value if isinstance(value, list) else ()
        if depth <= MAX_SCHEMA_DEPTH:
            left += [(child, depth + 1) for child in children]


def _clean_top(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool as it is sent to services."""
    cleaned = _clean(schema)
    return {key: value for key, value in cleaned.items() if key not in TOP_LEVEL_REJECTED}


def _clean(value: Any) -> Any:
    """Remove invisible characters from titles and descriptions; names and enums stay as is."""
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {
        key: neutralise(inner)
        if key in ("description", "title") and isinstance(inner, str)
        else _clean(inner)
        for key, inner in value.items()
    }
    if cleaned.get("type") == "array" and "items" not in cleaned:
        cleaned["items"] = {}  # services reject an array without an item schema
    return cleaned


def _fit(text: str) -> str:
    text = neutralise(text)
    return text if len(text) <= MAX_DESCRIPTION_LENGTH else f"{text[:MAX_DESCRIPTION_LENGTH]} […]"


def _short(text: str) -> str:
    return neutralise(text[:80]).replace("\n", " ")
