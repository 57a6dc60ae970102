"""The queue: prompts that were accepted and not yet answered."""

from typing import ClassVar

import msgspec

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import PromptChanged, PromptQueued, PromptWithdrawn
from trimtab.contracts.events.user import UserMessage


class Queue:
    """Accepted prompts in the order they will be answered, for each agent of the session."""

    reads: ClassVar[frozenset[str]] = frozenset(
        (
            "trimtab.prompt_queued",
            "trimtab.prompt_changed",
            "trimtab.prompt_withdrawn",
            "user.message",
        )
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
            case PromptChanged() as change:
                self._prompts[event.agent_id] = _change(waiting, change)
            case PromptWithdrawn(message_id=message_id) | UserMessage(message_id=message_id):
                left = [prompt for prompt in waiting if prompt.message_id != message_id]
                self._prompts[event.agent_id] = left


def _change(waiting: list[PromptQueued], change: PromptChanged) -> list[PromptQueued]:
    """Return the queue after a prompt was edited or moved."""
    found = [prompt for prompt in waiting if prompt.message_id == change.message_id]
    if not found:
        return waiting
    prompt = found[0]
    if change.text is not None:
        prompt = msgspec.structs.replace(prompt, text=change.text, display=change.display)
    if change.mode is not None:
        prompt = msgspec.structs.replace(prompt, mode=change.mode)
    if change.before is None:
        return [prompt if p.message_id == change.message_id else p for p in waiting]
    others = [p for p in waiting if p.message_id != change.message_id]
    at = next((n for n, p in enumerate(others) if p.message_id == change.before), len(others))
    return [*others[:at], prompt, *others[at:]]
