"""Counts what the work on a message took, and emits it at its end. Nothing leaves this machine."""

import time
from collections.abc import Mapping

from trimtab.contracts.events.own import MessageTelemetry
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Run
from trimtab.session.session import Projections


class TelemetryMeter:
    """Remembers the sums of a session at the end of a message, to report only what came since."""

    def __init__(self, projections: Projections, env: Mapping[str, str]) -> None:
        self._projections = projections
        exported = env.get("COPILOT_OTEL_ENABLED", "").lower() in ("1", "true")
        self._destination = "opentelemetry" if exported else "local"
        self._since = time.monotonic()
        self._counted = self._count()

    def emit(self, run: Run, stop: Stop) -> None:
        """Emit what was counted since the last message."""
        before, now = self._counted, self._count()
        began, self._since = self._since, time.monotonic()
        self._counted = now
        run.session.emit(
            MessageTelemetry(
                stop_reason=stop.reason,
                model=run.agent.model.name,
                model_calls=now[0] - before[0],
                input_tokens=now[1] - before[1],
                output_tokens=now[2] - before[2],
                lines_added=now[3] - before[3],
                lines_removed=now[4] - before[4],
                duration_ms=int((self._since - began) * 1000),
                destination=self._destination,
            )
        )

    def _count(self) -> tuple[int, int, int, int, int]:
        usage, changes = self._projections.usage.total, self._projections.changes
        return (
            usage.requests,
            usage.input_tokens or 0,
            usage.output_tokens or 0,
            changes.lines_added,
            changes.lines_removed,
        )
