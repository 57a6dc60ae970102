"""Reads JSON with comments and trailing commas; its errors name the line."""

import re
from functools import lru_cache
from typing import Any

import msgspec


class JsonProblem(ValueError):
    """Raised for invalid JSON, with the line of the mistake."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_jsonc(data: bytes) -> Any:
    """Return the value in a file. Raises `JsonProblem`."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise JsonProblem("it is nested too deeply", 1) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        plain = blank_out(data.decode("utf-8")).encode("utf-8")
        return msgspec.json.decode(plain)
    except UnicodeDecodeError as error:
        raise JsonProblem("it is not UTF-8", _line(data, error.start)) from None
    except RecursionError:
        raise JsonProblem("it is nested too deeply", 1) from None
    except msgspec.DecodeError as error:
        raise _locate(str(error), plain) from None


def blank_out(text: str) -> str:
    """Replace comments and trailing commas by blanks, so that every index and line stays."""
    return _comma().sub(_keep_string, blank_comments(text))


def blank_comments(text: str) -> str:
    """Replace comments by blanks."""
    return _comment().sub(_keep_string, text)


def _keep_string(match: re.Match[str]) -> str:
    found = match[0]
    if found.startswith('"'):
        return found
    return "".join(character if character in "\n\r" else " " for character in found)


@lru_cache(1)
def _comment() -> re.Pattern[str]:
    return re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?')


@lru_cache(1)
def _comma() -> re.Pattern[str]:
    return re.compile(r'"(?:[^"\\\n]|\\.)*"?|,(?=\s*[}\]])')


def _locate(message: str, data: bytes) -> JsonProblem:
    position = re.search(r"\(byte (\d+)\)", message)
    reason = re.sub(r"^JSON is malformed: | \(byte \d+\)$", "", message)
    offset = int(position[1]) if position else len(data)
    return JsonProblem(reason, _line(data, offset))


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
