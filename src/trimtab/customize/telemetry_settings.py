"""The setting `telemetry`: what switches the export of traces on, in place of variables."""

import msgspec

from trimtab.config.settings import Settings


class TelemetrySetting(msgspec.Struct, frozen=True, rename="camel"):
    """The fields are those of the `telemetry` option of the official SDKs, and `enabled`."""

    enabled: bool = False
    exporter_type: str | None = None
    file_path: str | None = None
    otlp_endpoint: str | None = None
    otlp_protocol: str | None = None
    source_name: str | None = None
    capture_content: bool = False


VARIABLES = {
    "exporter_type": "COPILOT_OTEL_EXPORTER_TYPE",
    "file_path": "COPILOT_OTEL_FILE_EXPORTER_PATH",
    "otlp_endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "otlp_protocol": "OTEL_EXPORTER_OTLP_PROTOCOL",
    "source_name": "COPILOT_OTEL_SOURCE_NAME",
}


def telemetry_variables(settings: Settings) -> dict[str, str]:
    """Return the variables that mean the same as the setting; those of the environment win."""
    found = settings.get("telemetry", TelemetrySetting, TelemetrySetting())
    if not found.enabled:
        return {}
    named = {VARIABLES[field]: getattr(found, field) for field in VARIABLES}
    variables = {name: value for name, value in named.items() if value}
    variables["COPILOT_OTEL_ENABLED"] = "true"
    if found.capture_content:
        variables["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    return variables
