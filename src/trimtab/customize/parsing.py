"""JSON and TOML files of other programs: their content, and the names of everything in it."""

from collections.abc import Iterator
from typing import Any

from trimtab.config.jsonc import JsonProblem, read_jsonc

DEEPEST = 4
"""Levels of objects whose fields are named."""


def parse_config(path: str, text: str) -> Any:
    """What a JSON or TOML file holds. Raises `JsonProblem`."""
    if not path.endswith(".toml"):
        return read_jsonc(text.encode("utf-8", "surrogateescape"))
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        import re

        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        reason = str(error)[: place.start()] if place else str(error)
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        raise JsonProblem(f"invalid TOML: {reason}", line) from None
    except RecursionError:
        raise JsonProblem("invalid TOML: it is nested too deeply", 0) from None


def field_names(value: Any, depth: int = DEEPEST) -> Iterator[str]:
    """Every field of an object and of the objects in it, with dots: `hooks.stop.command`."""
    if isinstance(value, list):
        for item in value:
            yield from field_names(item, depth)
    elif isinstance(value, dict) and depth:
        for name, inner in value.items():
            yield str(name)
            for below in field_names(inner, depth - 1):
                yield f"{name}.{below}"


def find_line(text: str, name: str) -> int:
    """The line on which a field of this name begins; 0 if it is not found."""
    import re

    escaped = re.escape(name)
    pattern = rf'(?m)^[^\n]*?(?:"{escaped}"\s*:|\[[\w.]*\.?"?{escaped}"?\]|^{escaped}\s*=)'
    match = re.search(pattern, text)
    return text.count("\n", 0, match.start()) + 1 if match else 0
