"""Exports traces and metrics with OpenTelemetry, if the environment asks for it."""
