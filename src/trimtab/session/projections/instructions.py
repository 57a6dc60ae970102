"""The just-in-time instructions that the main agent of a session was told."""

from typing import ClassVar

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.user import UserMessage


class SentInstructions:
    """Texts that must not be told again, whatever compaction left of the conversation."""

    reads: ClassVar[frozenset[str]] = frozenset(("user.message",))

    def __init__(self) -> None:
        self.texts: set[str] = set()

    def apply(self, event: Event) -> None:
        match event.data:
            case UserMessage(content=text, source="jit-instruction"):
                self.texts.add(text)
