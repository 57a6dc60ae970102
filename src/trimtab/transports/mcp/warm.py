"""Keeps what serves clients without sessions between their requests.

A program behind the gateway is started once, not for every request, and keeps what it knows. A
conversation answers one request at a time, because a server's questions do not say to which of
several requests they belong.
"""

import asyncio
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import CAPABILITIES_KEY
from trimtab.transports.mcp.conversation import Conversation
from trimtab.transports.mcp.service import NewService

IDLE_SECONDS = 300.0
"""The time after which a conversation that nobody uses is closed."""
MAX_IDLE = 4
ANSWER_SECONDS = 600.0
"""The time a client has to answer what its request asked for."""
MAX_SUSPENDED = 100
Kept = tuple[Conversation, asyncio.TimerHandle]


def _ignore(message: JsonObject) -> None:
    """Drop a message that belongs to no request."""


class WarmConversations:
    """Conversations for requests without sessions: those in use, idle ones, suspended ones."""

    def __init__(self, new_service: NewService) -> None:
        self._new_service = new_service
        self._used: dict[Conversation, bytes] = {}
        """Conversations that answer a request, and the capabilities of their clients."""
        self._idle: list[tuple[bytes, *Kept]] = []
        """The last used is last."""
        self._suspended: dict[str, tuple[bytes, *Kept]] = {}
        """Requests that wait for their clients' answers, by their state."""
        self._closing: set[asyncio.Task[None]] = set()

    def take(self, message: JsonObject) -> Conversation:
        """Return the conversation that a request belongs to, or one that is free."""
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        key = _find_key(params)
        state = params.get("requestState")
        if isinstance(state, str) and state in self._suspended:
            _, conversation, timer = self._suspended.pop(state)
        else:
            index = next(
                (index for index, kept in reversed(list(enumerate(self._idle))) if kept[0] == key),
                None,
            )
            if index is None:
                conversation = Conversation(self._new_service, _ignore, self._announce)
                self._used[conversation] = key
                return conversation
            _, conversation, timer = self._idle.pop(index)
        timer.cancel()
        self._used[conversation] = key
        return conversation

    def give_back(self, conversation: Conversation, answer: JsonObject | None) -> None:
        """Keep a conversation for the next request, or for the client's answers."""
        key = self._used.pop(conversation)
        conversation.send = _ignore
        loop = asyncio.get_running_loop()
        if conversation.waits_for_client:
            state = str(((answer or {}).get("result") or {}).get("requestState"))
            if len(self._suspended) >= MAX_SUSPENDED:
                self._drop_suspended(next(iter(self._suspended)))
            timer = loop.call_later(ANSWER_SECONDS, self._drop_suspended, state)
            self._suspended[state] = (key, conversation, timer)
            return
        timer = loop.call_later(IDLE_SECONDS, self._drop_idle, conversation)
        self._idle.append((key, conversation, timer))
        if len(self._idle) > MAX_IDLE:
            self._drop_idle(self._idle[0][1])

    def _announce(self, method: str, params: JsonObject) -> None:
        """Send a change to every client that has subscribed to it."""
        for conversation in list(self._used):
            conversation.tell(method, params)

    def _drop_suspended(self, state: str) -> None:
        _, conversation, timer = self._suspended.pop(state)
        self._close(conversation, timer)

    def _drop_idle(self, conversation: Conversation) -> None:
        kept = next(kept for kept in self._idle if kept[1] is conversation)
        self._idle.remove(kept)
        self._close(conversation, kept[2])

    def _close(self, conversation: Conversation, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        task = asyncio.get_running_loop().create_task(conversation.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        for state in tuple(self._suspended):
            self._drop_suspended(state)
        for _, conversation, _ in tuple(self._idle):
            self._drop_idle(conversation)
        for conversation in tuple(self._used):
            await conversation.aclose()
        if self._closing:
            await asyncio.wait(self._closing)


def _find_key(params: JsonObject) -> bytes:
    """Return the capabilities of a client: a server with a handshake learns them only once."""
    meta: Any = params.get("_meta")
    capabilities = meta.get(CAPABILITIES_KEY) if isinstance(meta, dict) else None
    return msgspec.json.encode(capabilities, order="sorted")
