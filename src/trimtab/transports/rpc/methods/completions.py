"""Completions while a person types: prompts of MCP servers and their arguments."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()

TRIGGERS = [":", " ", "="]


class Typed(msgspec.Struct):
    text: str
    offset: int
    """The place of the cursor, in units of UTF-16."""


@methods.on("session.completions.getTriggerCharacters")
async def get_triggers(call: Call, params: Nothing) -> JsonObject:
    """Return the characters after which a completion may help; none without servers."""
    has_servers = bool(call.session.live.controls.servers.describe())
    return {"triggerCharacters": TRIGGERS if has_servers else []}


@methods.on("session.completions.request", Typed)
async def request(call: Call, params: Typed) -> JsonObject:
    """Return what the word at the cursor may become; nothing if no server knows."""
    end = max(0, params.offset)
    text = params.text.encode("utf-16-le")[: end * 2].decode("utf-16-le", "ignore")
    word, values = await call.session.live.controls.servers.complete(text)
    start = end - len(word.encode("utf-16-le")) // 2
    return {
        "items": [{"insertText": value, "rangeStart": start, "rangeEnd": end} for value in values]
    }
