"""Interprets the answers of hooks: exit codes and JSON output, and combines several answers."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import GUARDS, Ended, HookEntry, HookFailed
from trimtab.contracts.text import count
from trimtab.hooks.claude import read_output

EXIT_DENIED = 2
"""The exit code by which a hook denies."""
MAX_CONTEXT_BYTES = 10 * 1024
_TEXT_IS_CONTEXT = ("sessionStart", "userPromptSubmitted")
_ORDER: dict[str, tuple[str, ...]] = {
    "permissionDecision": ("deny", "ask", "allow"),
    "behavior": ("deny", "ask", "allow"),
    "decision": ("block", "allow"),
    "errorHandling": ("abort", "skip", "retry"),
}
"""Fields in which the most restrictive answer wins, with their values from the strictest on."""
_RELATED_FIELDS: dict[str, tuple[str, ...]] = {
    "permissionDecision": ("permissionDecisionReason",),
    "behavior": ("message", "interrupt"),
    "decision": ("reason",),
    "errorHandling": ("retryCount",),
}
"""Fields that are taken from the same answer as the verdict."""
_JOINED = ("additionalContext", "systemMessage")
"""Fields whose texts are joined."""


def read_end(entry: HookEntry, ended: Ended) -> JsonObject | None:
    """Return the answer of a program, from its exit code and output. Raises `HookFailed`."""
    if ended.timed_out:
        raise HookFailed(f"it timed out after {entry.seconds:g} s")
    if ended.exit_code is None:
        raise HookFailed("it wrote more output than a hook may")
    if ended.exit_code == 0:
        return read_answer(entry, ended.output.decode("utf-8", "replace"))
    errors = ended.errors.decode("utf-8", "replace").strip()
    if ended.exit_code == EXIT_DENIED and (answer := _read_denial(entry, errors)):
        return answer
    raise HookFailed(f"it exited with code {ended.exit_code}" + (errors and f": {errors}"))


def _read_denial(entry: HookEntry, errors: str) -> JsonObject | None:
    """Return the meaning of exit code 2; None for events where it is an ordinary failure."""
    reason = errors or f"{entry.does} denied it"
    match entry.event:
        case "preToolUse":
            return {"permissionDecision": "deny", "permissionDecisionReason": reason}
        case "permissionRequest":
            return {"behavior": "deny", "message": reason}
        case "postToolUseFailure":
            return {"additionalContext": reason}
        case "postToolUse" if entry.claude:
            return {"additionalContext": reason}
        case "agentStop" | "subagentStop" | "userPromptSubmitted" if entry.claude:
            return {"decision": "block", "reason": reason}
    return None


def read_answer(entry: HookEntry, text: str) -> JsonObject | None:
    """Parse the output that a hook printed or sent. Raises `HookFailed` if it is invalid."""
    text = "\n".join(line for line in text.split("\n") if read_progress(line) is None).strip()
    if not text:
        return None
    try:
        output = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        if entry.claude and entry.event in _TEXT_IS_CONTEXT:
            return {"additionalContext": text}
        raise HookFailed(f"its output is not JSON: {text[:200]}") from None
    if not isinstance(output, dict):
        raise HookFailed(f"its output is not a JSON object: {text[:200]}")
    return check(entry.event, output)


def read_progress(line: str) -> str | None:
    """Return the message of a line that reports the progress of a hook; None for other lines."""
    if '"progress"' not in line:
        return None
    try:
        progress = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if isinstance(progress, dict) and progress.get("type") == "progress":
        return str(progress.get("message", ""))
    return None


_NULLABLE = ("metaToUse",)
"""Fields in which null has a meaning: the value is to be removed."""


def check(event: str, output: JsonObject) -> JsonObject:
    """Translate an output to our vocabulary. Raises `HookFailed` if its verdict is invalid."""
    answer = {
        key: value
        for key, value in read_output(output).items()
        if value is not None or key in _NULLABLE
    }
    if answer.get("continue") is False and event in GUARDS:
        answer |= deny(event, str(answer.get("stopReason") or "the hook stopped the agent"))
    if event == "preToolUse" and "permissionDecision" not in answer and "decision" in answer:
        verdict = {"block": "deny", "allow": "allow"}.get(str(answer.pop("decision")), "?")
        answer["permissionDecision"] = verdict
        answer.setdefault("permissionDecisionReason", answer.pop("reason", None))
    for field, values in _ORDER.items():
        if field in answer and answer[field] not in values and event in GUARDS:
            raise HookFailed(f"{field} is {answer[field]!r}, not one of {', '.join(values)}")
    if event == "preToolUse" and isinstance(changed := answer.get("modifiedArgs"), str):
        answer["modifiedArgs"] = _decode(changed)
    if event == "preToolUse" and not isinstance(answer.get("modifiedArgs", {}), dict):
        raise HookFailed("modifiedArgs is not a JSON object")
    if isinstance(context := answer.get("additionalContext"), str):
        answer["additionalContext"] = shorten(context)
    return answer


def shorten(context: str) -> str:
    """Cut context for the model that is too long, and note its full size."""
    data = context.encode("utf-8", "replace")
    if len(data) <= MAX_CONTEXT_BYTES:
        return context
    kept = data[:MAX_CONTEXT_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n[cut: the hook returned {count(len(data), 'byte')}]"


def deny(event: str, reason: str) -> JsonObject:
    """Return a denial, for a guard that could not answer."""
    if event == "permissionRequest":
        return {"behavior": "deny", "message": reason}
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def combine(outputs: Sequence[JsonObject]) -> JsonObject:
    """Combine several answers: the strictest verdict wins, and the last change."""
    combined: JsonObject = {}
    for output in outputs:
        combined |= output
    for field, values in _ORDER.items():
        verdicts = [output for output in outputs if output.get(field) in values]
        if not verdicts:
            continue
        strictest = min(verdicts, key=lambda output: values.index(output[field]))
        for name in (field, *_RELATED_FIELDS[field]):
            combined.pop(name, None)
            if strictest.get(name) is not None:
                combined[name] = strictest[name]
    for field in _JOINED:
        if joined := "\n\n".join(_texts(output.get(field) for output in outputs)):
            combined[field] = joined
    return combined


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
