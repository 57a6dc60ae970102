"""The speed of `trimtab --acp`: from spawn to its first answers, tokens, and many sessions."""

import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trimtab.testing import ModelServer, Script

ROUNDS = 15
SESSIONS = 50
TOKENS = 200
CANCELS = 20


class Client:
    """The program on pipes, spoken to in lines."""

    def __init__(self, trimtab: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [trimtab, "--acp"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._next = 1

    def call(self, method: str, **params: Any) -> Any:
        """Send a request; return its result."""
        self.send(method, **params)
        return self.read(lambda message: message.get("id") == self._next)["result"]

    def send(self, method: str, **params: Any) -> None:
        """Send a request."""
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self, wanted: Callable[[Any], bool]) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if wanted(message):
                return message
        raise RuntimeError("the program ended")

    def memory_mb(self) -> float:
        """The resident memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.split("\n") if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def end(self) -> None:
        self.process.communicate()


def build_env(folder: str, base_url: str) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "COPILOT_HOME": f"{folder}/state",
        "COPILOT_PROVIDER_BASE_URL": base_url,
        "COPILOT_MODEL": "scripted",
        "TRIMTAB_LOCAL_SERVERS": "off",
    }


def bare_ms(python: Path) -> float:
    """A bare interpreter from spawn to its end, in milliseconds."""
    began = time.perf_counter()
    subprocess.run([python, "-I", "-c", "pass"], check=True)
    return (time.perf_counter() - began) * 1000


def start_ms(trimtab: Path, env: dict[str, str]) -> tuple[float, float]:
    """From spawn to the answers to `initialize` and `session/new`, in milliseconds."""
    began = time.perf_counter()
    client = Client(trimtab, env)
    client.call("initialize", protocolVersion=1)
    initialized = (time.perf_counter() - began) * 1000
    client.call("session/new", cwd=env["HOME"], mcpServers=[])
    opened = (time.perf_counter() - began) * 1000
    client.end()
    return initialized, opened


def sessions_mb(trimtab: Path, env: dict[str, str]) -> float:
    """The memory of one process with many open sessions, in MB."""
    client = Client(trimtab, env)
    client.call("initialize", protocolVersion=1)
    for _ in range(SESSIONS):
        session = client.call("session/new", cwd=env["HOME"], mcpServers=[])["sessionId"]
        client.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hello"}])
    used = client.memory_mb()
    client.end()
    return used


class ClockServer:
    """A model whose tokens are the times at which they were sent."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self.base_url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"POST"):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            for _ in range(TOKENS):
                await asyncio.sleep(0.01)
                self._send(writer, {"delta": {"content": f"{time.monotonic()} "}})
                await writer.drain()
        except ConnectionError:  # the prompt was cancelled
            return
        self._send(writer, {"delta": {}, "finish_reason": "stop"})
        writer.write(b"data: [DONE]\n\n")
        writer.close()

    def _send(self, writer: asyncio.StreamWriter, choice: dict[str, Any]) -> None:
        event = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
        writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()


def token_ms(trimtab: Path, env: dict[str, str]) -> float:
    """The median time from a model's token to its chunk, in milliseconds."""
    client = Client(trimtab, env)
    client.call("initialize", protocolVersion=1)
    session = client.call("session/new", cwd=env["HOME"], mcpServers=[])["sessionId"]
    times: list[float] = []

    def take(message: Any) -> bool:
        update = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            times.append(time.monotonic() - float(update["content"]["text"].split()[-1]))
        return "result" in message

    client.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hello"}])
    client.read(take)
    client.end()
    return statistics.median(times) * 1000


def cancel_ms(trimtab: Path, env: dict[str, str]) -> tuple[float, float]:
    """The longest time to cancel a prompt, and the time from closed input to the end, in ms."""
    client = Client(trimtab, env)
    client.call("initialize", protocolVersion=1)
    session = client.call("session/new", cwd=env["HOME"], mcpServers=[])["sessionId"]
    prompt = [{"type": "text", "text": "hello"}]
    times: list[float] = []
    for _ in range(CANCELS):
        client.send("session/prompt", sessionId=session, prompt=prompt)
        client.read(is_chunk)
        began = time.perf_counter()
        client.notify("session/cancel", sessionId=session)
        client.read(lambda message: "result" in message)
        times.append(time.perf_counter() - began)
    client.send("session/prompt", sessionId=session, prompt=prompt)
    client.read(is_chunk)
    began = time.perf_counter()
    client.end()
    return max(times) * 1000, (time.perf_counter() - began) * 1000


def is_chunk(message: Any) -> bool:
    update = message.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == "agent_message_chunk")


async def measure_editor(trimtab: Path, python: Path, row: Callable[..., None]) -> None:
    """Report the figures. Starts and floors alternate, because the machine may be busy."""
    answers = {"replies": [], "otherwise": {"text": "hello", "repeat": "forever"}}
    clock = ClockServer()
    await clock.start()
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-editor-") as folder:
        async with ModelServer(Script.of(answers), keep=1) as server:
            env = build_env(folder, server.base_url)
            floors, starts = [], []
            for _ in range(ROUNDS):
                floors.append(await asyncio.to_thread(bare_ms, python))
                starts.append(await asyncio.to_thread(start_ms, trimtab, env))
            floor = statistics.median(floors)
            initialized = statistics.median(first for first, _ in starts)
            opened = statistics.median(second for _, second in starts)
            row("spawn to the answer to initialize, ms", initialized, floor, 6 * floor)
            row("spawn to the answer to session/new, ms", opened, floor, 10 * floor)
            used = await asyncio.to_thread(sessions_mb, trimtab, env)
            row(f"{SESSIONS} sessions in one editor process, MB", used, None, 300)
        env = build_env(folder, clock.base_url)
        delay = await asyncio.to_thread(token_ms, trimtab, env)
        row("a model's token to its chunk, ms", delay, None, 5)
        cancelled, ended = await asyncio.to_thread(cancel_ms, trimtab, env)
        row(f"to cancel a prompt in an editor, longest of {CANCELS}, ms", cancelled, None, 200)
        row("from an editor that closes the input to the end, ms", ended, None, 1000)
    await clock.stop()
