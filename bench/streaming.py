"""How fast answers are read from each wire, against a client that only reads the bytes."""

import asyncio
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection

from trimtab.contracts.messages import AssistantMessage, UserMessage
from trimtab.contracts.provider import Reply, Request, TextDelta, Usage
from trimtab.providers.endpoints import connect, from_environment
from trimtab.providers.tokens import counter_for
from trimtab.providers.wires import new_server_wire

MEGABYTES = 12
CHUNK = 24
ROUNDS = 3
FIRST_TOKENS = 60
FIRST, END = 0, 1
WIRES = {
    "openai-chat": {"TYPE": "openai"},
    "openai-responses": {"TYPE": "openai", "WIRE_API": "responses"},
    "anthropic-messages": {"TYPE": "anthropic"},
}
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def frames_of(wire: str, size: int) -> bytes:
    """A streamed answer of about so many bytes."""
    text = "The quick brown fox jumps over the lazy dog. "
    made = b"".join(_frames(wire, text * 20))
    return b"".join(_frames(wire, text * max(1, 20 * size // len(made))))


def _frames(wire: str, text: str) -> list[bytes]:
    usage = Usage(input_tokens=10, output_tokens=10)
    reply = Reply(message=AssistantMessage(text=text), usage=usage, model="m")
    return list(new_server_wire(wire).frames(reply, chunk=CHUNK))


def serve(ready: Connection, body: bytes) -> None:
    """In a process of its own: every request is answered with the same bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        writer.write(HEAD % len(body) + body)
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def read_bare(port: int) -> tuple[float, float]:
    """Seconds to the first byte of the body and to its end."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 18)
    writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
    await reader.readuntil(b"\r\n\r\n")
    await reader.read(1)
    first = time.perf_counter() - began
    while await reader.read(1 << 18):
        pass
    writer.close()
    return first, time.perf_counter() - began


async def read_ours(wire: str, port: int) -> tuple[float, float]:
    """Seconds to the first piece of text and to the reply."""
    variables = {f"COPILOT_PROVIDER_{name}": value for name, value in WIRES[wire].items()}
    url = f"http://127.0.0.1:{port}"
    choice = from_environment({"COPILOT_PROVIDER_BASE_URL": url, **variables})
    assert choice is not None
    provider = connect(choice, env={})
    request = Request(model="m", system="s", messages=[UserMessage.of("hi")])
    began, first = time.perf_counter(), 0.0
    async for item in provider.stream(request):
        if not first and isinstance(item, TextDelta):
            first = time.perf_counter() - began
    total = time.perf_counter() - began
    await provider.aclose()
    return first, total


def measure_wire(wire: str) -> tuple[float, float, float]:
    """MB/s, how many times longer than reading the bytes, and added ms to the first token."""
    body = frames_of(wire, MEGABYTES * 1_000_000)
    seconds, bare = _measure(wire, body, ROUNDS, END)
    small = frames_of(wire, 2000)
    first, bare_first = _measure(wire, small, FIRST_TOKENS, FIRST)
    return len(body) / 1e6 / seconds, seconds / bare, (first - bare_first) * 1000


def _measure(wire: str, body: bytes, rounds: int, which: int) -> tuple[float, float]:
    """The medians of ours and of the bare client, run in turn."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there, body), daemon=True)
    server.start()
    port = here.recv()

    async def run() -> list[tuple[float, float]]:
        await read_ours(wire, port)
        return [
            ((await read_ours(wire, port))[which], (await read_bare(port))[which])
            for _ in range(rounds)
        ]

    try:
        found = asyncio.run(run())
    finally:
        server.terminate()
        server.join()
    return statistics.median(a for a, _ in found), statistics.median(b for _, b in found)


def measure_counting() -> float:
    """MB/s of source code whose tokens are counted."""
    import inspect

    text = inspect.getsource(statistics) * 40
    message = UserMessage.of(text)
    counter = counter_for("gpt-4.1")
    counter.of(UserMessage.of("warm"))
    began = time.perf_counter()
    counter.of(message)
    spent = time.perf_counter() - began
    return len(text) / 1e6 / spent
