"""The past of a resumed session, rendered by the same fold as when it happened."""

import msgspec

from trimtab.contracts.events.codec import decode
from trimtab.host.answers import OUTDATED
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Notice, Part, Question, QueuedPrompt, ToolInvocation, UserPrompt
from trimtab.host.recorded_commands import find_told
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.cells import Line
from trimtab.transports.tui.questions import build_question
from trimtab.transports.tui.transcript import Transcript

MAX_LINES = 1000
"""Lines of the past that are written."""
MAX_EVENTS = 5000
"""Events that are read back for them."""


class Past(msgspec.Struct, frozen=True):
    """The past of a resumed session: its last lines, and what still waits."""

    lines: list[Line]
    """The last lines; earlier ones are missing if `cut`."""
    cut: bool
    waiting: dict[str, QueuedPrompt]
    """The prompts that were not sent yet."""
    told: list[str]
    """Reports of the person's commands that the model reads with the next prompt."""


def replay(live: LiveSession, columns: int, rows: int) -> Past:
    """Return the past of a session."""
    events = live.read_events()
    fold, transcript = PartFold(), Transcript()
    own: list[Part] = []
    for raw in events[-MAX_EVENTS:]:
        for part in fold.apply(decode(bytes(raw))):
            if isinstance(part, Notice) and part.kind in OUTDATED:
                continue
            transcript.apply(part)
            if isinstance(part, UserPrompt | ToolInvocation):
                own.append(part)
            if isinstance(part, Question) and not part.done:
                asked = build_question(part, columns)
                if long := asked.render_long(columns, rows):
                    transcript.blank()
                    transcript.add_lines(long)
                    transcript.note_diff(asked.diff)
    transcript.settle()
    lines = transcript.take(columns)
    cut = len(events) > MAX_EVENTS or len(lines) > MAX_LINES
    return Past(lines[-MAX_LINES:], cut, transcript.waiting, find_told(own))
