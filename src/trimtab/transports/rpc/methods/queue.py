"""The queue of prompts of a session."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import PromptQueued
from trimtab.contracts.run import COMMAND
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class MessageId(msgspec.Struct, rename="camel"):
    message_id: str


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
            if prompt.mode != "immediate"
        ],
        "steeringMessages": [_text_of(prompt) for prompt in waiting if prompt.mode == "immediate"],
    }


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
    return {"withdrawn": call.session.live.inbox.withdraw(params.message_id, "withdrawn")}


def _text_of(prompt: PromptQueued) -> str:
    return prompt.display or prompt.text
