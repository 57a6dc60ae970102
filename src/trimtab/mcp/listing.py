"""The tools a server lists, as far as they can be offered to a model."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.text import count, neutralise
from trimtab.mcp.client import Client
from trimtab.mcp.messages import ServerProblem

MOST_TOOLS = 200
"""Tools of one server that are offered; services take no more than a few hundred."""
MOST_PAGES = 100
LONGEST_DESCRIPTION = 4000
LARGEST_SCHEMA = 64 * 1024
DEEPEST_SCHEMA = 40
NOT_AT_THE_TOP = frozenset(
    ("$schema", "$id", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const")
)
"""What services refuse in the schema of a tool itself; the server checks it all the same."""
KINDS = frozenset(("string", "integer", "number", "boolean", "array", "object", "null"))


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it, made fit for a model. `name` is the server's own."""

    name: str
    parameters: dict[str, Any]
    description: str = ""
    title: str = ""
    read_only: bool = False


class Listing(msgspec.Struct, frozen=True):
    """What a server has, and why something of it is left out."""

    tools: tuple[ListedTool, ...] = ()
    problems: tuple[str, ...] = ()


async def fetch_tools(client: Client, server: McpServer, seconds: float) -> Listing:
    """All pages of a server's list. Raises `ServerProblem`, `RemoteError` or `TimeoutError`."""
    entries: list[Any] = []
    cursor: Any = None
    for _ in range(MOST_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        page = await client.request("tools/list", params, seconds)
        found = page.get("tools")
        if not isinstance(found, list):
            raise ServerProblem("it answered tools/list without a list of tools")
        entries += found
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or len(entries) > MOST_TOOLS * 10:
            break
    return read_tools(entries, server)


def read_tools(entries: Iterable[Any], server: McpServer) -> Listing:
    """The tools that are wanted and can be used."""
    tools: dict[str, ListedTool] = {}
    problems: list[str] = []
    wanted = 0
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            problems.append("an entry without a name is left out")
        elif name in tools:
            problems.append(f"{_short(name)} is listed twice; the first is used")
        elif is_wanted(name, server):
            wanted += 1
            if len(tools) < MOST_TOOLS:
                tool = _read(name, entry)
                if isinstance(tool, str):
                    problems.append(f"{_short(name)} is left out: {tool}")
                else:
                    tools[name] = tool
    if wanted > MOST_TOOLS:
        problems.append(f"only the first {MOST_TOOLS} of {count(wanted, 'tool')} are used")
    return Listing(tuple(tools.values()), tuple(problems))


def is_wanted(name: str, server: McpServer) -> bool:
    """Whether the configuration of a server wants a tool."""
    return ("*" in server.tools or name in server.tools) and name not in server.excluded_tools


def _read(name: str, entry: dict[str, Any]) -> ListedTool | str:
    """A tool, or why it cannot be used."""
    if len(name) > 256 or not name.isprintable():
        return "its name has more than 256 characters, or some that cannot be seen"
    schema = entry.get("inputSchema")
    if problem := _find_problem(schema):
        return problem
    assert isinstance(schema, dict)
    described, notes = entry.get("description"), entry.get("annotations")
    hints: dict[str, Any] = notes if isinstance(notes, dict) else {}
    title = entry.get("title") or hints.get("title")
    return ListedTool(
        name=name,
        parameters={"type": "object", "properties": {}, **_clean_top(schema)},
        description=_fit(described) if isinstance(described, str) else "",
        title=_short(title) if isinstance(title, str) else "",
        read_only=hints.get("readOnlyHint") is True,
    )


def _find_problem(schema: Any) -> str:
    """What would make a model service refuse every request with this schema in it."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its input schema is no schema of an object"
    if len(msgspec.json.encode(schema)) > LARGEST_SCHEMA:
        return f"its input schema is larger than {LARGEST_SCHEMA >> 10} KB"
    for value, depth in _walk(schema):
        if depth > DEEPEST_SCHEMA:
            return f"its input schema is nested more than {DEEPEST_SCHEMA} levels deep"
        reference = value.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            return "its input schema refers to one at another place"
    return "" if _is_schema(schema) else "its input schema is not valid"


def _is_schema(value: Any) -> bool:
    """Whether something that is not too deep is a schema, as far as services look at it."""
    if not isinstance(value, dict):
        return isinstance(value, bool)
    kinds, properties = value.get("type", []), value.get("properties", {})
    required, items = value.get("required", []), value.get("items", True)
    given = kinds if isinstance(kinds, list) else [kinds]
    return (
        all(isinstance(kind, str) and kind in KINDS for kind in given)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and isinstance(properties, dict)
        and all(map(_is_schema, properties.values()))
        and all(map(_is_schema, items if isinstance(items, list) else [items]))
    )


def _walk(schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Every object in a schema and how deep it is; what is too deep is not looked into."""
    left: list[tuple[Any, int]] = [(schema, 0)]
    while left:
        value, depth = left.pop()
        if isinstance(value, dict):
            yield value, depth
            inner: Iterable[Any] = value.values()
        else:
            inner = value if isinstance(value, list) else ()
        if depth <= DEEPEST_SCHEMA:
            left += [(one, depth + 1) for one in inner]


def _clean_top(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool as it is sent."""
    cleaned = _clean(schema)
    return {key: value for key, value in cleaned.items() if key not in NOT_AT_THE_TOP}


def _clean(value: Any) -> Any:
    """A schema whose words for the model hide nothing; names and choices stay as they are."""
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned = {
        key: neutralise(inner)
        if key in ("description", "title") and isinstance(inner, str)
        else _clean(inner)
        for key, inner in value.items()
    }
    if cleaned.get("type") == "array" and "items" not in cleaned:
        cleaned["items"] = {}  # services refuse a list of they know not what
    return cleaned


def _fit(text: str) -> str:
    text = neutralise(text)
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[:LONGEST_DESCRIPTION]} […]"


def _short(text: str) -> str:
    return neutralise(text[:80]).replace("\n", " ")
