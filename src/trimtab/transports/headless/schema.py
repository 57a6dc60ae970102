"""The JSON Schema of the event stream, generated from the event structs."""

from typing import Any

import msgspec

from trimtab.contracts.events import FAMILIES, class_of
from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.headless.result import SCHEMA_VERSION

_NUMBER_OR_NULL = {"type": ["integer", "null"], "minimum": 0}

RESULT: JsonObject = {
    "title": "result",
    "description": "The last line of every run.",
    "type": "object",
    "required": [
        "type",
        "timestamp",
        "sessionId",
        "exitCode",
        "status",
        "stopReason",
        "usage",
        "permissionDenials",
        "model",
        "schemaVersion",
    ],
    "properties": {
        "type": {"const": "result"},
        "timestamp": {"type": "string"},
        "sessionId": {"type": ["string", "null"]},
        "exitCode": {"type": "integer", "minimum": 0, "maximum": 255},
        "status": {
            "enum": [
                "success",
                "error",
                "incomplete",
                "blocked",
                "denied",
                "budget",
                "limit",
                "aborted",
            ]
        },
        "stopReason": {"type": "string"},
        "error": {
            "type": "object",
            "required": ["message"],
            "properties": {"message": {"type": "string"}},
        },
        "permissionDenials": {"type": "integer", "minimum": 0},
        "deniedCalls": {"type": "array", "items": {"type": "object"}},
        "model": {"type": ["string", "null"]},
        "schemaVersion": {"type": "string"},
        "version": {"type": "string"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "fleet": {
            "description": "The outcome of a fleet, if the run was one.",
            "type": "object",
            "required": ["id", "base", "branch", "todos", "conflicts", "checks", "verification"],
            "properties": {
                "id": {"type": "string"},
                "base": {"type": "string"},
                "branch": {"type": "string"},
                "todos": {"type": "array", "items": {"type": "object"}},
                "conflicts": {"type": "array", "items": {"type": "object"}},
                "checks": {"type": "array", "items": {"type": "object"}},
                "verification": {"enum": ["verified", "partly", "unverified"]},
            },
        },
        "usage": {
            "type": "object",
            "required": [
                "premiumRequests",
                "totalApiDurationMs",
                "sessionDurationMs",
                "codeChanges",
                "tokens",
                "costUsd",
            ],
            "properties": {
                "premiumRequests": {"type": "number", "minimum": 0},
                "totalApiDurationMs": {"type": "integer", "minimum": 0},
                "sessionDurationMs": {"type": "integer", "minimum": 0},
                "modelCalls": {"type": "integer", "minimum": 0},
                "costUsd": {"type": ["number", "null"], "minimum": 0},
                "codeChanges": {
                    "type": "object",
                    "required": ["linesAdded", "linesRemoved", "filesModified"],
                    "properties": {
                        "linesAdded": {"type": "integer", "minimum": 0},
                        "linesRemoved": {"type": "integer", "minimum": 0},
                        "filesModified": {"type": "array", "items": {"type": "string"}},
                    },
                },
                "tokens": {
                    "type": "object",
                    "required": ["input", "output", "cacheRead", "cacheWrite", "reasoning"],
                    "additionalProperties": _NUMBER_OR_NULL,
                },
            },
        },
    },
}


def event_schema() -> JsonObject:
    """Return a schema that every line of the stream satisfies. Unknown types are allowed."""
    names = [name for family in FAMILIES.values() for name in family]
    classes = [cls for name in names if (cls := class_of(name)) is not None]
    data_schemas, components = msgspec.json.schema_components(
        classes, ref_template="#/$defs/{name}"
    )
    events = [_envelope(name, schema) for name, schema in zip(names, data_schemas, strict=True)]
    unknown = _envelope(None, {"type": "object"})
    unknown["properties"]["type"] = {"type": "string", "not": {"enum": [*names, "result"]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trimtab event stream",
        "description": (
            "One line of `trimtab --output-format json`. Within a major version of schemaVersion "
            "fields and event types are only added."
        ),
        "version": SCHEMA_VERSION,
        "oneOf": [RESULT, *events, unknown],
        "$defs": components,
    }


def _envelope(name: str | None, data: dict[str, Any]) -> JsonObject:
    return {
        "title": name or "an event of another version",
        "type": "object",
        "required": ["type", "data", "id", "timestamp", "parentId"],
        "properties": {
            "type": {"const": name},
            "data": data,
            "id": {"type": "string"},
            "timestamp": {"type": "string"},
            "parentId": {"type": ["string", "null"]},
            "ephemeral": {"type": "boolean"},
            "agentId": {"type": "string"},
        },
    }
