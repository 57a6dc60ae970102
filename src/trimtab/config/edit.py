"""Changes one field of a JSON file that people edit, and keeps its comments and layout."""

import json
import os
from typing import Any

from trimtab.config.files import cannot, format_json, make_private_dir, read_regular, update_file
from trimtab.config.jsonc import JsonProblem, blank_comments, blank_out, read_jsonc
from trimtab.contracts.errors import ConfigurationError


def change_field(path: str, key: str, value: Any) -> None:
    """Set a top-level field, or remove it if `value` is None. Creates the file if needed."""
    make_private_dir(os.path.dirname(path))
    update_file(path, lambda before: _change(path, before or b"", key, value))


def read_object(path: str) -> dict[str, Any]:
    """Return the object in a file, empty if there is no file. Raises `ConfigurationError`."""
    try:
        return _read(path, read_regular(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise cannot("read", path, error) from error


def _read(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = read_jsonc(data) if data.strip() else {}
    except JsonProblem as error:
        raise ConfigurationError(
            f"{path}:{error.line} is not valid JSON ({error}): correct it, then try again."
        ) from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} is not a JSON object: correct it, then try again.")
    return content


def _change(path: str, before: bytes, key: str, value: Any) -> bytes:
    content = _read(path, before)
    if not content:
        return format_json({key: value} if value is not None else {}) + b"\n"
    text = before.decode("utf-8-sig")
    span = _find(text, key)
    if value is None:
        return before if span is None else _cut(text, span).encode()
    rendered = format_json(value).decode().replace("\n", "\n  ")
    if span is not None:
        return (text[: span[1]] + rendered + text[span[2] :]).encode()
    return _append(text, f"{format_json(key).decode()}: {rendered}").encode()


def _append(text: str, field: str) -> str:
    """Append a field, after a comma if there is none yet."""
    bare = blank_comments(text)
    at = bare.rindex("}")
    last = len(bare[:at].rstrip())
    comma = "" if bare[last - 1] == "," else ","
    return f"{text[:last]}{comma}{text[last:at].rstrip()}\n  {field}\n{text[at:]}"


def _cut(text: str, span: tuple[int, int, int]) -> str:
    """Remove a field and the comma that separates it from the next, or else from the previous."""
    start, _, end = span
    bare = blank_comments(text)
    after = len(bare) - len(bare[end:].lstrip())
    if bare[after] == ",":
        return text[:start] + text[end:after] + text[after + 1 :]
    before = len(bare[:start].rstrip())
    head = text[: before - 1] if bare[before - 1] == "," else text[:before]
    return head + text[before:start] + text[end:]


def _find(text: str, key: str) -> tuple[int, int, int] | None:
    """Return the indices of a top-level field: start of its name, start and end of its value."""

    plain, decoder = blank_out(text), json.JSONDecoder()
    at = plain.index("{") + 1
    while True:
        at = _skip(plain, at, " \t\r\n,")
        if plain[at] == "}":
            return None
        start = at
        name, at = decoder.raw_decode(plain, at)
        at = _skip(plain, _skip(plain, at, " \t\r\n"), ": \t\r\n")
        _, end = decoder.raw_decode(plain, at)
        if name == key:
            return start, at, end
        at = end


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at
