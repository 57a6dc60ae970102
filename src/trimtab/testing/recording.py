"""Makes a script from a recorded session, to play the same replies again."""

from typing import Any

from trimtab.contracts.errors import ConfigurationError
from trimtab.providers.script import Script
from trimtab.session.records import read_records
from trimtab.session.transcript import plain_event


def recorded_script(log: str) -> Script:
    """Return a script with the model replies to the main agent in a log, in their order."""
    replies = []
    try:
        for record in read_records(log):
            if record.type == "assistant.message" and record.agent_id is None:
                data = plain_event(record.line).get("data")
                if isinstance(data, dict):
                    replies.append(_reply(data))
    except OSError as error:
        raise ConfigurationError(
            f"{log} cannot be read ({error.strerror}); name a session's `events.jsonl`."
        ) from error
    return Script.of(replies, log)


def _reply(data: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {
            "name": request.get("name"),
            "arguments": {} if request.get("arguments") is None else request["arguments"],
            "id": request.get("toolCallId"),
            "kind": "custom" if request.get("type") == "custom" else "function",
        }
        for request in data.get("toolRequests") or ()
    ]
    return {"text": data.get("content") or "", "tools": calls}
