"""`trimtab mcp gateway` between clients and servers of different revisions."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.types import ElicitResult

import mcp_fixtures
from clikit import TRIMTAB, Cli
from mcpkit import configure, entry, methods, serving_mcp
from trimtab.mcp.messages import CAPABILITIES_KEY, LOG_LEVEL_KEY, STATELESS, VERSION_KEY
from trimtab.providers.http import HttpClient

FIXTURES = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


class Stateless:
    """Sends requests of 2026-07-28, each on a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def ask(self, method: str, meta: Any = None, **params: Any) -> list[dict[str, Any]]:
        """The messages that answer a request, the answer last."""
        given = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}, **(meta or {})}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": given}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": STATELESS,
            "Mcp-Method": method,
            "Mcp-Name": str(params.get("name", "")),
        }
        http = HttpClient({})
        try:
            async with asyncio.timeout(60):
                sent = [json.dumps(body).encode()]
                answer = await http.request("POST", self._url, headers, sent)
                data = b""
                while chunk := await answer.receive():
                    data += chunk
        finally:
            await http.aclose()
        lines = [line.removeprefix(b"data: ") for line in data.splitlines()]
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    async def call(self, tool: str, meta: Any = None, **more: Any) -> dict[str, Any]:
        arguments = more.pop("arguments", {})
        answers = await self.ask("tools/call", meta, name=tool, arguments=arguments, **more)
        return answers[-1]


@asynccontextmanager
async def gateway(cli: Cli, **servers: Any) -> AsyncIterator[Stateless]:
    configure(cli.home / "mcp-config.json", **servers)
    async with serving_mcp(cli, "gateway", *servers) as url:
        yield Stateless(url)


@asynccontextmanager
async def connected(cli: Cli, *args: str, **callbacks: Any) -> AsyncIterator[ClientSession]:
    """The official client with a handshake, on standard input and output."""
    given = StdioServerParameters(
        command=TRIMTAB, args=["mcp", "gateway", *args], env=cli.env, cwd=str(cli.cwd)
    )
    async with asyncio.timeout(60):
        async with stdio_client(given) as streams, ClientSession(*streams, **callbacks) as session:
            await session.initialize()
            yield session


async def test_requests_without_a_session_share_one_program(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "heard.jsonl"
    async with gateway(cli, small=entry(log=log)) as client:
        for word in ("one", "two", "three"):
            said = await client.call("echo", arguments={"text": word})
            assert said["result"]["content"][0]["text"] == word
    assert methods(log).count("initialize") == 1
    assert methods(log).count("tools/call") == 3


async def test_requests_at_the_same_time_do_not_wait_for_each_other(
    cli: Cli, tmp_path: Path
) -> None:
    async with gateway(cli, small=entry("asks")) as client:
        asked = await client.call("ask", {CAPABILITIES_KEY: FORMS})
        assert asked["result"]["resultType"] == "input_required"
        said = await client.call("echo", {CAPABILITIES_KEY: FORMS}, arguments={"text": "meanwhile"})
        assert said["result"]["content"][0]["text"] == "meanwhile"
        (name,) = asked["result"]["inputRequests"]
        answered = await client.call(
            "ask",
            {CAPABILITIES_KEY: FORMS},
            requestState=asked["result"]["requestState"],
            inputResponses={name: {"action": "accept", "content": {"count": 3}}},
        )
    assert '"count": 3' in answered["result"]["content"][0]["text"]


async def test_a_state_that_is_not_open_does_not_repeat_the_call(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "heard.jsonl"
    async with gateway(cli, small=entry(log=log)) as client:
        said = await client.call("echo", arguments={"text": "again"}, requestState="of-yesterday")
    assert said["error"]["code"] == -32602
    assert "without it" in said["error"]["message"]
    assert "tools/call" not in methods(log)


async def test_questions_of_a_stateless_server_pass_unchanged(cli: Cli) -> None:
    async with gateway(cli, small=entry("stateless")) as client:
        asked = await client.call("ask", {CAPABILITIES_KEY: FORMS})
        assert set(asked["result"]["inputRequests"]) == {"form"}
        assert asked["result"]["requestState"] == "s-1"
        answers = {"form": {"action": "decline"}}
        meta = {CAPABILITIES_KEY: FORMS}
        said = await client.call("ask", meta, requestState="s-1", inputResponses=answers)
    given = json.loads(said["result"]["content"][0]["text"])
    assert given == {"inputResponses": answers, "requestState": "s-1"}


async def test_a_client_with_a_session_is_asked_for_a_stateless_server(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry("stateless"))

    async def agree(context: Any, params: Any) -> ElicitResult:
        assert params.message == "Which colour?"
        return ElicitResult(action="accept", content={"count": 5})

    async with connected(cli, "small", elicitation_callback=agree) as client:
        said: Any = await client.call_tool("ask", {})
    assert '"count": 5' in said.content[0].text


async def test_progress_comes_as_a_stream_before_the_answer(cli: Cli) -> None:
    async with gateway(cli, small=entry()) as client:
        answers = await client.ask("tools/call", {"progressToken": "t"}, name="steps", arguments={})
    *notices, last = answers
    assert [notice["params"]["message"] for notice in notices] == [
        f"step {number}" for number in range(4)
    ]
    assert last["result"]["content"][0]["text"] == "all steps"


async def test_log_lines_reach_only_requests_that_want_them(cli: Cli) -> None:
    async with gateway(cli, fixtures=FIXTURES) as client:
        tool = {"name": "test_tool_with_logging", "arguments": {}}
        assert len(await client.ask("tools/call", **tool)) == 1
        assert len(await client.ask("tools/call", {LOG_LEVEL_KEY: "error"}, **tool)) == 1
        lines = await client.ask("tools/call", {LOG_LEVEL_KEY: "info"}, **tool)
    assert [line.get("method") for line in lines] == [*["notifications/message"] * 3, None]


async def test_a_server_that_dies_is_started_again_by_the_next_request(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry())
    async with connected(cli, "small") as client:
        with pytest.raises(MCPError, match="its program exited"):
            await client.call_tool("die", {})
        said: Any = await client.call_tool("echo", {"text": "back"})
    assert said.content[0].text == "back"


async def test_tools_that_an_entry_leaves_out_are_not_served(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry(excludeTools=["make"]))
    async with connected(cli, "small") as client:
        assert "make" not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="Unknown tool: make"):
            await client.call_tool("make", {"path": str(cli.cwd / "made")})
    assert not (cli.cwd / "made").exists()


@pytest.mark.filterwarnings("ignore:.*roots.*")
async def test_notifications_of_the_client_reach_the_server(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "heard.jsonl"
    configure(cli.home / "mcp-config.json", small=entry(log=log))
    async with connected(cli, "small") as client:
        await client.send_roots_list_changed()
        await client.call_tool("echo", {"text": "after"})
    assert "notifications/roots/list_changed" in methods(log)


async def test_a_program_that_wants_the_older_greeting_is_served(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry("strict"))
    async with connected(cli, "small") as client:
        said: Any = await client.call_tool("echo", {"text": "hi"})
    assert said.content[0].text == "hi"


@pytest.mark.parametrize("number", [[1], {"a": 1}, True, None])
async def test_an_id_that_is_not_one_is_refused(cli: Cli, number: Any) -> None:
    configure(cli.home / "mcp-config.json", small=entry())
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"})
    outcome = await cli.run("mcp", "gateway", "small", stdin=f"{line}\n".encode())
    assert outcome.lines[0]["error"]["message"] == "The id is not a text or a number."


async def test_a_server_that_is_left_out_is_named(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", one=entry(), dead={"command": "no-such-program"})
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
    line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}
    outcome = await cli.run("mcp", "gateway", stdin=json.dumps(line).encode() + b"\n")
    assert "result" in outcome.lines[0]
    assert "The MCP server dead cannot be used" in outcome.notes
    assert "left out" in outcome.notes


@pytest.mark.parametrize("action", ["serve", "gateway"])
async def test_input_that_cannot_be_polled_is_read_to_its_end(
    cli: Cli, tmp_path: Path, action: str
) -> None:
    configure(cli.home / "mcp-config.json", small=entry())
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    with lines.open() as file:
        for given in (asyncio.subprocess.DEVNULL, file.fileno()):
            process = await cli.start("mcp", action, stdin_fd=given)
            async with asyncio.timeout(60):
                out, _ = await process.communicate()
            assert process.returncode == 0
    assert json.loads(out) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_a_gateway_that_another_agent_configured_does_not_start_itself(cli: Cli) -> None:
    """Files of other agents count, and name this very gateway if they use it."""
    itself = {"command": TRIMTAB, "args": ["mcp", "gateway"]}
    configure(cli.home / "mcp-config.json", small=entry(), itself=itself)
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c"}}
    line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}
    async with asyncio.timeout(60):
        outcome = await cli.run("mcp", "gateway", stdin=json.dumps(line).encode() + b"\n")
    assert "result" in outcome.lines[0]
    assert "leave `trimtab mcp gateway` out of the servers" in outcome.notes


async def test_a_gateway_whose_own_address_is_configured_does_not_connect_to_itself(
    cli: Cli,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    itself = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
    configure(cli.home / "mcp-config.json", small=entry(), itself=itself)
    async with serving_mcp(cli, "gateway", "--port", str(port)) as url:
        client = Stateless(url)
        (answer,) = await client.ask("tools/list")
    names = {tool["name"] for tool in answer["result"]["tools"]}
    assert "small-echo" in names
    assert not any(name.startswith("itself") for name in names)
