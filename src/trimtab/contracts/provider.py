"""Model services: requests, deltas, replies, and the ports that providers implement."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from trimtab.contracts.messages import AssistantMessage, Message, Reasoning


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it. `format` replaces `parameters` for freeform (`custom`) tools."""

    name: str
    description: str
    parameters: dict[str, Any] = {}
    format: dict[str, Any] | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one call as the service counted them; None means it did not say.

    `input_tokens` includes cached tokens; `cache_read_tokens` and `cache_write_tokens` say how many
    of them were read from and written to the service's prompt cache.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


CREDIT_USD = 0.01
"""The price of one AI credit of GitHub."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a model, in USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float | None:
        """Return the cost of a call, or None if the service did not report its tokens."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = usage.cache_read_tokens or 0
        written = usage.cache_write_tokens or 0
        plain = max(0, usage.input_tokens - cached - written)
        read_price = self.input if self.cache_read is None else self.cache_read
        write_price = self.input if self.cache_write is None else self.cache_write
        total = plain * self.input + usage.output_tokens * self.output
        return (total + cached * read_price + written * write_price) / 1_000_000


class AnswerSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON Schema that an answer must match."""

    schema: dict[str, Any]
    name: str = "response"
    strict: bool = True


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sampling parameters of a request; None leaves one to the service."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call to a model. Messages are shared between requests, so wires cache by object."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    stream: bool = True
    effort: str | None = None
    reasoning_summary: bool = False
    """True asks for a readable summary of the reasoning, on wires that can."""
    max_output_tokens: int | None = None
    tool_choice: Literal["auto", "none", "required"] | None = None
    headers: dict[str, str] = {}
    cache_key: str | None = None
    answer_schema: AnswerSchema | None = None
    """The schema of the answer, if it must be JSON."""
    required_tool: str | None = None
    """The tool that the model must call; takes precedence over `tool_choice`."""
    parallel_calls: bool | None = None
    """False if a reply may contain only one tool call."""
    sampling: Sampling = Sampling()


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    text: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of a tool call; `call_id` and `name` are known from the first piece on."""

    call_id: str
    name: str
    arguments: str


class ReasoningDone(msgspec.Struct, frozen=True):
    """A part of the reasoning is complete, with the opaque part that its service wants back."""

    reasoning: Reasoning


class Waiting(msgspec.Struct, frozen=True):
    """The call is delayed for about so many seconds, for this reason."""

    seconds: float
    reason: str


Delta: TypeAlias = TextDelta | ReasoningDelta | ReasoningDone | ToolCallDelta | Waiting


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer. `model` is the model that answered, as the service names it.

    `substituted` says that this is another model than the one asked for.
    """

    message: AssistantMessage
    usage: Usage = Usage()
    finish_reason: str | None = None
    model: str | None = None
    request_id: str | None = None
    substituted: bool = False
    citations: dict[str, Any] | None = None
    """The sources of parts of the text, and the spans they support, as events have them."""
    billing_multiplier: float | None = None
    """The premium requests that one request of a person costs, if the service lists that."""
    prompt_limit: int | None = None
    """The largest prompt of the model in tokens, if the service lists that."""


class Provider(Protocol):
    """A model service. Implementations raise `ModelError` and nothing else."""

    name: str

    def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        """Make one call; yields deltas (none when not streaming) and, last, exactly one `Reply`.

        A stream that ends before the reply is complete raises `ModelError`: a half-received tool
        call never comes out. Closing the iterator cancels the request.
        """
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...


@runtime_checkable
class ListsModels(Protocol):
    """A provider that can list the models of its service."""

    async def list_models(self) -> list[str] | None:
        """Return the names of the models; None if the service does not list them.

        Raises `ModelError` if the service cannot be reached or refuses to answer.
        """
        ...


class WireReader(Protocol):
    """Reads one streamed answer. `done` is true once the service has marked its end."""

    done: bool

    @property
    def usage(self) -> Usage:
        """The usage as far as it has arrived."""
        ...

    def feed(self, data: bytes) -> Sequence[Delta]:
        """Take the data of one server-sent event. Raises `ModelError` for an in-stream error."""
        ...

    def finish(self) -> Reply:
        """Called at the end of the stream; raises `ModelError` if the answer is not complete."""
        ...


class Wire(Protocol):
    """A request and reply format. Pure: no I/O, so it is tested by recorded frames.

    An instance belongs to one conversation: it may keep the encoded form of messages it has seen.
    """

    name: str
    path: str

    def body(self, request: Request) -> list[bytes]:
        """Return the request body in pieces, to be written one after another."""
        ...

    def reader(self) -> WireReader: ...

    def reply(self, body: bytes) -> Reply:
        """Read a non-streamed answer."""
        ...


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a served request, in the words of `Request`."""

    effort: str | None = None
    max_output_tokens: int | None = None
    tool_choice: Literal["auto", "none", "required"] | None = None
    required_tool: str | None = None
    parallel_calls: bool | None = None
    answer_schema: AnswerSchema | None = None
    cache_key: str | None = None
    sampling: Sampling = Sampling()


class StreamWriter(Protocol):
    """Writes one streamed answer in the format of a wire, as it arrives."""

    def write(self, delta: Delta) -> bytes:
        """Return the frames of a delta; the first call also begins the stream."""
        ...

    def finish(self, reply: Reply) -> bytes:
        """Return the frames that complete the stream."""
        ...

    def fail(self, status: int, message: str, code: str | None = None) -> bytes:
        """Return the frames of an error in the middle of the stream."""
        ...


class ServedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the server side of a wire decodes it.

    System messages before the first other message are joined in `system`; later ones stay in
    their place. `left_out` names the parts that no other wire can express.
    """

    model: str
    stream: bool
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    body: dict[str, Any] = {}
    options: RequestOptions = RequestOptions()
    left_out: tuple[str, ...] = ()


class ServerWire(Protocol):
    """The server side of a wire, for the scripted model server and the bridge."""

    name: str
    path: str

    def request(self, body: bytes) -> ServedRequest: ...

    def frames(self, reply: Reply, *, chunk: int = 16) -> Iterator[bytes]:
        """Yield the answer as server-sent events, text cut into pieces of `chunk` characters."""
        ...

    def body(self, reply: Reply, request: ServedRequest | None = None) -> bytes:
        """Return the answer as one JSON body."""
        ...

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        """Return an error body in this format."""
        ...
