"""What a hook's answer means: exit codes, printed JSON, and several answers made into one."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import GUARDS, Ended, HookEntry, HookFailed
from trimtab.contracts.text import count
from trimtab.hooks.claude import read_output

BLOCKED = 2
"""The exit code by which a hook says no."""
LONGEST_CONTEXT = 10 * 1024
_TEXT_IS_CONTEXT = ("sessionStart", "userPromptSubmitted")
_ORDER: dict[str, tuple[str, ...]] = {
    "permissionDecision": ("deny", "ask", "allow"),
    "behavior": ("deny", "ask", "allow"),
    "decision": ("block", "allow"),
    "errorHandling": ("abort", "skip", "retry"),
}
"""Fields in which the most restrictive answer wins: values from the strictest on."""
_WITH: dict[str, tuple[str, ...]] = {
    "permissionDecision": ("permissionDecisionReason",),
    "behavior": ("message", "interrupt"),
    "decision": ("reason",),
    "errorHandling": ("retryCount",),
}
_JOINED = ("additionalContext", "systemMessage")


def read_end(entry: HookEntry, ended: Ended) -> JsonObject | None:
    """What a program said by the way it ended. Raises `HookFailed`."""
    if ended.timed_out:
        raise HookFailed(f"it did not end within {entry.seconds:g} s")
    if ended.exit_code is None:
        raise HookFailed("it wrote more than a hook may")
    if ended.exit_code == 0:
        return read_answer(entry, ended.output.decode("utf-8", "replace"))
    complaint = ended.errors.decode("utf-8", "replace").strip()
    if ended.exit_code == BLOCKED and (said := _blocked(entry, complaint)):
        return said
    raise HookFailed(f"it ended with code {ended.exit_code}" + (complaint and f": {complaint}"))


def _blocked(entry: HookEntry, complaint: str) -> JsonObject | None:
    """What exit code 2 stands for; None where it is a failure like others."""
    reason = complaint or f"{entry.does} said no"
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
    """The output a hook printed or sent. Raises `HookFailed` when it cannot be understood."""
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
        raise HookFailed(f"its output is no JSON object: {text[:200]}")
    return check(entry.event, output)


def read_progress(line: str) -> str | None:
    """The message of a line that only tells how far a hook is."""
    if '"progress"' not in line:
        return None
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if isinstance(said, dict) and said.get("type") == "progress":
        return str(said.get("message", ""))
    return None


_EVEN_NOTHING = ("metaToUse",)
"""Fields for which null is something to say: that there is to be none."""


def check(event: str, output: JsonObject) -> JsonObject:
    """An output in our words. One whose verdict is not understood is no answer: `HookFailed`."""
    said = {
        key: value
        for key, value in read_output(output).items()
        if value is not None or key in _EVEN_NOTHING
    }
    if said.get("continue") is False and event in GUARDS:
        said |= deny(event, str(said.get("stopReason") or "the hook stopped the agent"))
    if event == "preToolUse" and "permissionDecision" not in said and "decision" in said:
        verdict = {"block": "deny", "allow": "allow"}.get(str(said.pop("decision")), "?")
        said["permissionDecision"] = verdict
        said.setdefault("permissionDecisionReason", said.pop("reason", None))
    for field, values in _ORDER.items():
        if field in said and said[field] not in values and event in GUARDS:
            raise HookFailed(f"{field} is {said[field]!r}, which is none of {', '.join(values)}")
    if event == "preToolUse" and isinstance(changed := said.get("modifiedArgs"), str):
        said["modifiedArgs"] = _decode(changed)
    if event == "preToolUse" and not isinstance(said.get("modifiedArgs", {}), dict):
        raise HookFailed("modifiedArgs is no JSON object")
    if isinstance(context := said.get("additionalContext"), str):
        said["additionalContext"] = shorten(context)
    return said


def shorten(context: str) -> str:
    """Context for the model, not more than fits; it is said where some is missing."""
    data = context.encode("utf-8", "replace")
    if len(data) <= LONGEST_CONTEXT:
        return context
    kept = data[:LONGEST_CONTEXT].decode("utf-8", "ignore")
    return f"{kept}\n[cut: the hook gave {count(len(data), 'byte')}]"


def deny(event: str, reason: str) -> JsonObject:
    """The answer of a guard that did not give one."""
    if event == "permissionRequest":
        return {"behavior": "deny", "message": reason}
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def combine(outputs: Sequence[JsonObject]) -> JsonObject:
    """Several answers as one: the strictest verdict wins, of changes the last one counts."""
    combined: JsonObject = {}
    for output in outputs:
        combined |= output
    for field, values in _ORDER.items():
        given = [output for output in outputs if output.get(field) in values]
        if not given:
            continue
        strictest = min(given, key=lambda output: values.index(output[field]))
        for name in (field, *_WITH[field]):
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
