"""The official ACP client against the installed program, with every message checked."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import acp
import jsonschema_rs
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateElicitationResponse,
    CreateTerminalResponse,
    DeniedOutcome,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from pydantic import TypeAdapter

from clikit import Cli

LIMIT = 60.0
SOON = 30.0
"""Seconds, at most, for what must not wait for a command of 60 s; `make bench` has the figures."""
FIXTURE = Path(__file__).parent / "fixtures" / "acp" / "schema.json"
REQUESTS = {
    "session/request_permission": "RequestPermissionRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "elicitation/create": "CreateElicitationRequest",
}
"""The types of requests that an agent may send."""
RESPONSES = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}


@cache
def validator(name: str) -> Any:
    """The checker of one type of the protocol."""
    definitions = json.loads(FIXTURE.read_text())["$defs"]
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": definitions})


def check_message(message: dict[str, Any], methods: dict[Any, str]) -> None:
    """Check a message of the agent; `methods` are the client's requests by id."""
    assert message["jsonrpc"] == "2.0"
    if "method" not in message:
        assert ("result" in message) != ("error" in message), message
        if "error" in message:
            validator("Error").validate(message["error"])
        else:
            validator(RESPONSES[methods[message["id"]]]).validate(message["result"])
    elif "id" in message:
        validator(REQUESTS[message["method"]]).validate(message["params"])
    elif message["method"] == "session/update":
        validator("SessionNotification").validate(message["params"])
    else:
        assert message["method"] == "$/cancel_request", message
        validator("CancelRequestNotification").validate(message["params"])


class Editor:
    """A client that answers as told and remembers what it was sent.

    `permission` is the id of the option to choose, a list of such ids, a function of the request,
    or `cancelled`, `error` or `hang`. `files` are the contents of unsaved buffers.
    """

    def __init__(self) -> None:
        self.permission: Any = "allow_once"
        self.form: Any = {"action": "decline"}
        self.files: dict[str, str] = {}
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.withdrawn: list[Any] = []
        """The ids of the questions that the agent no longer wants answered."""
        self.problems: list[str] = []
        self.terminals: dict[str, asyncio.subprocess.Process] = {}
        self.outputs: dict[str, bytearray] = {}
        self.readers: dict[str, asyncio.Task[None]] = {}
        self.released: list[str] = []
        self._methods: dict[Any, str] = {}
        self._changed = asyncio.Event()

    def on_connect(self, connection: Any) -> None:
        pass

    def observe(self, event: Any) -> None:
        """Check and record every message."""
        message = event.message
        if event.direction == "outgoing":
            if "method" in message and "id" in message:
                self._methods[message["id"]] = message["method"]
            return
        try:
            check_message(message, self._methods)
        except Exception as error:
            self.problems.append(f"{message}: {error}")
        if message.get("method") == "session/update":
            self.updates.append(message["params"])
        elif message.get("method") == "$/cancel_request":
            self.withdrawn.append(message["params"]["requestId"])
        elif "method" in message and "id" in message:
            self.asked.append({"method": message["method"], **message["params"]})
        self._changed.set()

    async def until(self, reached: Callable[[], Any]) -> None:
        """Wait until a condition on what was recorded holds."""
        async with asyncio.timeout(LIMIT):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind, in order."""
        return [
            entry["update"] for entry in self.updates if entry["update"]["sessionUpdate"] == kind
        ]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"].get("text", "") for update in self.of(kind))

    def calls(self) -> dict[str, dict[str, Any]]:
        """Each tool call in its last state, with the list of its statuses."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.updates:
            update = entry["update"]
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                call = found.setdefault(update["toolCallId"], {"statuses": []})
                call.update(update)
                if "status" in update:
                    call["statuses"].append(update["status"])
        return found

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        pass

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        answer = self.permission
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(tool_call, options)
        if answer == "error":
            raise acp.RequestError.internal_error()
        if answer == "hang":
            await asyncio.Event().wait()
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=answer)
        return RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        if self.form == "error":
            raise acp.RequestError.internal_error()
        if self.form == "hang":
            await asyncio.Event().wait()
        return TypeAdapter(CreateElicitationResponse).validate_python(self.form)

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        if path in self.files:
            return ReadTextFileResponse(content=self.files[path])
        try:
            return ReadTextFileResponse(content=Path(path).read_text())
        except OSError as error:
            raise acp.RequestError.resource_not_found(path) from error

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.files.pop(path, None)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)
        return WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        variables = {variable.name: variable.value for variable in env or ()}
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or ()),
            cwd=cwd,
            env={**os.environ, **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        name = f"terminal-{len(self.terminals) + 1}"
        output = self.outputs[name] = bytearray()
        self.terminals[name] = process

        async def read() -> None:
            assert process.stdout is not None
            while data := await process.stdout.read(4096):
                output.extend(data)

        self.readers[name] = asyncio.create_task(read())
        return CreateTerminalResponse(terminal_id=name)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> TerminalOutputResponse:
        code = self.terminals[terminal_id].returncode
        status = None if code is None else TerminalExitStatus(exit_code=max(code, 0))
        text = self.outputs[terminal_id].decode()
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        code = await self.terminals[terminal_id].wait()
        await self.readers[terminal_id]
        if code < 0:
            return WaitForTerminalExitResponse(signal=str(-code))
        return WaitForTerminalExitResponse(exit_code=code)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        process = self.terminals[terminal_id]
        if process.returncode is None:
            os.killpg(process.pid, 9)

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.released.append(terminal_id)
        await self.kill_terminal(session_id, terminal_id)


class Link:
    """An editor connected to the program."""

    def __init__(self, editor: Editor, connection: Any, process: Any, cli: Cli) -> None:
        self.editor = editor
        self.agent = connection
        self.process = process
        self.cli = cli
        self.session = ""

    async def open(self, **options: Any) -> Any:
        """Open a session in the project folder and talk in it from now on."""
        options.setdefault("cwd", str(self.cli.cwd))
        options.setdefault("mcp_servers", [])
        async with asyncio.timeout(LIMIT):
            opened = await self.agent.new_session(**options)
        self.session = opened.session_id
        return opened

    async def say(self, text: str = "go", *blocks: Any) -> str:
        """Send a prompt; return its stop reason."""
        prompt = [acp.text_block(text), *blocks] if text else list(blocks)
        async with asyncio.timeout(LIMIT):
            answer = await self.agent.prompt(session_id=self.session, prompt=prompt)
        return str(answer.stop_reason)

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request the library has no method for, or one with invalid parameters."""
        async with asyncio.timeout(LIMIT):
            return await self.agent._conn.send_request(method, params)

    async def end(self) -> int:
        """Close the program's input; it must end by itself."""
        self.process.stdin.close()
        async with asyncio.timeout(LIMIT):
            return int(await self.process.wait())


@asynccontextmanager
async def connected(
    cli: Cli, *flags: str, capabilities: dict[str, Any] | None = None, start: bool = True
) -> AsyncIterator[Link]:
    """An editor connected to `trimtab --acp`; fails if any message did not fit the schema."""
    process = await cli.start("--acp", *flags, stdin_fd=asyncio.subprocess.PIPE)
    editor = Editor()
    connection = acp.connect_to_agent(
        editor,  # type: ignore[arg-type]
        process.stdin,
        process.stdout,
        use_unstable_protocol=True,
        observers=[editor.observe],
    )
    link = Link(editor, connection, process, cli)
    try:
        if start:
            async with asyncio.timeout(LIMIT):
                await connection.initialize(
                    protocol_version=1,
                    client_capabilities=ClientCapabilities.model_validate(capabilities or {}),
                )
        yield link
    finally:
        if process.returncode is None:
            await link.end()
        with suppress(ConnectionError):  # an answer of the editor may still be under way
            await connection.close()
        for task in editor.readers.values():
            task.cancel()
        assert process.stderr is not None
        notes = (await process.stderr.read()).decode()
    assert editor.problems == []
    assert "Traceback" not in notes, notes
    assert "Internal error" not in notes, notes


class RawClient:
    """The program, spoken to in lines: for input that no well-behaved client would send."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._in, self._out = process.stdin, process.stdout
        self.heard: list[dict[str, Any]] = []

    @classmethod
    async def start(cls, cli: Cli, *flags: str, **capabilities: Any) -> "RawClient":
        """Start the program and initialize it."""
        process = await cli.start("--acp", *flags, stdin_fd=asyncio.subprocess.PIPE)
        client = cls(process)
        await client.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
        return client

    async def send(self, line: Any) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self._in.write(data + b"\n")
        await self._in.drain()

    async def read(self) -> dict[str, Any]:
        async with asyncio.timeout(LIMIT):
            line = await self._out.readline()
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.heard.append(message)
        return message

    async def call(self, method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
        """Send a request and read until its answer comes."""
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return await self.read_answer(number)

    async def read_answer(self, number: Any) -> dict[str, Any]:
        while True:
            message = await self.read()
            if "method" not in message and message.get("id") == number:
                return message

    async def open(self, cli: Cli) -> str:
        answer = await self.call("session/new", "new", cwd=str(cli.cwd), mcpServers=[])
        return str(answer["result"]["sessionId"])

    def stop_reading(self) -> None:
        """Close the program's output and leave its input open, as a dying client may."""
        self.process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]

    def updates(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind, each checked against the schema."""
        found = []
        for message in self.heard:
            if message.get("method") == "session/update":
                validator("SessionNotification").validate(message["params"])
                if message["params"]["update"]["sessionUpdate"] == kind:
                    found.append(message["params"]["update"])
        return found

    async def end(self) -> int:
        """Close the program's input; it must end by itself."""
        self._in.close()
        async with asyncio.timeout(LIMIT):
            while await self._out.readline():
                pass
            return await self.process.wait()
