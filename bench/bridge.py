"""The time that `trimtab bridge` adds to a call and to a streamed piece, against no bridge."""

import asyncio
import http.client
import json
import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from streaming import CHUNK

from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.provider import Reply, Usage
from trimtab.providers.wires import new_server_wire

Row = Callable[[str, float, float | None, float | None], None]

CALLS = 200
PIECES = 4000
ROUNDS = 7
ROUTES = {"own wire": "/v1/chat/completions", "translated": "/v1/messages"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"


def frames(pieces: int) -> bytes:
    reply = Reply(
        message=AssistantMessage(text="x" * CHUNK * pieces),
        usage=Usage(input_tokens=10, output_tokens=10),
        model="m",
    )
    return b"".join(new_server_wire("openai-chat").frames(reply, chunk=CHUNK))


def serve(ready: Connection) -> None:
    """In a process of its own: streams one piece, or many if the request says so."""
    one, many = frames(1), frames(PIECES)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            request = await reader.readexactly(length)
            body = many if b"many" in request else one
            writer.write(HEAD % len(body) + body)
            await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def ask(client: http.client.HTTPConnection, path: str, key: str, text: str) -> float:
    """Return the seconds of one streamed call."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}
    options = {"max_tokens": 100} if "messages" in path else {}
    if not options:
        options["stream_options"] = {"include_usage": True}  # type: ignore[assignment]
    headers = {"content-type": "application/json", "x-api-key": key}
    began = time.perf_counter()
    client.request("POST", path, json.dumps({**body, **options}), headers)
    response = client.getresponse()
    data = response.read()
    assert response.status == 200, data[:300]
    return time.perf_counter() - began


def measure(port: int, path: str, key: str) -> tuple[float, float]:
    """Return the least ms of a call, and ms of a further streamed piece."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    ask(client, path, key, "one")
    call = min(ask(client, path, key, "one") for _ in range(CALLS))
    stream = min(ask(client, path, key, "many") for _ in range(ROUNDS))
    client.close()
    return call * 1000, (stream - call) / PIECES * 1000


def measure_bridge(trimtab: Path, row: Row) -> None:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-bridge-") as home:
        env = {
            **os.environ,
            "HOME": home,
            "COPILOT_HOME": home,
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "COPILOT_MODEL": "m",
        }
        began = time.perf_counter()
        process = subprocess.Popen(
            [trimtab, "bridge", "--model", "m", "--json"], env=env, stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            line = json.loads(process.stdout.readline())
            row("bridge: start to listening, ms", (time.perf_counter() - began) * 1000, None, None)
            direct = measure(port, ROUTES["own wire"], "")
            bridge = int(line["url"].rpartition(":")[2])
            for name, path in ROUTES.items():
                call, piece = measure(bridge, path, line["key"])
                row(f"bridge, {name}: a call, ms", call, direct[0], direct[0] + 2)
                row(f"bridge, {name}: a streamed piece, µs", piece * 1000, direct[1] * 1000, 50)
        finally:
            process.terminate()
            process.wait()
            server.terminate()
            server.join()


if __name__ == "__main__":
    import sys

    measure_bridge(
        Path(sys.argv[1]), lambda what, value, base, _: print(f"{what}: {value:.2f} ({base})")
    )
