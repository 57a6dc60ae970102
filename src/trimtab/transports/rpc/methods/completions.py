"""Completions while a person types: prompts of MCP servers and their arguments."""

from contextlib import suppress

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.completion import TYPED, complete
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
    servers = call.session.live.controls.servers
    end = max(0, params.offset)
    text = params.text.encode("utf-16-le")[: end * 2].decode("utf-16-le", "ignore")
    typed = TYPED.fullmatch(text)
    known = {server["name"] for server in servers.describe()}
    if typed is None or typed[1] not in known:
        return {"items": []}
    server, name, words = typed.groups()
    with suppress(UsageError):  # a completion that fails is only not offered
        word, values = await complete(
            lambda method, given: servers.request(server, method, given), name, words
        )
        start = end - len(word.encode("utf-16-le")) // 2
        return {
            "items": [
                {"insertText": value, "rangeStart": start, "rangeEnd": end} for value in values
            ]
        }
    return {"items": []}
