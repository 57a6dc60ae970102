"""Parses and checks the arguments that a model wrote for a tool, and repairs near misses."""

from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import ToolResult

if TYPE_CHECKING:
    from trimtab.tools.schema import Problem

LONE_SURROGATE = "it contains half of a surrogate pair, such as \\ud83d: write the whole character"


def read_arguments(spec: ToolSpec, text: str) -> dict[str, Any] | ToolResult:
    """Return the arguments as an object that satisfies the tool's schema, or a failed result."""
    if spec.format is not None:
        return {"input": text}
    try:
        value = parse_object(text)
    except ValueError as error:
        return refuse_malformed(spec, error)
    from trimtab.tools.schema import fit, is_simple, violations

    schema = spec.parameters
    if is_simple(schema):
        problems: list[Problem] = []
        fitted = fit(schema, value, "", problems)
        return refuse(spec, problems, value) if problems else fitted
    first = violations(schema, value)
    if not first:
        return value
    fitted = fit(schema, value, "", [])
    return refuse(spec, first, value) if violations(schema, fitted) else fitted


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object, even if it was encoded twice. Raises `ValueError`."""
    value: Any = parse(text) if text.strip() else {}
    if isinstance(value, str):
        value = parse(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"an object was expected, not {text.strip()[:40]}")
    return value


def parse(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Small models put raw newlines into strings, which has only one possible meaning.
        import json

        try:
            value = json.loads(text, strict=False)
            msgspec.json.encode(value)
        except UnicodeEncodeError as error:
            raise ValueError(LONE_SURROGATE) from error
        except (json.JSONDecodeError, RecursionError):
            pass
        else:
            return value
        raise
    except UnicodeEncodeError as error:
        raise ValueError(LONE_SURROGATE) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def refuse_malformed(spec: ToolSpec, error: ValueError) -> ToolResult:
    fields = ", ".join(spec.parameters.get("properties", {}))
    return ToolResult(
        text=f"ERROR: Your input to the tool was invalid: malformed JSON ({error}). "
        f"Call `{spec.name}` again with one JSON object; its fields are: {fields or 'none'}.",
        kind="failure",
        summary=f"Malformed JSON: {error}",
    )


def refuse(spec: ToolSpec, problems: list["Problem"], value: dict[str, Any]) -> ToolResult:
    """Return a failure that names each wrong field and its expected value."""
    lines = [f"- {problem.short}. {problem.expected}".rstrip() for problem in problems]
    unknown = [key for key in value if key not in spec.parameters.get("properties", {})]
    if unknown:
        names = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"Unknown fields: {names}.")
    return ToolResult(
        text="ERROR: Your input to the tool was invalid.\n"
        + "\n".join(lines)
        + f"\nCorrect this and call `{spec.name}` again.",
        kind="failure",
        summary="; ".join(problem.short for problem in problems),
    )
