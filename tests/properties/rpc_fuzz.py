"""Frames no client would send: python tests/properties/rpc_fuzz.py [COUNT] [SEED].

A crash is an answer that says "Internal error" or an exception that left its task; a hang is a
`ping` that is not answered.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
from importlib import import_module
from typing import Any

import msgspec

from trimtab.contracts.options import SessionOptions
from trimtab.transports.rpc.dispatch import NAMESPACES
from trimtab.transports.rpc.framing import FrameParser, frame
from trimtab.transports.rpc.server import Server

EVERY = 250
KEYS = (
    *("sessionId", "requestId", "result", "kind", "name", "path", "content", "prompt", "mode"),
    *("modelId", "tools", "message", "cursor", "eventId", "filter", "", "params"),
)
PATIENCE = 60.0


class Sink(asyncio.WriteTransport):
    """Takes what a peer writes and reads the frames again."""

    def __init__(self) -> None:
        super().__init__()
        self._parser = FrameParser(strict=True)
        self.bugs: list[str] = []
        self.replies: dict[Any, Any] = {}
        self.came = asyncio.Event()
        self.events = 0
        self.count = 0
        self.results = 0

    def write(self, data: Any) -> None:
        for body in self._parser.feed(bytes(data)):
            assert isinstance(body, bytes)
            self._take(json.loads(body))

    def _take(self, message: Any) -> None:
        if "method" in message:
            self.events += 1
            return
        self.count += 1
        self.results += "result" in message
        if isinstance(message.get("id"), str):
            self.replies[message["id"]] = message
            self.came.set()
        error = message.get("error") or {}
        if "Internal error" in error.get("message", ""):
            self.bugs.append(error["message"])

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass


def all_methods() -> dict[str, type[Any]]:
    """Every method there is and the type of its parameters."""
    found: dict[str, type[Any]] = {}
    for module in sorted(set(NAMESPACES.values())):
        table = import_module(f"trimtab.transports.rpc.methods.{module}").methods.table
        found |= {name: decoder.type for name, (_, decoder) in table.items()}
    return found


class Fuzz:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.methods = all_methods()
        self.names = sorted(self.methods.keys() - {"runtime.shutdown"})  # it ends the server
        self.session = ""

    def value(self, depth: int = 0) -> Any:
        pick = self.random.randrange(12 if depth < 3 else 9)
        if pick < 9:
            return self.random.choice(
                (None, True, 0, -1, 2**70, 1.5, "", "x" * 50, "\ud800", "../../etc", self.session)
            )
        if pick == 9:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.key(): self.value(depth + 1) for _ in range(self.random.randrange(5))}

    def key(self) -> str:
        return self.random.choice(KEYS)

    def params(self, method: str) -> Any:
        """Often of the right names and types, so that methods are reached and not only refused."""
        if self.random.random() < 0.1:
            return self.value()
        kind = self.methods.get(method)
        given: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind) if kind else ():
            if field.required or self.random.random() < 0.3:
                given[field.encode_name] = self.fitting(field.type)
        if self.random.random() < 0.3:
            given[self.key()] = self.value()
        if self.random.random() < 0.8:
            given["sessionId"] = self.session
        return given

    def fitting(self, kind: Any) -> Any:
        plain = {
            str: self.random.choice(
                ("", "a", "../b", self.session, "interactive", "reject", "x.y")
            ),
            int: self.random.choice((0, 1, -1, 3, 10**6)),
            bool: self.random.random() < 0.5,
        }
        if kind in plain and self.random.random() < 0.9:
            return plain[kind]
        return self.value()

    def data(self, number: int) -> bytes:
        """One frame: well-formed with odd contents, or broken."""
        method = self.random.choice(self.names)
        if self.random.random() < 0.1:
            method = self.random.choice(("", "x", "session", "session.", "a.b.c", "\0"))
        message: Any = {"jsonrpc": "2.0", "method": method, "params": self.params(method)}
        if self.random.random() < 0.9:
            message["id"] = number + 0.5
        body = json.dumps(message).encode()
        pick = self.random.random()
        if pick < 0.7:
            return frame(body)
        if pick < 0.85:
            spoilt = bytearray(body)
            for _ in range(self.random.randrange(1, 6)):
                spoilt[self.random.randrange(len(spoilt))] = self.random.randrange(256)
            return frame(bytes(spoilt))
        if pick < 0.95:
            return self.random.choice(
                (
                    b"junk\r\n\r\n",
                    b"Content-Length: x\r\n\r\n",
                    b"\r\n\r\n",
                    b"Content-Length: \n\n",
                )
            )
        return frame(body[: self.random.randrange(len(body))])


async def fuzz(count: int, seed: int) -> dict[str, Any]:
    """Feed the frames; what went wrong, and how many replies there were."""
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(str(context)))
    with tempfile.TemporaryDirectory() as home:
        env = {
            "COPILOT_HOME": home,
            "HOME": home,
            "PATH": "/usr/bin:/bin",
            "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/v1",
            "COPILOT_MODEL": "none",
            "TRIMTAB_RETRY_DELAY_SECONDS": "0",
        }
        server = Server(env, defaults=SessionOptions(cwd=home))
        sink, work = Sink(), Fuzz(seed)
        peer = server.new_peer()
        peer.use(sink, strict=False)
        hangs = 0
        for number in range(count):
            if not work.session or work.session not in server.sessions:
                work.session = await open_session(peer, sink, number)
            peer.data_received(work.data(number))
            if number % EVERY == 0:
                hangs += not await answers(peer, sink, f"ping-{number}")
        for session_id in tuple(server.sessions):
            await server.close_session(session_id)
        await server.close()
        loop.set_exception_handler(None)
    return {
        "bugs": sink.bugs,
        "failures": failures,
        "hangs": hangs,
        "replies": sink.count,
        "results": sink.results,
    }


async def open_session(peer: Any, sink: Sink, number: int) -> str:
    request_id = f"create-{number}"
    await ask(peer, sink, request_id, "session.create", {})
    return str(sink.replies[request_id]["result"]["sessionId"])


async def answers(peer: Any, sink: Sink, request_id: str) -> bool:
    try:
        await ask(peer, sink, request_id, "ping", {})
    except TimeoutError:
        return False
    return True


async def ask(peer: Any, sink: Sink, request_id: str, method: str, params: Any) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    # A frame that was cut short swallows what follows: end it first, then ask.
    peer.data_received(b"\r\n\r\n" + frame(json.dumps(message).encode()))
    async with asyncio.timeout(PATIENCE):
        while request_id not in sink.replies:
            sink.came.clear()
            await sink.came.wait()


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.environ["COPILOT_OFFLINE"] = "true"  # what is asked for at random is asked for in vain
    outcome = asyncio.run(fuzz(count, seed))
    print(
        f"{count:,} frames, {outcome['replies']:,} replies, {outcome['results']:,} of them "
        f"results, {outcome['hangs']} hangs"
    )
    for line in [*outcome["bugs"], *outcome["failures"]][:20]:
        print(line)
    return bool(outcome["bugs"] or outcome["failures"] or outcome["hangs"])


if __name__ == "__main__":
    sys.exit(main())
