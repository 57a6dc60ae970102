"""Describes the work of one agent in plain lines, for `trimtab tasks tail` and its panel."""

from collections.abc import Iterator

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.text import neutralise
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Markdown, Notice, Part, Question, ToolInvocation, UserPrompt


class AgentLines:
    """Folds the events of one agent to lines. A call is told when it begins, and if it fails.

    The log does not record that a call runs, so a call that has not ended has no state of its own.
    """

    def __init__(self) -> None:
        self._fold = PartFold()
        self._begun: set[str] = set()

    def read(self, event: Event) -> list[str]:
        """Return the lines that an event adds."""
        found = (line for part in self._fold.apply(event) for line in self._describe(part))
        return [neutralise(line) for line in found]

    def _describe(self, part: Part) -> Iterator[str]:
        match part:
            case UserPrompt(text=text):
                yield f"> {text}"
            case Markdown(text=text, done=True) if text:
                yield text
            case ToolInvocation():
                if part.key not in self._begun:
                    self._begun.add(part.key)
                    yield f"* {part.title}"
                if part.ended and part.state != "completed":
                    yield f"* {part.title} ({part.state})"
            case Question(done=False):
                yield "? waits for an answer"
            case Notice(text=text):
                yield f"! {text}"
