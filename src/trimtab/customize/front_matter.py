"""Reads the YAML block at the head of a Markdown file, simple ones without importing PyYAML."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.contracts.customization import Problem

_MARK = "---"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown file, split into fields and body. `body_line` is the first line of the body."""

    fields: Mapping[str, Any]
    body: str
    head: str = ""
    body_line: int = 1
    problems: tuple[Problem, ...] = ()


def split_document(text: str, path: str) -> Document:
    """Split a text into fields and body. The body is kept if the head cannot be parsed."""
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
    problems: list[Problem] = []
    try:
        fields = read_simple(head)
        if fields is None:
            fields = _read_leniently(head, path, problems)
    except YamlProblem as error:
        return Document(fields={}, body=body, body_line=body_line, problems=(error.problem,))
    return Document(
        fields=fields, body=body, head=head, body_line=body_line, problems=tuple(problems)
    )


@lru_cache(1)
def _closing() -> re.Pattern[str]:
    return re.compile(r"(?:^|(?<=\n))---[ \t]*(?:\n|$)")


def _read_leniently(head: str, path: str, problems: list[Problem]) -> dict[str, Any]:
    """Read YAML, and values such as `globs: *.py` and `description: Use it so: ...` as text.

    They are not valid YAML, but common, and other agents accept them.
    """
    try:
        return read_yaml(head, path, first_line=2, problems=problems)
    except YamlProblem:
        quoted = _unquoted().sub(_quote, head)
        if quoted == head:
            raise
        fields = read_yaml(quoted, path, first_line=2, problems=problems)
    lines = zip(head.split("\n"), quoted.split("\n"), strict=True)
    changed = next(number for number, (old, new) in enumerate(lines, 2) if old != new)
    message = "this is not valid YAML and is read as plain text: put it in quotes"
    problems.append(Problem(message=message, file=path, line=changed, note=True))
    return fields


def _quote(match: re.Match[str]) -> str:
    value = match[2].replace("'", "''")
    return f"{match[1]}'{value}'"


@lru_cache(1)
def _unquoted() -> re.Pattern[str]:
    """Return the pattern of a field whose value is a line of text that is not valid YAML."""
    return re.compile(
        r"^([A-Za-z][\w-]*:[ \t]+)(\*[^\w\n][^\n]*?|\*|[A-Za-z][^\n]*?: [^\n]*?)[ \t]*$",
        re.MULTILINE,
    )


class YamlProblem(ValueError):
    """Raised for invalid YAML."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@lru_cache(1)
def _line() -> re.Pattern[str]:
    # Plain words only: nothing that YAML could read as anything but this text.
    words = r'\["[^"\\]*"(?:, "[^"\\]*")*\]'
    return re.compile(rf"([A-Za-z][\w-]*): +([A-Za-z/.*][^\n]*?|>-|\||{words})[ \t]*")


_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
}


def read_simple(head: str) -> dict[str, Any] | None:
    """Read plain lines, lists of quoted words and indented texts as YAML does.

    Returns None for anything else. Most heads are so simple, and PyYAML takes 20 ms to import.
    """
    fields: dict[str, Any] = {}
    lines = head.split("\n")
    number = 0
    while number < len(lines):
        line, number = lines[number], number + 1
        if not line:
            continue
        match = _line().fullmatch(line)
        if match is None or not line.isprintable() or match[1] in fields or match[1] in _WORDS:
            return None
        key, value = match[1], match[2]
        if value in (">-", "|"):
            end = number
            while end < len(lines) and (not lines[end] or lines[end].startswith("  ")):
                end += 1
            block = _join_block(lines[number:end], folded=value == ">-")
            if block is None or (end == len(lines) and lines[-1]):  # no line feed at the end
                return None
            fields[key], number = block, end
        elif value[0] == "[":
            fields[key] = msgspec.json.decode(value)
        elif ": " in value or " #" in value or value[-1] == ":" or value[0] in "*.":
            return None  # a mapping, a comment, an alias, or a number such as .5 or .inf
        else:
            fields[key] = _WORDS.get(value, value)
    return fields


def _join_block(lines: list[str], *, folded: bool) -> str | None:
    """Return the text of lines indented by two spaces; None if YAML has further rules for them."""
    while lines and not lines[-1]:
        lines.pop()
    if not lines or not all(line.isprintable() and line.rstrip() == line for line in lines):
        return None
    if not lines[0][2:] or lines[0][2] == " ":
        return None
    if not folded:
        return "".join(f"{line[2:]}\n" for line in lines)
    if any(not line or line[2] == " " for line in lines):
        return None
    return " ".join(line[2:] for line in lines)


def read_yaml(
    text: str, path: str, *, first_line: int = 1, problems: list[Problem] | None = None
) -> dict[str, Any]:
    """Parse an object. Raises `YamlProblem`; repeated fields are added to `problems`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        # Before merge keys are expanded, which would look like repetitions.
        repeated = [] if node is None else list(_find_repeated(node))
        value = None if node is None else loader.construct_document(node)
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
    finally:
        loader.dispose()
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = "the block between the --- lines has no fields"
        raise YamlProblem(Problem(message=message, file=path, line=first_line))
    if problems is not None:
        message = "the field {} is given twice: the last one counts"
        problems += (
            Problem(message=message.format(name), file=path, line=first_line + line)
            for name, line in repeated
        )
    return {str(key): item for key, item in value.items()}


def _find_repeated(root: Any) -> Iterator[tuple[str, int]]:
    """Yield the keys that a mapping has more than once, with the line of the last occurrence."""
    nodes, seen = [root], {id(root)}
    while nodes:
        node = nodes.pop()
        if node.id == "scalar":
            continue
        below = node.value
        if node.id == "mapping":
            keys = [key.value for key, _ in node.value if key.id == "scalar"]
            if len(set(keys)) < len(keys):
                lines = {
                    key.value: key.start_mark.line for key, _ in node.value if key.id == "scalar"
                }
                yield from ((key, lines[key]) for key in lines if keys.count(key) > 1)
            below = [value for _, value in node.value]
        nodes += [child for child in below if id(child) not in seen]
        seen.update(map(id, below))
