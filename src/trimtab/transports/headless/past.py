"""The past of a resumed session in plain lines, told as it was when it happened."""

from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.text import neutralise
from trimtab.host.answers import OUTDATED, describe_exchange, describe_permission
from trimtab.host.calls import describe_end
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Markdown, Part, Question, ToolInvocation, UserPrompt
from trimtab.host.recorded_commands import find_told
from trimtab.runtime.live import LiveSession
from trimtab.transports.headless.text import Style, TextOutput

MAX_LINES = 1000
"""Lines of the past that are printed."""
MAX_EVENTS = 5000
"""Events that are read back for them."""


class _Collected:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data


def tell_past(live: LiveSession, style: Style) -> tuple[str, list[str]]:
    """Return the last lines of a session, with a remark if earlier ones are left out.

    The second value is what the model has not read yet of the person's own commands.
    """
    events = live.read_events()
    shown = _Collected()
    face, fold = TextOutput(shown, shown, style), PartFold()
    own: list[Part] = []
    for raw in events[-MAX_EVENTS:]:
        event = decode(bytes(raw))
        if isinstance(event.data, SessionWarning) and event.data.warning_type in OUTDATED:
            continue
        for part in fold.apply(event):
            if isinstance(part, UserPrompt | ToolInvocation):
                own.append(part)
            if isinstance(event.data, ModelCall) and isinstance(part, Markdown):
                text = neutralise(part.text)  # an answer that was stopped
            else:
                text = _describe(part)
            if text:
                face.tidy()
                shown.write(f"{text}\n".encode("utf-8", "replace"))
        face.on_event(event, b"")
    face.tidy()
    lines = shown.data.decode("utf-8", "replace").rstrip("\n").split("\n")
    if len(events) > MAX_EVENTS or len(lines) > MAX_LINES:
        lines = lines[-MAX_LINES:]
        remark = f"The last {len(lines):,} lines; all of it: trimtab sessions show {live.id}"
        lines = [remark, *lines]
    return "\n".join(lines), find_told(own)


def _describe(part: Part) -> str:
    """Return what the person said: a prompt, or the answer to a question."""
    if isinstance(part, Question):
        told = describe_permission(part) if part.done else ""
        return f"  {told}" if told else ""
    if part.agent_id is not None:
        return ""
    if isinstance(part, UserPrompt):
        who = "" if part.source in ("", "user") else part.source
        if who and not part.text.strip():
            return ""  # a remark of ours to the model
        return f"\n{who}> {neutralise(part.text)}"
    if isinstance(part, ToolInvocation) and part.by_person:
        return _describe_own(part) if part.ended else ""
    exchange = describe_exchange(part) if isinstance(part, ToolInvocation) else ""
    return f"  {exchange}" if exchange else ""


def _describe_own(part: ToolInvocation) -> str:
    """Return a command of the person and all that it printed."""
    command = part.arguments.get("command") if isinstance(part.arguments, dict) else ""
    output = neutralise(part.output).rstrip("\n")
    end = describe_end(part.exit_code) if part.exit_code else ""
    return "\n".join(filter(None, (f"! {neutralise(str(command))}", output, end)))
