"""Builds the result of a headless run, its last line, for scripts."""

import time

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import timestamp
from trimtab.contracts.processor import Stop
from trimtab.runtime.live import LiveSession
from trimtab.session.projections.usage import ModelUsage
from trimtab.version import __version__

SCHEMA_VERSION = "1.0"

STATUSES: dict[int, str] = {
    ExitCode.SUCCESS: "success",
    ExitCode.FAILURE: "error",
    ExitCode.USAGE: "error",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.DENIED: "denied",
    ExitCode.BUDGET: "budget",
    ExitCode.LIMIT: "limit",
    ExitCode.AUTHENTICATION: "error",
    ExitCode.MODEL: "error",
}

_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}


class Clock:
    """Measures the duration of the run."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def elapsed_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)


def build_result(
    live: LiveSession | None, stop: Stop, clock: Clock, session_id: str | None = None
) -> JsonObject:
    """Return the result of a run; `live` is None if no session was opened."""
    status = STATUSES.get(stop.exit_code, "aborted")
    result: JsonObject = {
        "type": "result",
        "timestamp": timestamp(),
        "sessionId": live.id if live else session_id,
        "exitCode": stop.exit_code,
        "status": "blocked" if stop.reason == "blocked" else status,
        "stopReason": stop.reason,
        "usage": _usage(live, clock),
        "permissionDenials": len(live.projections.approvals.denials) if live else 0,
        "deniedCalls": live.projections.approvals.denials if live else [],
        "model": (live.projections.usage.last_model or live.model) if live else None,
        "schemaVersion": SCHEMA_VERSION,
        "version": __version__,
    }
    rules = live.controls.agent.parts.stop_rules if live else None
    if rules is not None and rules.checks.commands:
        result["endState"] = rules.checks.end_state
    if stop.exit_code:
        result["error"] = {"message": stop.message}
    return result


def _usage(live: LiveSession | None, clock: Clock) -> JsonObject:
    usage: JsonObject = {
        "premiumRequests": 0,
        "totalApiDurationMs": 0,
        "sessionDurationMs": clock.elapsed_ms(),
        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []},
        "modelCalls": 0,
        "tokens": dict.fromkeys(_TOKENS),
        "costUsd": None,
    }
    if live is None:
        return usage
    spent, changes = live.projections.usage, live.projections.changes
    total = spent.total
    return usage | {
        "premiumRequests": spent.premium_requests,
        "totalApiDurationMs": spent.api_duration_ms,
        "codeChanges": {
            "linesAdded": changes.lines_added,
            "linesRemoved": changes.lines_removed,
            "filesModified": changes.files,
        },
        **describe_spending(total),
    }


def describe_spending(total: ModelUsage) -> JsonObject:
    """Return the fields of `usage` about model calls."""
    return {
        "modelCalls": total.requests,
        "tokens": {kind: getattr(total, field) for kind, field in _TOKENS.items()},
        "costUsd": None if total.unpriced_requests else total.cost_usd,
    }
