"""Serves a request on the wire of another service, or on a model without a wire."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from trimtab.bridge.freeform import as_functions, restore_calls
from trimtab.bridge.journal import Call, Journal
from trimtab.bridge.protocols import Adapter
from trimtab.bridge.reasoning import seal, unseal
from trimtab.bridge.targets import Target
from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import AssistantMessage, Message
from trimtab.contracts.provider import (
    Delta,
    ReasoningDelta,
    ReasoningDone,
    Reply,
    Request,
    RequestOptions,
    Sampling,
    ServedRequest,
    TextDelta,
    ToolCallDelta,
)
from trimtab.providers.http_server import Exchange
from trimtab.providers.service import Service
from trimtab.providers.wires import new_writer

_STREAM = (("content-type", "text/event-stream"), ("cache-control", "no-cache"))
_SAMPLING = {
    "anthropic-messages": ("temperature", "top_p", "top_k", "stop"),
    "openai-chat": (
        *("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty"),
    ),
    "openai-responses": ("temperature", "top_p"),
}
"""The fields for sampling that the services of a wire take."""


def read_request(adapter: Adapter, body: bytes) -> ServedRequest:
    """Read a request. Raises `ModelError` with status 400 if it is not in the format."""
    try:
        served = adapter.wire.request(body)
        options = msgspec.convert(msgspec.to_builtins(served.options), RequestOptions)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise ModelError(
            f"The request is not in the format of {adapter.path}; correct the types of its fields.",
            category="invalid",
            status=400,
        ) from None
    return msgspec.structs.replace(served, options=options)


def build_request(served: ServedRequest, target: Target) -> tuple[Request, tuple[str, ...]]:
    """Return the request for a model, and what its service cannot take."""
    options, left_out = served.options, list(served.left_out)
    supported = _SAMPLING.get(target.wire or "", ())
    wanted = {
        name: value
        for name, value in msgspec.structs.asdict(options.sampling).items()
        if value is not None
    }
    left_out += [name for name in wanted if name not in supported]
    names = {spec.name for spec in served.tools}
    required = options.required_tool if options.required_tool in names else None
    effort = options.effort
    if effort is not None and not _takes_effort(served, target):
        effort = None
        left_out.append("effort")
    limit = options.max_output_tokens
    known_limit = target.service.choice.max_output_tokens if target.service else None
    if limit is not None and known_limit is not None:
        limit = min(limit, known_limit)
    request = Request(
        model=target.chosen.model,
        system=served.system,
        messages=[_unsealed(message, target.origin) for message in served.messages],
        tools=served.tools,
        stream=served.stream,
        effort=effort,
        max_output_tokens=limit,
        tool_choice=options.tool_choice,
        required_tool=required,
        parallel_calls=options.parallel_calls,
        answer_schema=options.answer_schema,
        cache_key=options.cache_key,
        sampling=Sampling(**{name: wanted[name] for name in wanted if name in supported}),
    )
    if target.wire in {None, "openai-chat"}:
        request = as_functions(request)
    return request, tuple(left_out)


def _takes_effort(served: ServedRequest, target: Target) -> bool:
    """Return True if an effort can be passed on.

    Clients of the Messages format ask for thinking from every model; OpenAI's services reject an
    effort for models that do not reason.
    """
    if target.service is None:
        return False
    choice = target.service.choice
    is_asked = "thinking" not in served.body and "output_config" not in served.body
    return choice.wire == "anthropic-messages" or bool(choice.efforts) or is_asked


def _unsealed(message: Message, origin: str) -> Message:
    if not isinstance(message, AssistantMessage) or message.reasoning is None:
        return message
    return msgspec.structs.replace(message, reasoning=unseal(origin, message.reasoning))


class Translation:
    """The answer to one request, from a model that speaks another format than the client."""

    def __init__(self, exchange: Exchange, adapter: Adapter, call: Call, journal: Journal) -> None:
        self._exchange = exchange
        self._adapter = adapter
        self._call = call
        self._journal = journal
        self._begun = False
        self._said = False
        """True once a piece of the answer's text or of its reasoning was sent."""

    async def answer(self, served: ServedRequest, request: Request) -> None:
        """Answer as the model answers. Raises `ModelError` if it fails before it begins."""
        writer = new_writer(self._adapter.wire.name, served) if served.stream else None
        try:
            async with aclosing(self._stream(request)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        await self._finish(item, served, writer)
                        return
                    delta = self._sealed(item)
                    if writer is not None and (frames := writer.write(delta)):
                        await self._send(frames)
            raise ModelError("The model's answer ended too early; try again.", category="transport")
        except ModelError as error:
            failure = self._adapter.describe(error)
            self._journal.close_call(self._call, "error", code=failure.status)
            if not self._begun or writer is None:
                raise
            await self._send(writer.fail(failure.status, failure.message, failure.code))
            await self._exchange.end()

    def _stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        provider = self._call.target.chosen.provider
        # Trying again is left to the client, and so is waiting for a service that fails.
        if isinstance(provider, Service):
            return provider.stream_once(request)
        return provider.stream(request)

    async def _finish(self, reply: Reply, served: ServedRequest, writer: Any) -> None:
        # A client may leave after the last frame, so the call is recorded before it is sent.
        self._journal.close_call(self._call, "success", reply.usage, model=reply.model)
        freeform = frozenset(spec.name for spec in served.tools if spec.format is not None)
        reply = restore_calls(reply, freeform) if freeform else reply
        message = reply.message
        if message.reasoning is not None:
            sealed = seal(self._call.target.origin, message.reasoning)
            message = msgspec.structs.replace(message, reasoning=sealed)
        reply = msgspec.structs.replace(reply, message=message, model=served.model)
        if writer is None:
            await self._exchange.answer(200, self._adapter.wire.body(reply, served))
            return
        if not self._said:  # a model that does not stream, such as the embedded one
            for whole in _pieces(message):
                await self._send(writer.write(whole))
        await self._send(writer.finish(reply))
        await self._exchange.end()

    async def _send(self, frames: bytes) -> None:
        if not self._begun:
            self._begun = True
            await self._exchange.begin(200, _STREAM)
        await self._exchange.send((frames,))

    def _sealed(self, delta: Delta) -> Delta:
        if isinstance(delta, ReasoningDone):
            return ReasoningDone(seal(self._call.target.origin, delta.reasoning))
        if isinstance(delta, TextDelta | ReasoningDelta):
            self._said = True
            self._call.received += len(delta.text)
        elif isinstance(delta, ToolCallDelta):
            self._call.received += len(delta.arguments)
        return delta


def _pieces(message: AssistantMessage) -> Iterator[Delta]:
    """Yield the reasoning and the text of a message, each as one piece."""
    if message.reasoning is not None:
        yield ReasoningDone(message.reasoning)
    if message.text:
        yield TextDelta(message.text)
