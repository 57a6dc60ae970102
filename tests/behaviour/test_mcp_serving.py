"""`trimtab mcp serve` and `trimtab mcp gateway`, with the official client and with raw requests."""

import json
import sys
from typing import Any

import pytest

from clikit import Cli, serving
from mcpkit import SCRIPT, configure, connected, entry, serving_mcp
from trimtab.mcp.messages import STATELESS
from trimtab.providers.http import HttpClient
from trimtab.transports.mcp.http import is_local

DONE = {"text": "Done."}


async def post(url: str, message: Any, headers: dict[str, str]) -> int:
    """Send a message; return the status of the answer."""
    http = HttpClient({})
    given = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    answer = await http.request("POST", url, given, [json.dumps(message).encode()])
    status = answer.status
    answer.close()
    await http.aclose()
    return status


def text(result: Any) -> str:
    return str(result.content[0].text)


async def test_the_agent_runs_for_another_program_and_its_session_can_be_read(cli: Cli) -> None:
    async with (
        serving([{"text": "It is 42."}]) as model,
        connected(cli.use(model), "serve") as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "run",
            "list_sessions",
            "read_session",
        }
        result = await client.call_tool("run", {"prompt": "What is it?"})
        assert text(result) == "It is 42."
        assert not result.is_error
        session = result.structured_content["sessionId"]
        listed = json.loads(text(await client.call_tool("list_sessions", {})))
        assert [one["sessionId"] for one in listed] == [session]
        read = text(await client.call_tool("read_session", {"sessionId": session}))
        assert "What is it?" in read
        assert "It is 42." in read
        (resource,) = (await client.list_resources()).resources
        assert str(resource.uri) == f"trimtab://sessions/{session}"
        contents = (await client.read_resource(resource.uri)).contents
        assert getattr(contents[0], "text", "") == read
        missing = await client.call_tool("read_session", {"sessionId": "nowhere"})
        assert missing.is_error


async def test_commands_are_prompts(cli: Cli) -> None:
    folder = cli.home / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: greet\ndescription: Says hello\n---\nSay hello to $ARGUMENTS.\n"
    )
    async with connected(cli, "serve") as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert prompts["greet"].description == "Says hello"
        got = await client.get_prompt("greet", {"arguments": "Ann"})
        assert getattr(got.messages[0].content, "text", "") == "Say hello to Ann."


@pytest.mark.proves("MCP-10", "MCP-11", "VSC-29")
async def test_a_session_reaches_a_program_through_the_gateway_by_an_address(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry())
    async with serving_mcp(cli, "gateway", "small") as url:
        far = {"far": {"type": "http", "url": url, "slowConnectionThresholdMs": 30_000}}
        flags = ("--disable-mcp-server", "small", "--additional-mcp-config")
        replies = [{"tools": [{"name": "far-echo", "arguments": {"text": "through"}}]}, DONE]
        async with serving(replies) as model:
            outcome = await cli.use(model).ask("go", *flags, json.dumps({"mcpServers": far}))
    (end,) = outcome.of("tool.execution_complete")
    assert end["result"]["content"] == "through"
    (start,) = outcome.of("tool.execution_start")
    assert start["mcpTransport"] == "http"


@pytest.mark.proves("MCP-11", "VSC-29")
async def test_the_gateway_is_switched_off_by_a_setting(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry())
    (cli.home / "settings.json").write_text('{"host": {"mcp": {"enabled": false}}}')
    outcome = await cli.run("mcp", "gateway")
    assert outcome.code == 2
    assert "mcp.enabled" in outcome.notes


async def test_several_servers_are_told_apart_by_name_and_a_dead_one_is_left_out(
    cli: Cli,
) -> None:
    configure(
        cli.home / "mcp-config.json",
        one=entry(),
        two={"command": sys.executable, "args": ["-S", "-E", SCRIPT]},
        dead={"command": "no-such-program"},
    )
    async with connected(cli, "gateway") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"one-echo", "two-echo"} <= names
        assert not any(name.startswith("dead") for name in names)
        assert text(await client.call_tool("two-echo", {"text": "second"})) == "second"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer right-token"}, 200),
        ({"Authorization": "Bearer right-token", "Origin": "https://evil.example"}, 403),
    ],
)
async def test_only_who_has_the_token_and_is_on_this_machine_is_served(
    cli: Cli, headers: dict[str, str], status: int
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    stateless = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/list"}
    async with serving_mcp(cli, "serve", token="right-token") as url:
        assert await post(url, message, {**stateless, **headers}) == status


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_leads_here_from_elsewhere_is_not_this_machine(host: str) -> None:
    assert not is_local({"host": host})
    assert is_local({"host": "localhost:1234", "origin": "http://127.0.0.1:1"})


async def test_a_gateway_without_servers_and_wrong_flags_say_what_to_do(cli: Cli) -> None:
    for args, reason in (
        (("gateway",), "add one with `trimtab mcp add`"),
        (("gateway", "nobody"), "There is no MCP server 'nobody'"),
        (("serve", "--port", "1"), "add --http"),
    ):
        outcome = await cli.run("mcp", *args)
        assert outcome.code == 2
        assert reason in outcome.notes


async def test_lines_that_are_not_messages_are_answered_and_do_no_harm(cli: Cli) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    outcome = await cli.run("mcp", "serve", stdin=b"nonsense\n" + json.dumps(ping).encode() + b"\n")
    first, second = outcome.lines
    assert first["error"]["code"] == -32700
    assert second == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert outcome.code == 0
