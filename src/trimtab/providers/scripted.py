"""An in-process model that replies from a script, for tests and experiments."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import Message, Text, ToolMessage, UserMessage
from trimtab.contracts.provider import (
    Delta,
    ReasoningDelta,
    Reply,
    Request,
    TextDelta,
    ToolCallDelta,
)
from trimtab.providers.errors import from_response
from trimtab.providers.names import same_model
from trimtab.providers.script import Break, Player, RequestFacts, Script, Step, reply_of
from trimtab.providers.sse import SseParser
from trimtab.providers.wires.openai_chat import OpenAIChat
from trimtab.providers.wires.parts import cut

__all__ = ["Script", "ScriptedProvider"]


class ScriptedProvider:
    """The `Provider` that plays a script. It records the requests it receives."""

    name = "scripted"

    def __init__(self, script: Script, *, keep: int = 10_000) -> None:
        self.requests: list[Request] = []
        self._keep = keep
        self._player = Player(script)
        self._wire = OpenAIChat()

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        self.requests.append(request)
        del self.requests[: -self._keep]
        size = sum(map(len, self._wire.body(request)))
        step = self._player.next(
            lambda: describe_request(request.model, request.system, request.messages)
        )
        number = self._player.requests
        if step.delay:
            await asyncio.sleep(step.delay)
        if step.error is not None:
            raise _failure(step)
        reply = reply_of(step, number, size)
        deltas = list(deltas_of(reply, step.chunk)) if request.stream else []
        if step.raw is not None:
            deltas, reply = self._read_raw(step.raw)
        broken = step.broken
        for position, delta in enumerate(deltas):
            if broken is not None and position == broken.after:
                await _break_off(broken)
            if position and step.chunk_delay:
                await asyncio.sleep(step.chunk_delay)
            yield delta
        if broken is not None and broken.after >= len(deltas):
            await _break_off(broken)
        yield msgspec.structs.replace(
            reply,
            model=reply.model or request.model,
            substituted=not same_model(request.model, reply.model),
        )

    def _read_raw(self, raw: str) -> tuple[list[Delta], Reply]:
        reader = self._wire.reader()
        parser = SseParser()
        events = parser.feed(raw.encode()) + parser.end()
        return [delta for event in events for delta in reader.feed(event)], reader.finish()

    async def aclose(self) -> None:
        return None


def describe_request(model: str, system: str, messages: Sequence[Message]) -> RequestFacts:
    """Return the parts of a request that rules match."""
    return RequestFacts(last=_last(messages), system=system, model=model)


def deltas_of(reply: Reply, chunk: int) -> Iterator[Delta]:
    """Split a reply into deltas of `chunk` characters."""
    message = reply.message
    if message.reasoning is not None and message.reasoning.text:
        for piece in cut(message.reasoning.text, chunk):
            yield ReasoningDelta(piece)
    for piece in cut(message.text, chunk):
        yield TextDelta(piece)
    for call in message.tool_calls:
        for piece in cut(call.arguments, chunk):
            yield ToolCallDelta(call.id, call.name, piece)


def _last(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            return message.text
        if isinstance(message, UserMessage) and not message.system:
            return "\n".join(part.text for part in message.parts if isinstance(part, Text))
    return ""


def _failure(step: Step) -> ModelError:
    error = step.error
    assert error is not None
    body = error.body
    if body is None:
        body = {"error": {"message": error.message, "code": error.code}}
    data = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    headers = {name.lower(): value for name, value in error.headers.items()}
    return from_response(error.status, headers, data)


async def _break_off(broken: Break) -> None:
    if broken.how != "stall":
        raise ModelError("The script cut off this answer; try again.", category="transport")
    if broken.seconds is None:
        await asyncio.get_running_loop().create_future()
    else:
        await asyncio.sleep(broken.seconds)
