"""A server that is a program of ours: messages are lines of its input and output."""

import os
from collections.abc import Callable

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Launch, ServerAccess, ServerProgram
from trimtab.mcp.messages import LARGEST, Lines, ServerProblem, decode, encode
from trimtab.mcp.transport import Deliver

LAST_WORDS = 600
"""Characters of its standard error that are told when it fails."""


class StdioChannel:
    """Starts the program. Lines it writes that are no JSON are dropped."""

    def __init__(self, server: McpServer, reach: ServerAccess) -> None:
        self._server = server
        self._reach = reach
        self._program: ServerProgram | None = None
        self._lines = Lines()
        self._deliver: Deliver = lambda _: None
        self._lost: Callable[[str], None] = lambda _: None
        self._over = ""

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver, self._lost = deliver, lost
        server, reach = self._server, self._reach
        launch = Launch(
            argv=(server.command, *server.args),
            cwd=os.path.join(reach.cwd, server.cwd) if server.cwd else reach.cwd,
            env={**reach.env, **server.env},
            on_output=self._take,
            on_end=self._ended,
        )
        try:
            self._program = reach.start(launch)
        except OSError as error:
            reason = error.strerror or error
            raise ServerProblem(f"{server.command} could not be started: {reason}") from None
        except ValueError as error:
            raise ServerProblem(f"its command cannot be started ({error}); correct it") from None

    async def send(self, message: JsonObject) -> bool:
        if self._over or self._program is None:
            raise ServerProblem(self._over or "it was not started", gone=True)
        self._program.write(encode(message) + b"\n")
        if self._program.unsent > 2 * LARGEST:
            self._end("it reads nothing of what it is sent")
            raise ServerProblem(self._over, gone=True)
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        self._over = self._over or "it was stopped"
        if self._program is not None:
            await self._program.stop()

    def _take(self, chunk: bytes) -> None:
        if self._over:
            return
        try:
            for line in self._lines.feed(chunk):
                for message in decode(line):
                    self._deliver(message)
        except ServerProblem as problem:
            self._end(str(problem))

    def _ended(self) -> None:
        self._end("its program ended")

    def _end(self, reason: str) -> None:
        if self._over:
            return
        said = self._program.errors.decode(errors="replace").strip() if self._program else ""
        self._over = f"{reason}, saying: {said[-LAST_WORDS:]}" if said else reason
        self._lost(self._over)
