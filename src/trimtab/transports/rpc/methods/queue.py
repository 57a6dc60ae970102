"""The queue of prompts of a session."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import PromptQueued
from trimtab.contracts.run import COMMAND, Prompt
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.methods.session import Send, read_prompt

methods = Methods()


class MessageId(msgspec.Struct, rename="camel"):
    message_id: str
    expected_prompt: str | None = None
    """A prompt that was edited since it was sent is not taken back."""


@methods.on("session.queue.pendingItems")
async def list_pending(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    waiting = live.inbox.pending
    return {
        "items": [
            {
                "id": prompt.message_id,
                "messageId": prompt.message_id,
                "kind": "command" if prompt.source == COMMAND else "message",
                "displayText": _text_of(prompt),
                "agentMode": live.mode,
            }
            for prompt in waiting
            if prompt.mode != "immediate" and prompt.notification is None
        ],
        "steeringMessages": [
            _text_of(prompt)
            for prompt in waiting
            if prompt.mode == "immediate" and prompt.notification is None
        ],
    }


@methods.on("session.queue.snapshot")
async def take_snapshot(call: Call, params: Nothing) -> JsonObject:
    return await list_pending(call, params)


@methods.on("session.queue.hasPending")
async def has_pending(call: Call, params: Nothing) -> JsonObject:
    return {"hasPending": bool(call.session.live.inbox.pending)}


@methods.on("session.queue.clear")
async def clear(call: Call, params: Nothing) -> None:
    inbox = call.session.live.inbox
    for prompt in inbox.pending:
        inbox.withdraw(prompt.message_id, "cleared")


@methods.on("session.queue.removeMostRecent")
async def remove_most_recent(call: Call, params: Nothing) -> JsonObject:
    inbox = call.session.live.inbox
    waiting = inbox.pending
    return {"removed": bool(waiting) and inbox.withdraw(waiting[-1].message_id, "removed")}


@methods.on("session.queue.withdrawMessage", MessageId)
async def withdraw(call: Call, params: MessageId) -> JsonObject:
    """Take back a prompt that still waits; a run that has begun is not interrupted."""
    inbox, wanted = call.session.live.inbox, params.expected_prompt
    known = [prompt.text for prompt in inbox.pending if prompt.message_id == params.message_id]
    same = wanted is None or known == [wanted]
    removed = same and inbox.withdraw(params.message_id, "withdrawn")
    return {"removed": removed, "interrupted": False}


class ItemId(msgspec.Struct):
    id: str


class MoveItem(msgspec.Struct, rename="camel"):
    id: str
    to_position: int


class UpdateText(msgspec.Struct, rename="camel"):
    id: str
    prompt: str
    display_prompt: str | None = None


class InsertAt(msgspec.Struct):
    position: int
    message: Send


class SetDrainPaused(msgspec.Struct):
    paused: bool


@methods.on("session.queue.moveItem", MoveItem)
async def move_item(call: Call, params: MoveItem) -> JsonObject:
    inbox = call.session.live.inbox
    order = [prompt.message_id for prompt in inbox.pending]
    moved = inbox.move(params.id, params.to_position)
    return {"changed": moved and order != [prompt.message_id for prompt in inbox.pending]}


@methods.on("session.queue.updateText", UpdateText)
async def update_text(call: Call, params: UpdateText) -> JsonObject:
    inbox = call.session.live.inbox
    return {"updated": inbox.edit(params.id, params.prompt, params.display_prompt)}


@methods.on("session.queue.removeAt", ItemId)
async def remove_at(call: Call, params: ItemId) -> JsonObject:
    return {"removed": call.session.live.inbox.withdraw(params.id, "removed")}


@methods.on("session.queue.insertAt", InsertAt)
async def insert_at(call: Call, params: InsertAt) -> JsonObject:
    live = call.session.live
    message_id = live.inbox.put(read_prompt(params.message))
    live.inbox.move(message_id, params.position)
    live.wake()
    return {"id": message_id}


@methods.on("session.queue.duplicateAt", ItemId)
async def duplicate_at(call: Call, params: ItemId) -> JsonObject:
    """Put a copy of a waiting prompt behind it."""
    inbox = call.session.live.inbox
    for position, prompt in enumerate(inbox.pending):
        if prompt.message_id == params.id:
            copy = Prompt(
                text=prompt.text,
                display=prompt.display,
                attachments=tuple(prompt.attachments or ()),
                source=prompt.source,
            )
            message_id = inbox.put(copy)
            inbox.move(message_id, position + 1)
            return {"id": message_id}
    raise UsageError(f"No waiting prompt has the id {params.id!r}; list the queue.")


@methods.on("session.queue.sendNow", ItemId)
async def send_now(call: Call, params: ItemId) -> JsonObject:
    """Show a waiting prompt to the model before its next call; False if no turn is running."""
    live = call.session.live
    return {"steered": live.busy and live.inbox.steer(params.id)}


@methods.on("session.queue.setDrainPaused", SetDrainPaused)
async def set_drain_paused(call: Call, params: SetDrainPaused) -> None:
    live = call.session.live
    if params.paused and live.inbox.paused:
        raise UsageError("queue_already_paused")
    live.inbox.pause(paused=params.paused)
    live.wake()


def _text_of(prompt: PromptQueued) -> str:
    return prompt.display or prompt.text
