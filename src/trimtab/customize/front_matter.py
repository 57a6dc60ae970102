"""The YAML block at the head of a Markdown file; the parser is imported only for what needs it."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.contracts.customization import Problem

_MARK = "---"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown file in two parts. `body_line` is the line its body begins on."""

    fields: Mapping[str, Any]
    body: str
    head: str = ""
    body_line: int = 1
    problems: tuple[Problem, ...] = ()


def split_document(text: str, path: str) -> Document:
    """Fields and body. A head that cannot be parsed is a problem, and the body is kept."""
    if not text.startswith(_MARK):
        return Document(fields={}, body=text)
    first, _, rest = text.partition("\n")
    if first.rstrip() != _MARK:
        return Document(fields={}, body=text)
    end = _closing().search(rest)
    if end is None:
        message = "the block that begins with --- has no closing ---"
        return Document(
            fields={}, body=text, problems=(Problem(message=message, file=path, line=1),)
        )
    head, body = rest[: end.start()], rest[end.end() :]
    body_line = 2 + head.count("\n") + end[0].count("\n")
    try:
        fields = read_simple(head)
        if fields is None:
            fields = read_yaml(head, path, first_line=2)
    except YamlProblem as error:
        return Document(fields={}, body=body, body_line=body_line, problems=(error.problem,))
    return Document(fields=fields, body=body, head=head, body_line=body_line)


@lru_cache(1)
def _closing() -> re.Pattern[str]:
    return re.compile(r"(?:^|(?<=\n))---[ \t]*(?:\n|$)")


class YamlProblem(ValueError):
    """What is wrong with a piece of YAML."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@lru_cache(1)
def _line() -> re.Pattern[str]:
    # Plain words only: nothing that YAML could read as anything but the text that stands there.
    return re.compile(r"([A-Za-z][\w-]*): +([A-Za-z/.*][^\n]*?)[ \t]*")


_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
}


def read_simple(head: str) -> dict[str, Any] | None:
    """A head of plain `key: words` lines, as YAML reads it; None if it is anything more.

    Most heads are, and PyYAML takes 20 ms to import.
    """
    fields: dict[str, Any] = {}
    for line in head.split("\n"):
        if not line:
            continue
        match = _line().fullmatch(line)
        if match is None or not line.isprintable():
            return None
        key, value = match[1], match[2]
        if ": " in value or " #" in value or value[-1] == ":" or key in fields or key in _WORDS:
            return None
        if value[0] in "*.":  # an alias, or a number such as .5 or .inf
            return None
        fields[key] = _WORDS.get(value, value)
    return fields


def read_yaml(text: str, path: str, *, first_line: int = 1) -> dict[str, Any]:
    """An object written in YAML. Raises `YamlProblem`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = first_line + mark.line if mark else first_line
        reason = getattr(error, "problem", None) or str(error)
        raise YamlProblem(
            Problem(message=f"invalid YAML: {reason}", file=path, line=line)
        ) from None
    except (RecursionError, ValueError) as error:
        message = f"invalid YAML: {str(error) or 'it is nested too deeply'}"
        raise YamlProblem(Problem(message=message, file=path, line=first_line)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = "the block between the --- lines holds no fields"
        raise YamlProblem(Problem(message=message, file=path, line=first_line))
    return {str(key): item for key, item in value.items()}
