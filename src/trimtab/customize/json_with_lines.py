"""Parses JSON into objects that know their line in the file, so that problems can name it."""

from json.decoder import JSONDecoder, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from trimtab.config.jsonc import blank_out


class LinedObject(dict[str, Any]):
    """A JSON object with the line on which it begins."""

    line = 0


def parse_lined(text: str) -> Any:
    """Parse JSON with comments; every object is a `LinedObject`. Raises `ValueError`."""
    text = blank_out(text)

    def parse_object(position: tuple[str, int], *rest: Any) -> tuple[LinedObject, int]:
        found, end = JSONObject(position, *rest)
        lined = LinedObject(found)
        lined.line = text.count("\n", 0, position[1]) + 1
        return lined, end

    decoder = JSONDecoder()
    decoder.parse_object = parse_object  # type: ignore[attr-defined]
    decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder.decode(text)
