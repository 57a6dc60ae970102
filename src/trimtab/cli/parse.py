"""Parses the arguments of a run by the table of flags, without the cost of argparse."""

import re
from typing import Any

from trimtab.cli.command_table import COMMANDS, is_word
from trimtab.cli.flags import FLAGS, Flag
from trimtab.contracts.errors import UsageError

Values = dict[str, Any]

_BY_NAME = {name: flag for flag in FLAGS for name in flag.names}


def parse(argv: list[str]) -> Values:
    """Parse the arguments of a run. Raises `UsageError` that names the wrong flag.

    A prompt without a flag is stored under the key `words`.
    """
    values: Values = {"ignored": []}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, has_value, text = word.partition("=")
        flag = _BY_NAME.get(name)
        if flag is None and _is_short_with_value(word):
            name, has_value, text = word[:2], "=", word[2:]
            flag = _BY_NAME[name]
        if flag is None and not word.startswith("-"):
            _store_words(values, word)
            continue
        if flag is None:
            raise UsageError(_describe_unknown(word))
        if flag.refused:
            raise UsageError(f"{name} cannot be used: {flag.refused}.")
        _store(values, flag, name, _take_value(flag, name, text if has_value else None, rest))
    return values


def parse_duration(text: str) -> float:
    """Return the seconds of `90s`, `20m`, `1h30m` or a plain number of seconds."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip())
    if not text.strip() or match is None:
        raise ValueError(text)
    hours, minutes, seconds = match.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0)


def _is_short_with_value(word: str) -> bool:
    flag = _BY_NAME.get(word[:2])
    return len(word) > 2 and word[0] == "-" != word[1] and flag is not None and flag.kind == "value"


def _take_value(flag: Flag, name: str, text: str | None, rest: list[str]) -> str | bool:
    if flag.kind == "switch":
        if text is not None:
            raise UsageError(f"{name} takes no value; write it without '={text}'.")
        return True
    if text is None and flag.kind == "optional":
        # `--resume ID` is accepted beside `--resume=ID`, as scripts write both.
        takes_next = bool(rest) and not rest[0].startswith("-")
        return rest.pop(0) if takes_next else True
    if text is None:
        if not rest or rest[0] in _BY_NAME:
            raise UsageError(f"{name} needs a value: {name} {flag.metavar or 'VALUE'}.")
        return rest.pop(0)
    return text


def _store_words(values: Values, word: str) -> None:
    """Store the prompt that is given without a flag. A single word is most likely a mistake."""
    for name, flag in (("prompt", "-p "), ("interactive", "-i "), ("words", "")):
        if name in values:
            import shlex

            whole = shlex.quote(f"{values[name]} {word}")
            raise UsageError(
                f"Unexpected argument {word!r}; put the whole prompt in quotes: {flag}{whole}"
            )
    if word in COMMANDS:
        raise UsageError(f"Flags come after the command; begin with: trimtab {word}")
    if is_word(word):
        raise UsageError(f"Unexpected argument {word!r}; give the prompt with -p {word!r}.")
    values["words"] = word


def _store(values: Values, flag: Flag, name: str, value: str | bool) -> None:
    if flag.ignored:
        values["ignored"].append((name, flag.ignored))
        return
    if flag.choices and value not in flag.choices:
        raise UsageError(f"{name} cannot be {value!r}; choose one of {', '.join(flag.choices)}.")
    if flag.kind == "list":
        values.setdefault(flag.key, []).append(value)
    elif flag.kind == "number":
        values[flag.key] = _number(name, str(value))
    elif flag.kind == "money":
        values[flag.key] = _money(name, str(value))
    elif flag.kind == "duration":
        values[flag.key] = _duration(name, str(value))
    else:
        values[flag.key] = value


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        raise UsageError(f"{name} needs a whole number, not {text!r}; for example {name} 10.")
    return int(text)


def _money(name: str, text: str) -> float:
    if not re.fullmatch(r"\$?\d{1,9}(?:\.\d{1,9})?", text):
        raise UsageError(f"{name} needs an amount, not {text!r}; for example {name} 2.50.")
    return float(text.lstrip("$"))


def _duration(name: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UsageError(f"{name} cannot read {text!r}; write 90s, 20m, 1h30m or seconds.")
    return seconds


def _describe_unknown(word: str) -> str:
    import difflib

    name = word.partition("=")[0]
    long_names = [known for known in _BY_NAME if known.startswith("--")]
    near = difflib.get_close_matches(name, long_names, 3)
    advice = f"did you mean {' or '.join(near)}?" if near else "see trimtab --help."
    return f"Unknown option {name}; {advice}"
