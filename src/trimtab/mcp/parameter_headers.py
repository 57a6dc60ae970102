"""Parameters of tools that are repeated in HTTP headers, as their schemas say (`x-mcp-header`)."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.mcp.listed_tools import HeaderParameters

KEY = "x-mcp-header"
PREFIX = "Mcp-Param-"
TYPES = frozenset(("string", "integer", "boolean"))
"""The types of parameters that may be repeated; numbers with a fraction have no one spelling."""
TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789")
"""The characters of a header's name besides letters."""


def find_header_problem(schema: Mapping[str, Any]) -> str:
    """Return why a tool's marks of headers are invalid; empty if they are valid."""
    seen: set[str] = set()
    for _, name, field in _marked(schema, ()):
        if not isinstance(name, str) or not name or not all(map(_is_token, name)):
            return f"the header {str(name)[:40]!r} of a parameter is not a valid name"
        if field.get("type") not in TYPES:
            return f"the parameter of the header {name[:40]} is not text, a whole number or a flag"
        if name.lower() in seen:
            return f"two parameters have the header {name[:40]}"
        seen.add(name.lower())
    return ""


def find_headers(schema: Mapping[str, Any]) -> HeaderParameters:
    """Return the parameters of a tool that are repeated in headers. The marks must be valid."""
    return tuple((path, name) for path, name, _ in _marked(schema, ()))


def build_headers(parameters: HeaderParameters, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a call; parameters that are null or left out have none."""
    headers: dict[str, str] = {}
    for path, name in parameters:
        value: Any = arguments
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[PREFIX + name] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[PREFIX + name] = encode_header(str(value))
    return headers


def encode_header(value: str) -> str:
    """Return a value as a header carries it: in Base64 if it has other than visible characters."""
    plain = all(" " <= character <= "~" for character in value)
    looks_encoded = value.startswith("=?base64?") and value.endswith("?=")
    if plain and value == value.strip() and not looks_encoded:
        return value
    return f"=?base64?{b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


def _marked(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Mapping[str, Any]]]:
    """Yield the path, the header and the schema of each parameter that has a header."""
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(field, Mapping) or len(path) > 20:
            continue
        if KEY in field:
            yield (*path, name), field[KEY], field
        yield from _marked(field, (*path, name))


def _is_token(character: str) -> bool:
    return character in TOKEN or (character.isascii() and character.isalpha())


def decode_header(value: str) -> str:
    """Return the value of a header, which may be in Base64; as it is if that is damaged."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return value
