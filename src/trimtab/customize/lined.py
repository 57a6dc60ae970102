"""JSON whose objects know the lines they begin on, so that problems can name them."""

from typing import Any

from trimtab.config.jsonc import blank_out


class LinedObject(dict[str, Any]):
    """An object of a file, and the line it begins on."""

    line = 0


def parse_lined(text: str) -> Any:
    """A value whose objects know their lines. Raises `ValueError`."""
    from json.decoder import JSONDecoder, JSONObject  # type: ignore[attr-defined]
    from json.scanner import py_make_scanner  # type: ignore[attr-defined]

    text = blank_out(text)

    def parse_object(place: tuple[str, int], *rest: Any) -> tuple[LinedObject, int]:
        found, end = JSONObject(place, *rest)
        lined = LinedObject(found)
        lined.line = text.count("\n", 0, place[1]) + 1
        return lined, end

    decoder = JSONDecoder()
    decoder.parse_object = parse_object  # type: ignore[attr-defined]
    decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder.decode(text)
