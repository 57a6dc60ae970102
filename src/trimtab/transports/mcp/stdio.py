"""Serves MCP on standard input and output, a line for each message."""

import asyncio
import sys

from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.standard_input import read_stdin
from trimtab.mcp.codec import decode, encode
from trimtab.mcp.messages import MAX_MESSAGE_BYTES
from trimtab.transports.mcp.conversation import Conversation
from trimtab.transports.mcp.service import NewService

PARSE_ERROR = {"code": -32700, "message": "A line is not a JSON message."}


async def serve_stdio(new_service: NewService) -> int:
    """Serve one client until its input ends; return the exit code."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
    await read_stdin(asyncio.StreamReaderProtocol(reader))
    out = sys.stdout.buffer

    def send(message: JsonObject) -> None:
        out.write(encode(message) + b"\n")
        out.flush()

    conversation = Conversation(new_service, send)
    tasks: set[asyncio.Task[None]] = set()

    async def handle(message: JsonObject) -> None:
        answer = await conversation.receive(message)
        if answer is not None:
            send(answer)

    try:
        while line := await reader.readline():
            messages = list(decode(line))
            if not messages and line.strip():
                send({"id": None, "error": PARSE_ERROR})
            for message in messages:
                task = loop.create_task(handle(message))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                if message.get("method") == "initialize":
                    await asyncio.wait((task,))
    except (BrokenPipeError, ValueError):
        return 1
    finally:
        await conversation.aclose()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
    return 0
