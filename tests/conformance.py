"""Every event the test suite emits is checked against the official SDK's parser and our schema."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import jsonschema_rs

from trimtab.contracts.events.codec import decode, encode
from trimtab.transports.headless.schema import RESULT, event_schema


@cache
def schema() -> Any:
    return jsonschema_rs.validator_for(event_schema())


@cache
def result_schema() -> Any:
    return jsonschema_rs.validator_for(RESULT)


def check_lines(lines: Iterable[bytes]) -> None:
    for line in lines:
        check_line(line)


def check_line(line: bytes) -> None:
    """One line of a log or of the JSON stream."""
    from copilot.generated.session_events import SessionEventType, session_event_from_dict

    value = json.loads(line)
    if value["type"] == "result":
        result_schema().validate(value)
        return
    parsed = session_event_from_dict(value)
    own = value["type"].startswith("trimtab.")
    assert own == (parsed.type is SessionEventType.UNKNOWN), value["type"]
    schema().validate(value)
    assert json.loads(encode(decode(line))) == value
