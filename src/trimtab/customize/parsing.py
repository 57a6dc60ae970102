"""Parses JSON and TOML files of other programs, and finds the fields and lines in them."""

import re
from collections.abc import Iterator
from typing import Any

from trimtab.config.jsonc import JsonProblem, read_jsonc

MAX_DEPTH = 4
"""Levels of nested objects whose fields are named."""


def parse_config(path: str, text: str) -> Any:
    """Return the content of a JSON or TOML file. Raises `JsonProblem`."""
    if not path.endswith(".toml"):
        return read_jsonc(text.encode("utf-8", "surrogateescape"))
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        reason = str(error)[: place.start()] if place else str(error)
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        raise JsonProblem(f"invalid TOML: {reason}", line) from None
    except RecursionError:
        raise JsonProblem("invalid TOML: it is nested too deeply", 0) from None


def field_names(value: Any, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the fields of an object and of nested objects, with dots: `hooks.stop.command`."""
    if isinstance(value, list):
        for item in value:
            yield from field_names(item, depth)
    elif isinstance(value, dict) and depth:
        for name, inner in value.items():
            yield str(name)
            for below in field_names(inner, depth - 1):
                yield f"{name}.{below}"


def find_line(text: str, name: str) -> int:
    """Return the line on which a field begins; 0 if it is not found."""
    escaped = re.escape(name)
    pattern = rf'(?m)^[^\n]*?(?:"{escaped}"\s*:|\[[\w.]*\.?"?{escaped}"?\]|^{escaped}\s*=)'
    match = re.search(pattern, text)
    return text.count("\n", 0, match.start()) + 1 if match else 0
