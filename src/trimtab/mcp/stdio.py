"""The stdio transport of MCP: starts a server's program and exchanges lines with it."""

import os
from collections.abc import Callable, Mapping

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Launch, ServerAccess, ServerProgram
from trimtab.mcp.codec import Lines, decode, encode
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, ServerProblem
from trimtab.mcp.transport import NO_HEADERS, Deliver

ERROR_TAIL = 600
"""The number of trailing characters of standard error that a failure reports."""


NOISE_LENGTH = 60
"""The number of characters of a line without a message that a failure reports."""


class StdioChannel:
    """Runs a server's program. Output lines that are not JSON are ignored."""

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self._server = server
        self._access = access
        self._program: ServerProgram | None = None
        self._lines = Lines()
        self._deliver: Deliver = lambda _: None
        self._lost: Callable[[str], None] = lambda _: None
        self._end_reason = ""
        self.noise = ""

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver, self._lost = deliver, lost
        server, access = self._server, self._access
        launch = Launch(
            argv=(server.command, *server.args),
            cwd=os.path.join(access.cwd, server.cwd) if server.cwd else access.cwd,
            env={**access.env, **server.env},
            on_output=self._receive,
            on_end=self._on_exit,
        )
        try:
            self._program = access.start(launch)
        except OSError as error:
            reason = error.strerror or error
            raise ServerProblem(f"{server.command} could not be started: {reason}") from None
        except ValueError as error:
            raise ServerProblem(f"its command cannot be started ({error}); correct it") from None

    cancels_by_closing = False

    async def send(self, message: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        if self._end_reason or self._program is None:
            raise ServerProblem(self._end_reason or "it was not started", gone=True)
        self._program.write(encode(message) + b"\n")
        if self._program.unsent > 2 * MAX_MESSAGE_BYTES:
            self._end("it does not read its input")
            raise ServerProblem(self._end_reason, gone=True)
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        self._end_reason = self._end_reason or "it was stopped"
        if self._program is not None:
            await self._program.stop()

    def _receive(self, chunk: bytes) -> None:
        if self._end_reason:
            return
        try:
            for line in self._lines.feed(chunk):
                messages = list(decode(line))
                for message in messages:
                    self._deliver(message)
                if not messages and not self.noise:
                    self.noise = line[:NOISE_LENGTH].decode(errors="replace").strip()
        except ServerProblem as problem:
            self._end(str(problem))

    def _on_exit(self) -> None:
        self._end("its program exited")

    def _end(self, reason: str) -> None:
        if self._end_reason:
            return
        errors = self._program.errors.decode(errors="replace").strip() if self._program else ""
        self._end_reason = f"{reason}: {errors[-ERROR_TAIL:]}" if errors else reason
        self._lost(self._end_reason)
