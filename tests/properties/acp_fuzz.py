"""Lines that no editor would send: python tests/properties/acp_fuzz.py [COUNT] [SEED].

A crash is a process that ends or an answer that says "Internal error"; a hang is a request for the
list of sessions that is not answered.
"""

import asyncio
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from acpkit import RawClient
from clikit import Cli, serving

EVERY = 250
METHODS = (
    *("initialize", "session/load", "session/resume", "session/list", "session/close"),
    *("session/prompt", "session/set_mode", "session/set_config_option", "session/cancel"),
    *("$/cancel_request", "session/delete", "session/fork", "authenticate", "session/new", ""),
)
KEYS = (
    *("sessionId", "cwd", "mcpServers", "prompt", "modeId", "configId", "value", "type", "text"),
    *("cursor", "requestId", "protocolVersion", "clientCapabilities", "additionalDirectories", "x"),
)


class Lines:
    """Valid messages, changed at random, and bytes that are no messages at all."""

    def __init__(self, seed: int, session: str) -> None:
        self._random = random.Random(seed)
        self._session = session

    def next(self) -> bytes:
        roll = self._random.random()
        if roll < 0.1:
            return self._random.randbytes(self._random.randrange(1, 200)).replace(b"\n", b" ")
        message = {
            "jsonrpc": self._random.choice(["2.0", "2.0", "2.0", "1.0", None]),
            "id": self._random.choice([self._random.randrange(10**9), "x", None, 1.5, [], {}]),
            "method": self._random.choice(METHODS),
            "params": self._params(),
        }
        for key in list(message):
            if self._random.random() < 0.1:
                del message[key]
        if self._random.random() < 0.1:
            message["result"] = self._value(2)
        line = json.dumps(message).encode()
        if roll < 0.3:
            at = self._random.randrange(len(line))
            line = line[:at] + self._random.randbytes(2).replace(b"\n", b" ") + line[at + 2 :]
        return line

    def _params(self) -> Any:
        if self._random.random() < 0.1:
            return self._value(3)
        return {key: self._value(3) for key in self._random.sample(KEYS, self._random.randrange(6))}

    def _value(self, depth: int) -> Any:
        plain = [None, True, 0, -1, 1e300, "", "/", "../..", "\ud800", "plan", "mode", "text"]
        roll = self._random.random()
        if roll < 0.2:
            return self._session
        if depth and roll < 0.35:
            return [self._value(depth - 1) for _ in range(self._random.randrange(4))]
        if depth and roll < 0.5:
            return {self._random.choice(KEYS): self._value(depth - 1) for _ in range(3)}
        return self._random.choice(plain)


async def fuzz(count: int, seed: int) -> list[str]:
    """Send lines; return the answers that show a bug. Raises if the process ends or hangs."""
    cli = Cli(Path(tempfile.mkdtemp(prefix="trimtab-acp-fuzz-")))
    script = {"replies": [], "otherwise": {"text": "ok", "repeat": "forever"}}
    async with serving(script) as server:
        client = await RawClient.start(cli.use(server))
        lines = Lines(seed, await client.open(cli))
        for number in range(count):
            await client.send(lines.next())
            if number % EVERY == EVERY - 1:
                await client.call("session/list", f"alive {number}")
        await client.call("session/list", "last")
        bugs = [
            str(message["error"])
            for message in client.heard
            if "Internal error" in str(message.get("error"))
        ]
        if (code := await client.end()) != 0:
            bugs.append(f"exit code {code}")
    return bugs


def main() -> int:
    count, seed = (int(word) for word in (sys.argv[1:] + ["5000", "1"][len(sys.argv) - 1 :]))
    bugs = asyncio.run(fuzz(count, seed))
    for bug in sorted(set(bugs))[:10]:
        print(bug)
    print(f"{count:,} lines, {len(bugs)} crashes, 0 hangs")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
