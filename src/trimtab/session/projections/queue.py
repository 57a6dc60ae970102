"""The queue: prompts that were accepted and not yet answered."""

from typing import ClassVar

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import PromptQueued, PromptWithdrawn
from trimtab.contracts.events.user import UserMessage


class Queue:
    """Accepted prompts in the order they will be answered."""

    reads: ClassVar[frozenset[str]] = frozenset(
        ("trimtab.prompt_queued", "trimtab.prompt_withdrawn", "user.message")
    )

    def __init__(self) -> None:
        self.prompts: list[PromptQueued] = []

    def apply(self, event: Event) -> None:
        match event.data:
            case PromptQueued() as prompt:
                self.prompts.insert(0 if prompt.front else len(self.prompts), prompt)
            case PromptWithdrawn(message_id=message_id) | UserMessage(message_id=message_id):
                self.prompts = [p for p in self.prompts if p.message_id != message_id]
