"""Turns the errors of runtimes into ours, by the service's status or by their words."""

import re

from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.runtimes.contract import AgentRuntime, Ended

_MAX_LENGTH = 600
_CLASSES = (
    (
        "auth",
        re.compile(
            r"not authenticated|copilot login|\b401\b|\b403\b|unauthori[sz]ed|invalid api key"
            r"|not logged in|/login|authentication|no authentication information"
            r"|auth method",
            re.IGNORECASE,
        ),
    ),
    (
        "rate_limit",
        re.compile(
            r"rate limit|too many requests|\b429\b|quota exceeded|usage limit", re.IGNORECASE
        ),
    ),
    (
        "not_found",
        re.compile(
            r"unknown model|model not found|model\b.*\binvalid|model\b.*does not exist"
            r"|model\b.*not (?:found|supported|available)|invalid model|may not exist",
            re.IGNORECASE,
        ),
    ),
    ("crash", re.compile(r"internal error|panic|uncaught", re.IGNORECASE)),
)
_STATUSES = {401: "auth", 403: "auth", 404: "not_found", 429: "rate_limit"}
_ADVICE = {
    "auth": "sign in to it, or set its key",
    "rate_limit": "wait, or use other models with --runtime-models host",
    "not_found": "name another one with --model",
    "crash": "see its trimtab.runtime_event lines in the log, and try again",
    "": "see its trimtab.runtime_event lines in the log",
}


def classify(text: str, status: int | None = None) -> str:
    """Return the class of a failure: auth, rate_limit, not_found, crash, or none of them."""
    if status in _STATUSES:
        return _STATUSES[status]
    return next((name for name, pattern in _CLASSES if pattern.search(text)), "")


def build_error(runtime: AgentRuntime, ended: Ended, advice: str = "") -> ModelError:
    """Return the error of a run that failed, as the runtime says it."""
    kind = classify(ended.error, ended.status)
    reason = " ".join(ended.error.split())[:_MAX_LENGTH].rstrip(".;")
    todo = advice or _ADVICE[kind]
    message = f"{runtime.title} failed: {reason}; {todo}{'' if todo.endswith('?') else '.'}"
    if kind == "auth":
        return AuthenticationError(message, status=ended.status)
    category = kind if kind in ("rate_limit", "not_found") else "invalid"
    return ModelError(message, category=category, status=ended.status)


def build_crash(runtime: AgentRuntime, code: int | None, errors: bytes) -> ModelError:
    """Return the error of a program that ended without a result."""
    text = errors.decode("utf-8", "replace")
    said = " ".join(text.split())[-_MAX_LENGTH:].strip()
    how = "was ended" if code is None else f"exited with {code}"
    ended = Ended(error=f"it {how} without a result" + (f" ({said})" if said else ""))
    return build_error(runtime, ended)
