"""The past of a resumed session, rendered by the same fold as when it happened."""

from trimtab.contracts.events.codec import decode
from trimtab.host.answers import OUTDATED
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Notice, Question, QueuedPrompt
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.cells import Line
from trimtab.transports.tui.questions import build_question
from trimtab.transports.tui.transcript import Transcript

MAX_LINES = 1000
"""Lines of the past that are written."""
MAX_EVENTS = 5000
"""Events that are read back for them."""


def replay(
    live: LiveSession, columns: int, rows: int
) -> tuple[list[Line], bool, dict[str, QueuedPrompt]]:
    """Return the last lines of the past, whether earlier ones are left out, and what waits."""
    events = live.read_events()
    fold, transcript = PartFold(), Transcript()
    for raw in events[-MAX_EVENTS:]:
        for part in fold.apply(decode(bytes(raw))):
            if isinstance(part, Notice) and part.kind in OUTDATED:
                continue
            transcript.apply(part)
            if isinstance(part, Question) and not part.done:
                asked = build_question(part, columns)
                if long := asked.render_long(columns, rows):
                    transcript.blank()
                    transcript.add_lines(long)
                    transcript.note_diff(asked.diff)
    transcript.settle()
    lines = transcript.take(columns)
    left_out = len(events) > MAX_EVENTS or len(lines) > MAX_LINES
    return lines[-MAX_LINES:], left_out, transcript.waiting
