"""Many sessions in one server: python tests/properties/rpc_load.py [SESSIONS] [TOKENS] [RATE].

Every token carries its session and the moment it was sent, so that cross-talk and the latency
added between model service and client are measured and not guessed.
"""

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

TRIMTAB = os.path.join(os.path.dirname(sys.executable), "trimtab")


class Model:
    """Streams `tokens` tokens at `rate` a second to every caller."""

    def __init__(self, tokens: int, rate: float) -> None:
        self._tokens = tokens
        self._pause = 1 / rate

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while header := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", header, re.IGNORECASE)
                body = json.loads(await reader.readexactly(int(length.group(1)) if length else 0))
                await self._stream(writer, str(body["messages"][-1]["content"]))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, prompt: str) -> None:
        number = prompt.rsplit("session ", 1)[1].split(maxsplit=1)[0]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        writer.write(head + b"\r\n\r\n")
        begun = time.perf_counter()
        for token in range(self._tokens):
            await asyncio.sleep(begun + token * self._pause - time.perf_counter())
            self._chunk(writer, {"content": f"{number}/{token}/{time.perf_counter():.6f};"}, None)
            await writer.drain()
        self._chunk(writer, {}, "stop")
        end = b"data: [DONE]\n\n"
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(end), end))
        await writer.drain()

    def _chunk(self, writer: asyncio.StreamWriter, delta: Any, finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "x", "model": "m", "object": "chat.completion.chunk", "choices": [choice]}
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))


class Client:
    """The least a client needs: requests out, replies and events in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.texts: dict[str, str] = defaultdict(str)
        self.late: list[float] = []
        self.idle: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.messages: dict[str, str] = {}

    def close(self) -> None:
        self._writer.transport.abort()

    async def call(self, method: str, **params: Any) -> Any:
        number = len(self._waiting)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        return await self._waiting[number]

    async def read(self) -> None:
        while header := await self._reader.readline():
            await self._reader.readline()
            message = json.loads(await self._reader.readexactly(int(header.split(b":")[1])))
            if "id" in message:
                self._waiting[message["id"]].set_result(message["result"])
            elif message["method"] == "session.event":
                self._hear(message["params"]["sessionId"], message["params"]["event"])

    def _hear(self, session_id: str, event: Any) -> None:
        if event["type"] == "assistant.message_delta":
            now, text = time.perf_counter(), event["data"]["deltaContent"]
            self.texts[session_id] += text
            self.late += [now - float(one.split("/")[2]) for one in text.split(";") if one]
        elif event["type"] == "assistant.message":
            self.messages[session_id] = event["data"]["content"]
        elif event["type"] == "session.idle":
            self.idle[session_id].set()


async def load(sessions: int, tokens: int, rate: float) -> dict[str, Any]:
    """All sessions at once; what was late, what was wrong, what it cost."""
    model = await asyncio.start_server(Model(tokens, rate).serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1"
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "COPILOT_HOME": home, "COPILOT_MODEL": "m"}
        env["COPILOT_PROVIDER_BASE_URL"] = address
        process = await asyncio.create_subprocess_exec(
            TRIMTAB, "--headless", cwd=home, env=env, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            port = int((await process.stdout.readline()).rsplit(b" ", 1)[1])
            client = Client(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24))
            reading = asyncio.create_task(client.read())
            ids = [
                (await client.call("session.create", streaming=True))["sessionId"]
                for _ in range(sessions)
            ]
            for number, session_id in enumerate(ids):
                await client.call(
                    "session.send", sessionId=session_id, prompt=f"session {number} go"
                )
            async with asyncio.timeout(60 + tokens / rate * 3):
                for session_id in ids:
                    await client.idle[session_id].wait()
            status = Path(f"/proc/{process.pid}/status").read_text()
            reading.cancel()
            client.close()
        finally:
            process.terminate()
            await process.wait()
    model.close()
    late = sorted(client.late)
    wrong = [
        session_id
        for number, session_id in enumerate(ids)
        if client.texts[session_id] != client.messages.get(session_id)
        or {one.split("/")[0] for one in client.texts[session_id].split(";") if one}
        != {str(number)}
        or client.texts[session_id].count(";") != tokens
    ]
    return {
        "wrong": wrong,
        "p50_ms": statistics.median(late) * 1000,
        "p95_ms": late[int(len(late) * 0.95)] * 1000,
        "rss_mb": int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024,
    }


def main() -> int:
    given = sys.argv[1:4]
    sessions, tokens, rate = map(int, (*given, *("200", "100", "20")[len(given) :]))
    outcome = asyncio.run(load(sessions, tokens, rate))
    print(
        f"{sessions} sessions at {rate} tokens/s: {len(outcome['wrong'])} wrong, added latency "
        f"p50 {outcome['p50_ms']:.1f} ms, p95 {outcome['p95_ms']:.1f} ms, {outcome['rss_mb']:.0f} MB"
    )
    return bool(outcome["wrong"] or outcome["p95_ms"] > 50 or outcome["rss_mb"] > 1500)


if __name__ == "__main__":
    sys.exit(main())
