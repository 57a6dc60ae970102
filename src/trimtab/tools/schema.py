"""Checks values against the part of JSON Schema that tools use, and repairs near misses."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

Schema = dict[str, Any]


class Problem(msgspec.Struct, frozen=True):
    """A problem of a field: `short` for the event, `expected` as additional help for the model."""

    short: str
    expected: str = ""


ANNOTATIONS = {"type", "description", "title", "default", "examples", "$schema"}
CHECKED = {
    *("properties", "required", "additionalProperties", "enum", "items"),
    *("minimum", "maximum", "minItems", "maxItems"),
}
SUPPORTED = ANNOTATIONS | CHECKED
KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
ARTICLES = {"array": "an array", "object": "an object", "integer": "an integer", "null": "null"}
UNFIT = object()


def is_simple(schema: Any) -> bool:
    """Return True if `fit` supports everything in a schema."""
    if not isinstance(schema, dict) or not schema.keys() <= SUPPORTED:
        return False
    if schema.get("additionalProperties", True) is not True:
        return False
    parts = list(schema.get("properties", {}).values())
    if "items" in schema:
        parts.append(schema["items"])
    return all(is_simple(part) for part in parts)


def fit(schema: Schema, value: Any, path: str, problems: list[Problem]) -> Any:
    """Return the value, repaired if the schema allows only one repair. Adds to `problems`."""
    kinds = as_list(schema.get("type", []))
    if kinds and not any(KINDS[kind](value) for kind in kinds if kind in KINDS):
        repaired = repair(schema, kinds, value)
        if repaired is UNFIT:
            wanted = " or ".join(ARTICLES.get(kind, f"a {kind}") for kind in kinds)
            problems.append(
                Problem(
                    f'"{path}": Expected {" | ".join(kinds)}, received {kind_of(value)}',
                    f"It must be {wanted}.",
                )
            )
            return value
        value = repaired
    if isinstance(value, dict):
        value = fit_object(schema, value, path, problems)
    elif isinstance(value, list) and "items" in schema:
        value = [
            fit(schema["items"], item, f"{path}.{i}", problems) for i, item in enumerate(value)
        ]
    check_bounds(schema, value, path, problems)
    return value


def fit_object(
    schema: Schema, value: dict[str, Any], path: str, problems: list[Problem]
) -> dict[str, Any]:
    """Fit each known field; correct misspelled names; drop nulls and unknown fields.

    A schema that says `additionalProperties: true` keeps the unknown ones.
    """
    properties: dict[str, Schema] = schema.get("properties", {})
    required = schema.get("required", ())
    if not properties:
        return value
    spelled = {plain(name): name for name in properties if name not in value}
    fitted: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in properties else spelled.get(plain(key))
        if name is None and schema.get("additionalProperties"):
            fitted[key] = item
        if name is None or name in fitted:
            continue
        if item is None and "null" not in as_list(properties[name].get("type", "null")):
            continue
        fitted[name] = fit(properties[name], item, f"{path}.{name}" if path else name, problems)
    for name in required:
        if name not in fitted and "default" in properties.get(name, {}):
            fitted[name] = properties[name]["default"]
        elif name not in fitted:
            inner = f"{path}.{name}" if path else name
            problems.append(Problem(f'"{inner}": Required', expectation(properties.get(name, {}))))
    return fitted


def check_bounds(schema: Schema, value: Any, path: str, problems: list[Problem]) -> None:
    if "enum" in schema and value not in schema["enum"]:
        choices = " | ".join(f"'{choice}'" for choice in schema["enum"])
        problems.append(
            Problem(f"\"{path}\": Invalid enum value. Expected {choices}, received '{value}'")
        )
    if isinstance(value, int | float):
        if value < schema.get("minimum", -math.inf):
            problems.append(Problem(f'"{path}": Must be at least {schema["minimum"]}'))
        elif value > schema.get("maximum", math.inf):
            problems.append(Problem(f'"{path}": Must be at most {schema["maximum"]}'))
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            problems.append(Problem(f'"{path}": Must have at least {schema["minItems"]} items'))
        elif len(value) > schema.get("maxItems", math.inf):
            problems.append(Problem(f'"{path}": Must have at most {schema["maxItems"]} items'))


def repair(schema: Schema, kinds: list[str], value: Any) -> Any:
    """Return the only value of the wanted kinds that a near miss can mean, or UNFIT."""
    found = [new for kind in kinds if (new := convert(schema, kind, value)) is not UNFIT]
    return found[0] if len(found) == 1 else UNFIT


def convert(schema: Schema, kind: str, value: Any) -> Any:
    if isinstance(value, str) and kind not in ("string", "null"):
        parsed = parse_scalar(value)
        if kind in KINDS and KINDS[kind](parsed):
            return parsed
        value = value if parsed is UNFIT or kind == "array" else parsed
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "string" and KINDS["number"](value):
        return str(value)
    if kind == "array" and not isinstance(value, dict | list) and value is not None:
        problems: list[Problem] = []
        item = fit(schema.get("items", {}), value, "", problems)
        return UNFIT if problems else [item]
    return UNFIT


def parse_scalar(text: str) -> Any:
    """Return the value of a string that is JSON (`5`, `true`, `[1, 2]`), or UNFIT."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return UNFIT


def violations(schema: Schema, value: Any) -> list[Problem]:
    """Return the problems that a full validator finds; none if the schema is invalid."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, retriever=refuse_remote)
    except (ValueError, jsonschema_rs.ValidationError):
        return []
    return [
        Problem(f'"{".".join(str(step) for step in error.instance_path)}": {error.message}')
        for error in validator.iter_errors(value)
    ]


def refuse_remote(uri: str) -> Any:
    raise ValueError(f"Remote schemas are not fetched: {uri}")


def expectation(schema: Schema) -> str:
    kinds = as_list(schema.get("type", []))
    wanted = " or ".join(ARTICLES.get(kind, f"a {kind}") for kind in kinds)
    if "enum" in schema:
        wanted = "one of " + ", ".join(str(choice) for choice in schema["enum"])
    described = schema.get("description", "")
    return f"Give {wanted or 'a value'}{': ' + described if described else '.'}"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def kind_of(value: Any) -> str:
    return next((kind for kind, check in KINDS.items() if check(value)), type(value).__name__)


def plain(name: str) -> str:
    """Return a field name without case, underscores and dashes, which models get wrong."""
    return name.replace("_", "").replace("-", "").lower()
