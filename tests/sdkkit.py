"""The official Copilot SDK for Python against the installed program.

The models are those of a strict stand-in for GitHub's service (`githubkit`), whose answers are
scripted, unless a test brings a model service of its own. Half of the tests, by their names, reach
the program through pipes, the others through a port.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from copilot import CopilotClient, define_tool
from copilot.client import RuntimeConnection
from copilot.session import PermissionHandler
from pydantic import BaseModel

from clikit import TRIMTAB
from githubkit import TOKEN, GitHub, model
from trimtab.contracts.options import (
    CustomizationOptions,
    GitHubServerOptions,
    SessionOptions,
)
from trimtab.testing import ModelServer, Script
from trimtab.transports.rpc.listen import new_peer
from trimtab.transports.rpc.server import Server

LIMIT = 60.0
ARGUMENTS = ("--disable-builtin-mcps",)
"""GitHub's MCP server is not on this machine."""


class Heard:
    """The events a client was given, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._came = asyncio.Event()

    def __call__(self, event: Any) -> None:
        self.events.append(event)
        self._came.set()

    @property
    def types(self) -> list[str]:
        """In order; our own additions left out."""
        return [event.type.value for event in self.events if event.type.value != "unknown"]

    def of(self, wire_name: str) -> list[Any]:
        return [event.data for event in self.events if event.type.value == wire_name]

    async def until(self, wanted: str | Callable[[], Any], count: int = 1) -> None:
        """Wait until an event of a type has come so often, or a condition holds."""

        def reached() -> bool:
            return bool(wanted()) if callable(wanted) else self.types.count(wanted) >= count

        async with asyncio.timeout(LIMIT):
            while not reached():
                self._came.clear()
                await self._came.wait()


class Sdk:
    """Clients that share a home; everything the SDK could not parse fails the test."""

    def __init__(self, folder: Path, transport: str = "stdio") -> None:
        self.transport = transport
        self.home = folder / "home"
        self.cwd = folder / "project"
        self.home.mkdir()
        self.cwd.mkdir()
        self.failures: list[str] = []
        self.env: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TRIMTAB_RETRY_DELAY_SECONDS": "0.01",
            "TRIMTAB_LOCAL_SERVERS": "off",
            "TRIMTAB_DEBUG": "1",
        }

    def use(self, server: ModelServer) -> None:
        """Let clients reach a stand-in for GitHub's service, or another model service."""
        if isinstance(server, GitHub):
            self.env |= {"COPILOT_DEBUG_GITHUB_API_URL": server.url, "GH_TOKEN": TOKEN}
            return
        self.env |= {
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_PROVIDER_API_KEY": "test-key-0123456789",
            "COPILOT_MODEL": "scripted",
        }

    def watch(self) -> None:
        """Have the SDK's silent failures noticed."""

        def on_failure(_: Any, context: dict[str, Any]) -> None:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

        asyncio.get_running_loop().set_exception_handler(on_failure)

    @asynccontextmanager
    async def client(self, connection: Any = None, **options: Any) -> AsyncIterator[Any]:
        self.watch()
        options.setdefault("env", self.env)
        if connection is not None and not hasattr(connection, "path"):  # a server that runs
            options.pop("env")
            client = CopilotClient(connection=connection, **options)
        else:
            client = CopilotClient(
                connection=connection or self.connect(),
                working_directory=str(self.cwd),
                base_directory=str(self.home),
                **options,
            )
        await client.start()
        process = client._cli_process
        try:
            yield client
        finally:
            await client.stop()
            for pipe in (process.stdin, process.stdout, process.stderr) if process else ():
                if pipe is not None:  # the SDK leaves them to the garbage collector
                    pipe.close()

    def connect(self) -> Any:
        """Return how clients that name no connection start the program."""
        if self.transport == "tcp":
            return RuntimeConnection.for_tcp(path=TRIMTAB, args=ARGUMENTS)
        return RuntimeConnection.for_stdio(path=TRIMTAB, args=ARGUMENTS)

    def logs(self) -> list[Path]:
        return sorted(self.home.glob("session-state/*/events.jsonl"))


@asynccontextmanager
async def talking(sdk: Sdk, replies: Any, **config: Any) -> AsyncIterator["Talk"]:
    """One client, one session, one scripted model.

    `service` is "own" for a model service that is not GitHub's; `listed` are models that GitHub's
    lists in addition.
    """
    client_options = config.pop("client", {})
    connection = config.pop("connection", None)
    async with serving(
        replies, config.pop("service", "github"), config.pop("listed", ())
    ) as server:
        sdk.use(server)
        async with sdk.client(connection, **client_options) as client:
            heard = Heard()
            config.setdefault("on_permission_request", PermissionHandler.approve_all)
            config.setdefault("on_event", heard)
            session = await client.create_session(**config)
            yield Talk(client, session, heard, server)


@asynccontextmanager
async def listening(sdk: Sdk) -> AsyncIterator[Any]:
    """Serve the home of these clients in this process; yield how clients connect to it.

    No program is started, so that a test costs little. Messages must be small: client and server
    share a thread.
    """
    no_servers = CustomizationOptions(github=GitHubServerOptions(enabled=False))
    defaults = SessionOptions(cwd=str(sdk.cwd), customize=no_servers)
    server = Server({**sdk.env, "COPILOT_HOME": str(sdk.home)}, defaults=defaults)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: new_peer(server), "127.0.0.1", 0)
    try:
        yield RuntimeConnection.for_uri(f"localhost:{listener.sockets[0].getsockname()[1]}")
    finally:
        listener.close()
        await server.close()


@asynccontextmanager
async def talking_here(sdk: Sdk, replies: Any, **config: Any) -> AsyncIterator["Talk"]:
    """Like `talking`, with a server in this process."""
    service, listed = config.pop("service", "github"), config.pop("listed", ())
    async with serving(replies, service, listed) as model_server:
        sdk.use(model_server)
        async with listening(sdk) as connection, sdk.client(connection) as client:
            heard = Heard()
            config.setdefault("on_permission_request", PermissionHandler.approve_all)
            config.setdefault("on_event", heard)
            config.setdefault("working_directory", str(sdk.cwd))
            session = await client.create_session(**config)
            yield Talk(client, session, heard, model_server)


@asynccontextmanager
async def serving(
    replies: Any, service: str = "github", listed: Iterable[str] = ()
) -> AsyncIterator[ModelServer]:
    """Serve scripted replies; GitHub's stand-in must not have refused any request."""
    script = Script.of(replies)
    async with ModelServer(script) if service == "own" else GitHub(script) as server:
        if isinstance(server, GitHub):
            server.models += map(model, listed)
        yield server
        assert not isinstance(server, GitHub) or server.refused == []


class Talk:
    """What a scenario works with."""

    def __init__(self, client: Any, session: Any, heard: Heard, server: ModelServer) -> None:
        self.client = client
        self.session = session
        self.heard = heard
        self.server = server

    async def say(self, prompt: str, **options: Any) -> str:
        """Send and wait; the text of the answer."""
        event = await self.session.send_and_wait(prompt, timeout=LIMIT, **options)
        return "" if event is None else str(event.data.content)

    def shown(self, number: int = -1) -> list[Any]:
        """The messages of a request to the model, in the wire's form."""
        messages: list[Any] = self.server.requests[number].json["messages"]
        return messages

    def tool_results(self, number: int = -1) -> list[str]:
        return [one["content"] for one in self.shown(number) if one["role"] == "tool"]

    def tool_names(self, number: int = -1) -> list[str]:
        tools = self.server.requests[number].json.get("tools") or []
        return [tool["function"]["name"] for tool in tools]

    def system(self, number: int = -1) -> str:
        return str(self.shown(number)[0]["content"])

    def prompt(self, number: int = -1) -> str:
        """The last user message as text."""
        content = [one["content"] for one in self.shown(number) if one["role"] == "user"][-1]
        return content if isinstance(content, str) else " ".join(map(str, content))


class Key(BaseModel):
    key: str


def make_tool(name: str, give: Any, **options: Any) -> Any:
    """A tool of the client; `give` is what it returns, or raises."""

    async def handler(params: Key) -> Any:
        if isinstance(give, Exception):
            raise give
        return give(params.key) if callable(give) else give

    handler.__name__ = name
    return define_tool(name, description=f"The {name} tool.", **options)(handler)


def use(name: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"tools": [{"name": name, "arguments": arguments}]}


def bash(command: str) -> dict[str, Any]:
    return use("bash", command=command, description="test")
