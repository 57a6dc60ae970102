"""The queue: prompts that were accepted and not yet answered."""

from typing import ClassVar

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import PromptQueued, PromptWithdrawn
from trimtab.contracts.events.user import UserMessage


class Queue:
    """Accepted prompts in the order they will be answered, for each agent of the session."""

    reads: ClassVar[frozenset[str]] = frozenset(
        ("trimtab.prompt_queued", "trimtab.prompt_withdrawn", "user.message")
    )

    def __init__(self) -> None:
        self._prompts: dict[str | None, list[PromptQueued]] = {}

    @property
    def prompts(self) -> list[PromptQueued]:
        """The prompts of the main agent."""
        return self.prompts_of(None)

    def prompts_of(self, agent_id: str | None) -> list[PromptQueued]:
        return self._prompts.get(agent_id, [])

    def apply(self, event: Event) -> None:
        waiting = self._prompts.get(event.agent_id, [])
        match event.data:
            case PromptQueued() as prompt:
                waiting.insert(0 if prompt.front else len(waiting), prompt)
                self._prompts[event.agent_id] = waiting
            case PromptWithdrawn(message_id=message_id) | UserMessage(message_id=message_id):
                left = [prompt for prompt in waiting if prompt.message_id != message_id]
                self._prompts[event.agent_id] = left
