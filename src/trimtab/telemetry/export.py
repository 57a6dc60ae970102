"""Exports traces and metrics of sessions with OpenTelemetry, if the environment asks for it.

This module is imported only then, and needs the extra `otel`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.session import SessionShutdown, SessionWarning
from trimtab.contracts.json_text import encode_json
from trimtab.session.spans import Span, SpanFold, describe
from trimtab.telemetry.otlp import new_metric_exporter, new_span_exporter
from trimtab.version import __version__

if TYPE_CHECKING:
    from trimtab.session.session import Session

SOURCE = "trimtab"
TOKENS, DURATION = "gen_ai.client.token.usage", "gen_ai.client.operation.duration"
SECONDS_TO_FLUSH = 5


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The destination of telemetry. `file` takes precedence over `endpoint`."""

    file: str = ""
    endpoint: str = ""
    protocol: str = "http/protobuf"
    source: str = SOURCE
    captures: bool = False


def read_settings(env: Mapping[str, str]) -> TelemetrySettings:
    """Return the settings in the environment. Raises `ConfigurationError`."""
    path, endpoint = env.get("COPILOT_OTEL_FILE_EXPORTER_PATH", ""), "http://localhost:4318"
    kind = env.get("COPILOT_OTEL_EXPORTER_TYPE") or ("file" if path else "otlp-http")
    protocol = env.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if kind not in ("file", "otlp-http"):
        raise ConfigurationError(
            f"COPILOT_OTEL_EXPORTER_TYPE is {kind!r}; set it to file or otlp-http."
        )
    if kind == "file" and not path:
        raise ConfigurationError(
            "Telemetry goes to a file, but COPILOT_OTEL_FILE_EXPORTER_PATH is not set; set it."
        )
    if protocol not in ("http/protobuf", "http/json"):
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; set it to http/protobuf or http/json."
        )
    return TelemetrySettings(
        file=path if kind == "file" else "",
        endpoint=env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or endpoint,
        protocol=protocol,
        source=env.get("COPILOT_OTEL_SOURCE_NAME") or SOURCE,
        captures=env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower()
        == "true",
    )


class Telemetry:
    """Exports the spans of one session while it runs."""

    def __init__(self, settings: TelemetrySettings) -> None:
        """Open the exporter. Raises `ConfigurationError`."""
        self._captures = settings.captures
        self._exporter = open_exporter(settings)

    def follow(self, session: "Session") -> None:
        """Export what happens in a session from now on, until it is closed."""
        fold = SpanFold(session.id, captures=self._captures)
        stop = session.subscribe(lambda event, _: self._export(session, fold, event, stop))

    def _export(
        self, session: "Session", fold: SpanFold, event: Event, stop: Callable[[], None]
    ) -> None:
        try:
            self._exporter.export(fold.add(event))
        except OSError as error:
            stop()
            message = (
                f"Telemetry of this session ended ({error.strerror}: {error.filename}); correct "
                "COPILOT_OTEL_FILE_EXPORTER_PATH."
            )
            session.emit(SessionWarning(warning_type="telemetry", message=message))
            return
        if event.type == SessionShutdown.wire_name:
            # Sending what is left may take seconds; the process waits for it at its end.
            sending = Thread(target=self._exporter.close)
            sending.start()
            _SENDING.append(sending)


_SENDING: list[Thread] = []
"""Threads that send what is left of closed sessions."""


def wait_until_sent() -> None:
    """Wait until the telemetry of all closed sessions is sent, or has failed to be."""
    while _SENDING:
        _SENDING.pop().join()


class Measurement(msgspec.Struct, frozen=True):
    """A value of a metric, with the attributes by which values are told apart."""

    metric: str
    unit: str
    value: float
    attributes: tuple[tuple[str, Any], ...]


def measure(span: Span) -> Iterator[Measurement]:
    """Yield the values of metrics that a span stands for."""
    operation = span.attributes.get("gen_ai.operation.name")
    if operation is None:
        return
    names = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model")
    about = tuple((name, span.attributes[name]) for name in names if name in span.attributes)
    yield Measurement(DURATION, "s", (span.end - span.start) / 1e9, about)
    for kind in ("input", "output"):
        count = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
        if operation == "chat" and count is not None:
            yield Measurement(TOKENS, "{token}", count, (*about, ("gen_ai.token.type", kind)))


class FileExporter:
    """Appends each span as one line of JSON, and at the end a line for each metric."""

    def __init__(self, path: str, source: str) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self._path = path
        self._scope = {"name": source, "version": __version__}
        self._values: dict[tuple[str, str], dict[tuple[tuple[str, Any], ...], list[float]]] = {}
        """The values of each metric and unit, by their attributes."""

    def export(self, spans: Iterable[Span]) -> None:
        described = []
        for span in spans:
            described.append(describe(span, self._scope))
            for found in measure(span):
                points = self._values.setdefault((found.metric, found.unit), {})
                points.setdefault(found.attributes, []).append(found.value)
        self._append(described)

    def close(self) -> None:
        """Write the metrics; a file that cannot be written was reported with the spans."""
        values, self._values = self._values, {}
        with suppress(OSError):
            self._append(
                {
                    "type": "metric",
                    "name": name,
                    "unit": unit,
                    "dataPoints": [
                        {
                            "attributes": dict(attributes),
                            "count": len(found),
                            "sum": sum(found),
                            "min": min(found),
                            "max": max(found),
                        }
                        for attributes, found in points.items()
                    ],
                    "instrumentationScope": self._scope,
                }
                for (name, unit), points in values.items()
            )

    def _append(self, objects: Iterable[JsonObject]) -> None:
        lines = [encode_json(described) + b"\n" for described in objects]
        if lines:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(fd, b"".join(lines))
            finally:
                os.close(fd)


class OtlpExporter:
    """Sends spans and metrics to a collector in the background, with the OpenTelemetry SDK."""

    def __init__(self, settings: TelemetrySettings) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._resource = Resource.create({"service.name": SOURCE, "service.version": __version__})
        self._scope = InstrumentationScope(settings.source, __version__)
        self._processor = BatchSpanProcessor(new_span_exporter(settings))
        reader = PeriodicExportingMetricReader(new_metric_exporter(settings))
        self._meters = MeterProvider(metric_readers=[reader], resource=self._resource)
        meter = self._meters.get_meter(settings.source, __version__)
        self._tokens = meter.create_histogram(TOKENS, "{token}")
        self._duration = meter.create_histogram(DURATION, "s")

    def export(self, spans: Iterable[Span]) -> None:
        for span in spans:
            self._processor.on_end(self._convert(span))
            self._measure(span)

    def close(self) -> None:
        """Send what is left, within a few seconds."""
        self._processor.force_flush(SECONDS_TO_FLUSH * 1000)
        self._processor.shutdown()  # type: ignore[no-untyped-call]
        self._meters.shutdown(SECONDS_TO_FLUSH * 1000)

    def _convert(self, span: Span) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: int) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=flags)

        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=context(span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=span.attributes | ({"error.type": span.error} if span.error else {}),
            kind=SpanKind.CLIENT if span.name.startswith("chat ") else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )

    def _measure(self, span: Span) -> None:
        for found in measure(span):
            histogram = self._tokens if found.metric == TOKENS else self._duration
            histogram.record(found.value, dict(found.attributes))


def open_exporter(settings: TelemetrySettings) -> FileExporter | OtlpExporter:
    """Open the exporter of the settings. Raises `ConfigurationError` without the extra."""
    if settings.file:
        return FileExporter(settings.file, settings.source)
    try:
        return OtlpExporter(settings)
    except ImportError:
        raise ConfigurationError(
            "Telemetry over OTLP needs the OpenTelemetry SDK; install it with "
            "pip install 'trimtab[otel]', or unset COPILOT_OTEL_ENABLED."
        ) from None
