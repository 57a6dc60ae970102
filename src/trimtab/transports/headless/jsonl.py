"""Prints events as lines of JSON on standard output."""

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.text import neutralise
from trimtab.transports.headless.output import Output

HIDDEN = frozenset(
    (
        "session.start",
        "session.resume",
        "session.idle",
        "session.shutdown",
        "system.message",
        "pending_messages.modified",
        "permission.requested",
        "permission.completed",
        "hook.start",
        "hook.end",
        "session.compaction_start",
        "session.compaction_complete",
        "trimtab.prompt_queued",
        "trimtab.prompt_changed",
        "trimtab.queue_paused",
        "trimtab.prompt_withdrawn",
        "trimtab.model_call",
    )
)
"""Events that this stream omits, as Copilot CLI does."""


class JsonLines:
    """The `--output-format json` stream.

    The reason of a failure is also written to `notes`, because harnesses look for it there.
    """

    def __init__(self, output: Output, notes: Output | None = None) -> None:
        self._output = output
        self._notes = notes

    def on_event(self, event: Event, line: bytes) -> None:
        if event.type not in HIDDEN:
            self._output.write(line + b"\n")

    def on_result(self, result: JsonObject) -> None:
        self._output.write(encode_json(result) + b"\n")
        message = (result.get("error") or {}).get("message")
        if message and self._notes is not None and result["exitCode"] != ExitCode.BROKEN_PIPE:
            line = " ".join(neutralise(message).split())
            self._notes.write(line.encode("utf-8", "replace") + b"\n")
