"""The queue of prompts that wait for the loop, including steering prompts."""

from collections.abc import Iterable

import msgspec

from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.own import (
    PromptChanged,
    PromptQueued,
    PromptWithdrawn,
    QueuePaused,
)
from trimtab.contracts.events.user import PendingMessagesModified
from trimtab.contracts.ids import new_id
from trimtab.contracts.provider import AnswerSchema
from trimtab.contracts.run import Prompt
from trimtab.session.session import Session


class Inbox:
    """The queue of a session.

    A prompt is in the log before it is acknowledged, and leaves the queue only with its
    `user.message` or the event of its withdrawal, so neither an abort nor a crash loses typed
    text. A held prompt waits until somebody releases it; prompts found in the log of an earlier
    process begin as held, except notifications. `agent_id` names the sub-agent whose queue it is,
    None the main agent.
    """

    def __init__(self, session: Session, agent_id: str | None = None) -> None:
        self._session = session
        self._agent_id = agent_id
        self._taken: set[str] = set()
        self.paused = False
        self._headers: dict[str, dict[str, str]] = {}
        """Headers may contain secrets, so they are kept in memory and never in the log."""
        self._held = {prompt.message_id for prompt in self._queued if prompt.notification is None}

    @property
    def pending(self) -> list[PromptQueued]:
        """The prompts that will be answered, in order."""
        return [prompt for prompt in self._waiting if prompt.message_id not in self._held]

    @property
    def ready(self) -> list[PromptQueued]:
        """The prompts that can be taken now: while the queue is paused, only steering ones."""
        return [prompt for prompt in self.pending if not self.paused or prompt.mode == "immediate"]

    @property
    def held(self) -> list[PromptQueued]:
        """The prompts that wait until somebody releases them, in order."""
        return [prompt for prompt in self._waiting if prompt.message_id in self._held]

    @property
    def _queued(self) -> list[PromptQueued]:
        return self._session.projections.queue.prompts_of(self._agent_id)

    @property
    def _waiting(self) -> list[PromptQueued]:
        return [prompt for prompt in self._queued if prompt.message_id not in self._taken]

    def _emit(self, data: EventData) -> None:
        self._session.emit(data, agent_id=self._agent_id)

    def put(self, prompt: Prompt, *, front: bool = False) -> str:
        """Accept a prompt and return its id."""
        message_id = prompt.id or new_id()
        if prompt.headers:
            self._headers[message_id] = prompt.headers
        self._emit(
            PromptQueued(
                message_id=message_id,
                text=prompt.text,
                mode=prompt.mode,
                source=prompt.source,
                billable=prompt.billable,
                front=front,
                display=prompt.display,
                attachments=list(prompt.attachments) or None,
                answer_schema=msgspec.to_builtins(prompt.answer_schema),
                notification=prompt.notification,
            )
        )
        self._emit(PendingMessagesModified())
        return message_id

    def take(self) -> Prompt | None:
        return self._take(self.ready)

    def take_immediate(self) -> Prompt | None:
        return self._take([prompt for prompt in self.pending if prompt.mode == "immediate"])

    def give_back(self, prompt: Prompt) -> None:
        """Put back a taken prompt that was not admitted."""
        self._taken.discard(prompt.id)

    def consume(self, prompt: Prompt) -> None:
        """Remove a taken prompt that needs no answer from the model, such as a slash command."""
        if any(waiting.message_id == prompt.id for waiting in self._queued):
            self._withdraw(prompt.id, "consumed")

    def hold(self) -> int:
        """Hold every waiting prompt until somebody releases it; return how many are held.

        Notifications are delivered with the next prompt.
        """
        self._held.update(
            prompt.message_id for prompt in self.pending if prompt.notification is None
        )
        return len(self.held)

    def release(self, message_ids: Iterable[str]) -> None:
        """Release held prompts."""
        self._held.difference_update(message_ids)

    def edit(self, message_id: str, text: str, display: str | None = None) -> bool:
        """Replace the text of a waiting prompt; return False if it no longer waits."""
        return self._change(PromptChanged(message_id=message_id, text=text, display=display))

    def move(self, message_id: str, position: int) -> bool:
        """Move a waiting prompt to a place among those that wait, from 0; False if it cannot.

        A place beyond the end means the end.
        """
        others = [prompt for prompt in self._waiting if prompt.message_id != message_id]
        place = max(0, position)
        before = others[place].message_id if place < len(others) else ""
        return self._change(PromptChanged(message_id=message_id, before=before))

    def steer(self, message_id: str) -> bool:
        """Make a waiting prompt a steering one; return False if it no longer waits."""
        self.release((message_id,))
        return self._change(PromptChanged(message_id=message_id, mode="immediate"))

    def pause(self, *, paused: bool) -> None:
        """Let no more prompts be taken except steering ones, or let the queue go on."""
        if paused != self.paused:
            self.paused = paused
            self._emit(QueuePaused(paused=paused))

    def _change(self, change: PromptChanged) -> bool:
        if all(prompt.message_id != change.message_id for prompt in self._waiting):
            return False
        self._emit(change)
        self._emit(PendingMessagesModified())
        return True

    def withdraw(self, message_id: str, reason: str | None = None) -> bool:
        """Withdraw a waiting prompt; return False if it no longer waits."""
        if all(prompt.message_id != message_id for prompt in self._waiting):
            return False
        self._withdraw(message_id, reason)
        return True

    def _withdraw(self, message_id: str, reason: str | None) -> None:
        self._emit(PromptWithdrawn(message_id=message_id, reason=reason))
        self._emit(PendingMessagesModified())

    def _take(self, waiting: list[PromptQueued]) -> Prompt | None:
        if not waiting:
            return None
        first = waiting[0]
        self._taken.add(first.message_id)
        return Prompt(
            text=first.text,
            display=first.display,
            attachments=tuple(first.attachments or ()),
            mode="immediate" if first.mode == "immediate" else "enqueue",
            source=first.source,
            billable=first.billable,
            id=first.message_id,
            headers=self._headers.get(first.message_id, {}),
            answer_schema=msgspec.convert(first.answer_schema, AnswerSchema | None),
            notification=first.notification,
        )


class TaskInbox(Inbox):
    """The queue of a sub-agent. Its task comes first; the call that gave it is in the log."""

    def __init__(self, session: Session, agent_id: str, task: Prompt | None = None) -> None:
        super().__init__(session, agent_id)
        self._held.clear()  # whoever goes on with an agent wants it to read its messages
        self._task = task

    @property
    def is_empty(self) -> bool:
        return self._task is None and not self.pending

    def take(self) -> Prompt | None:
        task, self._task = self._task, None
        return task or super().take()

    def give_back(self, prompt: Prompt) -> None:
        super().give_back(prompt)
        if prompt.source == "agent" and all(p.message_id != prompt.id for p in self._queued):
            self._task = prompt
