"""Probes what a model can actually do, whatever its service reports about it."""

import msgspec

from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.contracts.messages import Image, Text, ToolCall, UserMessage
from trimtab.contracts.provider import Provider, Reply, Request, ToolSpec

LOCAL_DEFAULT = 4096
"""The default context window of local servers, in tokens."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_PROMPT_SIZES = (6_000, 30_000)
_FILLER = "pelican "
"""A word of one token."""
_RED_SQUARE = (
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7o"
    "VwAAAABJRU5ErkJggg=="
)
_ADD = ToolSpec(
    name="add",
    description="Adds two whole numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The size in tokens that a prompt can actually have.

    `accepted` is the largest prompt that was read whole; `limit` is known once a prompt was cut or
    refused.
    """

    accepted: int = 0
    limit: int | None = None
    cut: bool = False
    """True if a longer prompt was silently cut rather than refused."""


class Findings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a probe. None means unknown."""

    model: str
    tools: bool | None
    parallel_tools: bool | None
    images: bool | None
    efforts: tuple[str, ...]
    window: Window
    advice: tuple[str, ...]
    calls: int


async def try_once(provider: Provider, model: str) -> None:
    """Call a model once with a word. Raises `ModelError` if it does not answer."""
    request = Request(
        model=model,
        system="",
        messages=(UserMessage(parts=(Text(text="Answer with the word ok."),)),),
    )
    async for piece in provider.stream(request):
        if isinstance(piece, Reply):
            return


class Probe:
    """Asks a model small questions, with at most `CALLS` calls."""

    CALLS = 3 + len(EFFORTS) + len(_PROMPT_SIZES)

    def __init__(self, provider: Provider, model: str) -> None:
        self._provider = provider
        self._model = model
        self._calls = 0

    async def run(self) -> Findings:
        """Probe the model. Raises `ModelError` if it cannot be called at all."""
        single = await self._call("What is 20 + 22? Use the tool.", tools=True)
        double = await self._call(
            "What are 1 + 2 and 3 + 4? Call the tool twice at once, in one answer.", tools=True
        )
        images = await self._sees_images()
        efforts = [effort for effort in EFFORTS if await self._accepts(effort)]
        window = await self._measure_window()
        tools = bool(single and any(_is_sum(call) for call in single.message.tool_calls))
        return Findings(
            model=self._model,
            tools=tools,
            parallel_tools=tools and bool(double and len(double.message.tool_calls) > 1),
            images=images,
            efforts=tuple(efforts),
            window=window,
            advice=tuple(_advise(tools, window)),
            calls=self._calls,
        )

    async def _call(
        self, text: str, *, tools: bool = False, image: bool = False, effort: str | None = None
    ) -> Reply | None:
        """Return the reply, or None if the service refuses such a request."""
        images = (Image(data=_RED_SQUARE, mime_type="image/png"),) if image else ()
        request = Request(
            model=self._model,
            system="You answer in one word or with a tool call.",
            messages=(UserMessage(parts=(Text(text=text), *images)),),
            tools=(_ADD,) if tools else (),
            stream=False,
            effort=effort,
            max_output_tokens=None if tools else 64,
        )
        self._calls += 1
        try:
            async for item in self._provider.stream(request):
                if isinstance(item, Reply):
                    return item
        except AuthenticationError:
            raise
        except ModelError as error:
            if error.category in {"invalid", "too_large", "refused"}:
                return None
            raise
        return None

    async def _sees_images(self) -> bool:
        reply = await self._call("Which colour has this square?", image=True)
        return reply is not None and "red" in reply.message.text.lower()

    async def _accepts(self, effort: str) -> bool:
        return await self._call("Say yes.", effort=effort) is not None

    async def _measure_window(self) -> Window:
        """Send prompts of increasing length and compare the token counts the service reports."""
        accepted = 0
        for size in _PROMPT_SIZES:
            reply = await self._call(f"Say yes. {_FILLER * size}")
            if reply is None:
                return Window(accepted=accepted, limit=size)
            counted = reply.usage.input_tokens
            if counted is None:
                return Window(accepted=accepted)
            if counted < size * 0.9:
                return Window(accepted=accepted, limit=counted, cut=True)
            accepted = counted
        return Window(accepted=accepted)


def _is_sum(call: ToolCall) -> bool:
    arguments = call.readable_arguments()
    return call.name == "add" and isinstance(arguments, dict) and set(arguments) >= {"a", "b"}


def _advise(tools: bool, window: Window) -> list[str]:
    advice = []
    if not tools:
        advice.append(
            "It did not call a tool, so it cannot work as an agent; choose another model."
        )
    if window.limit is not None and window.limit <= LOCAL_DEFAULT * 1.05:
        advice.append(
            f"Prompts end at about {window.limit:,} tokens, the default of local servers; start "
            "the server with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH=32768 ollama serve; "
            "llama.cpp: llama-server -c 32768; LM Studio: context length of the loaded model)."
        )
    elif window.cut:
        advice.append(
            f"The service silently cuts prompts longer than {window.limit:,} tokens; configure a "
            "smaller window for the model, or a larger one for the service."
        )
    return advice
