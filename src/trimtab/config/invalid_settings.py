"""Says in plain words what is wrong with the value of a setting."""

import re
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints

import msgspec

from trimtab.contracts.errors import ConfigurationError

_KINDS = {
    "array": "a list",
    "object": "an object",
    "str": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def refuse(setting: str, kind: type[msgspec.Struct], error: Exception) -> ConfigurationError:
    """Return the error for a setting that msgspec could not convert."""
    text, _, place = str(error).partition(" - at `$")
    path = setting + place.rstrip("`").partition("[")[0]
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        near = get_close_matches(match[1], names, 1)
        advice = f"did you mean {near[0]}?" if near else f"use {_list(names)}."
        return ConfigurationError(f"There is no setting {path}.{match[1]}; {advice}")
    if text.startswith("Invalid enum value "):
        value, known = text.removeprefix("Invalid enum value "), _find_values(kind, path)
        return ConfigurationError(f"The setting {path} has no value {value}; use {_list(known)}.")
    if match := re.fullmatch(r"Expected `([a-z]+)(?: \| [a-z |]+)?`, got .*", text):
        wanted = _KINDS.get(match[1], match[1])
        if "[" in place:
            return ConfigurationError(
                f"The setting {path} has an entry that is not {wanted}; correct it."
            )
        return ConfigurationError(f"The setting {path} is not {wanted}; write one.")
    return ConfigurationError(f"The setting {path} is invalid: {text}; correct it.")


def _find_values(kind: type[msgspec.Struct], path: str) -> list[str]:
    hints: dict[str, Any] = get_type_hints(kind)
    names = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    hint = hints.get(names.get(path.rpartition(".")[2], ""))
    return [value for value in get_args(hint) if isinstance(value, str)]


def _list(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)
