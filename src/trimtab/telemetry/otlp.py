"""Exporters of the OpenTelemetry SDK that send spans and metrics over HTTP."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.export import SpanExporter

    from trimtab.telemetry.export import TelemetrySettings


def new_span_exporter(settings: "TelemetrySettings") -> "SpanExporter":
    """Return the exporter for traces. Raises `ImportError` if it is not installed."""
    address = f"{settings.endpoint.rstrip('/')}/v1/traces"
    if settings.protocol == "http/json":
        from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(endpoint=address)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Protobuf

    return Protobuf(endpoint=address)


def new_metric_exporter(settings: "TelemetrySettings") -> "MetricExporter":
    """Return the exporter for metrics. Raises `ImportError` if it is not installed."""
    address = f"{settings.endpoint.rstrip('/')}/v1/metrics"
    if settings.protocol == "http/json":
        from opentelemetry.exporter.otlp.json.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter(endpoint=address)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter as Protobuf,
    )

    return Protobuf(endpoint=address)
