"""The server process at the level of frames: for tests no well-behaved client would make."""

import asyncio
import json
from typing import Any

from clikit import Cli


def framed(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def request(method: str, number: Any = 1, **params: Any) -> bytes:
    return framed({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next frame; fails if there is more than one header line."""
    async with asyncio.timeout(60):
        header = await reader.readline()
        assert header.startswith(b"Content-Length: "), header
        assert await reader.readline() == b"\r\n"
        return json.loads(await reader.readexactly(int(header.split(b":")[1])))


class Raw:
    """A server on pipes, spoken to in bytes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    @classmethod
    async def start(cls, cli: Cli, *args: str, **options: Any) -> "Raw":
        options.setdefault("stdin_fd", asyncio.subprocess.PIPE)
        return cls(await cli.start("--headless", "--stdio", *args, **options))

    async def send(self, data: bytes) -> None:
        self._in.write(data)
        await self._in.drain()

    async def read(self) -> Any:
        return await read_frame(self._out)

    async def call(self, method: str, number: Any = 1, **params: Any) -> Any:
        """Send a request and read until its reply comes."""
        await self.send(request(method, number, **params))
        while True:
            message = await self.read()
            if message.get("id") == number and "method" not in message:
                return message

    async def end(self) -> int:
        """Close its input; it must end by itself."""
        self._in.close()
        async with asyncio.timeout(60):
            return await self.process.wait()


async def start_port(cli: Cli, *args: str, **options: Any) -> tuple[Any, int]:
    """A server on a port, and the port."""
    process = await cli.start("--headless", *args, **options)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        line = (await process.stdout.readline()).decode()
    assert "listening on port " in line
    return process, int(line.rsplit(" ", 1)[1])
