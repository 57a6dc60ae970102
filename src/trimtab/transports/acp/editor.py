"""The editor's own files and terminals, as the session's workspace uses them."""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.workspace import Command
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.protocol import AcpError, ClientLeft
from trimtab.transports.acp.schema import FileSystem

PATIENCE = 10.0
"""Seconds that the editor has to read or write a file, or to answer about a terminal."""
OUTPUT_LIMIT = 8 * 1024 * 1024
"""Bytes of a command's output that the editor keeps."""


class Buffers:
    """The editor's files below `roots`, with what the person has not saved yet.

    Other files, such as those of the session, are none of the editor's business.
    """

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        support: FileSystem,
        roots: Sequence[str],
    ) -> None:
        self._connection = connection
        self._session_id = session_id
        self._support = support
        self._roots = [(os.path.realpath(root), root) for root in roots]
        self.warn: Callable[[str], None] = lambda _: None

    async def read(self, path: str) -> str | None:
        """Return the text of a file; None if the editor cannot open it."""
        known = self._find_name(path)
        if known is None or not self._support.read_text_file:
            return None
        params = {"sessionId": self._session_id, "path": known}
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await self._connection.ask("fs/read_text_file", params)
        except TimeoutError:
            self.warn(
                f"The editor did not answer for {known}, so the file on disk is used; check the "
                "editor."
            )
            return None
        except (AcpError, ClientLeft):
            return None  # not a file of the editor: the disk decides
        content = reply.get("content") if isinstance(reply, dict) else None
        return content if isinstance(content, str) else None

    async def write(self, path: str, text: str) -> bool:
        known = self._find_name(path)
        if known is None or not self._support.write_text_file:
            return False
        params = {"sessionId": self._session_id, "path": known, "content": text}
        await request(self._connection, "fs/write_text_file", params)
        return True

    def _find_name(self, path: str) -> str | None:
        """Return a path as the editor knows it, whose folder may be a symlink."""
        for real, root in self._roots:
            if path.startswith(real.rstrip("/") + "/"):
                return root.rstrip("/") + path[len(real.rstrip("/")) :]
        return None


class Terminals:
    """The editor's terminals. `on_created` is told the call and the terminal of each command."""

    def __init__(
        self, connection: Connection, session_id: str, on_created: Callable[[str, str], None]
    ) -> None:
        self._connection = connection
        self._session_id = session_id
        self._on_created = on_created
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, command: Command, cwd: str, env: Mapping[str, str]) -> str:
        params: JsonObject = {
            "sessionId": self._session_id,
            "command": "bash",
            "args": ["-c", command.text],
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "cwd": cwd,
            "outputByteLimit": OUTPUT_LIMIT,
        }
        reply = await request(self._connection, "terminal/create", params)
        terminal_id = reply.get("terminalId") if isinstance(reply, dict) else None
        if not isinstance(terminal_id, str):
            raise OSError(errno.EPROTO, "its answer names no terminal")
        self._on_created(command.call_id, terminal_id)
        return terminal_id

    async def read(self, terminal_id: str) -> str:
        reply = await request(self._connection, "terminal/output", self._name(terminal_id))
        output = reply.get("output") if isinstance(reply, dict) else None
        return output if isinstance(output, str) else ""

    async def wait(self, terminal_id: str) -> int:
        reply = await request(
            self._connection, "terminal/wait_for_exit", self._name(terminal_id), seconds=None
        )
        code = reply.get("exitCode") if isinstance(reply, dict) else None
        return code if isinstance(code, int) else 128 + 9  # it was ended by a signal

    def discard(self, terminal_id: str) -> None:
        task = asyncio.get_running_loop().create_task(self._release(terminal_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _release(self, terminal_id: str) -> None:
        """Give a terminal back, which kills its command."""
        try:
            await request(self._connection, "terminal/release", self._name(terminal_id))
        except OSError:
            return  # the editor has forgotten it already

    def _name(self, terminal_id: str) -> JsonObject:
        return {"sessionId": self._session_id, "terminalId": terminal_id}


async def request(
    connection: Connection, method: str, params: JsonObject, *, seconds: float | None = PATIENCE
) -> Any:
    """Ask the editor; its refusal is an `OSError`, like that of an operating system."""
    try:
        async with asyncio.timeout(seconds):
            return await connection.ask(method, params)
    except TimeoutError:
        raise OSError(errno.ETIMEDOUT, "the editor did not answer") from None
    except AcpError as error:
        raise OSError(errno.EIO, f"the editor refused: {error.message}") from None
    except ClientLeft:
        raise OSError(errno.EPIPE, "the editor has gone") from None
