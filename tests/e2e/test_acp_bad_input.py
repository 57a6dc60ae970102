"""Input that no well-behaved client sends, and clients with unusual capabilities."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from acpkit import RawClient
from clikit import Cli, bash, serving


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def request(method: Any, params: Any = None, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}, **fields}


PARSE, REQUEST, METHOD, PARAMS, MISSING = -32700, -32600, -32601, -32602, -32002
SESSION = "00000000-0000-4000-8000-000000000000"
LINES: dict[str, tuple[Any, Any, int]] = {
    "broken JSON": (b'{"jsonrpc": "2.0", "id": 7', None, PARSE),
    "bytes that are not UTF-8": (b'{"id": 7, "method": "\xff"}', 7, PARSE),
    "a number": (b"17", None, REQUEST),
    "a batch": (b"[]", None, REQUEST),
    "very deep nesting": (b'{"params": ' * 100_000, None, PARSE),
    "a method that is not text": (request(5), 7, REQUEST),
    "another version of JSON-RPC": (request("initialize", jsonrpc="1.0"), 7, REQUEST),
    "a fractional id": ({**request("initialize"), "id": 1.5}, None, REQUEST),
    "an unknown method": (request("session/teleport"), 7, METHOD),
    "a method that is gone": (request("session/set_model"), 7, METHOD),
    "an authentication nobody offered": (request("authenticate", {"methodId": "x"}), 7, METHOD),
    "parameters of another shape": (request("session/new", {"cwd": 5}), 7, PARAMS),
    "parameters that are a list": (request("session/new", [1]), 7, PARAMS),
    "no parameters": ({"jsonrpc": "2.0", "id": 7, "method": "session/new"}, 7, PARAMS),
    "a relative folder": (request("session/new", {"cwd": "x", "mcpServers": []}), 7, PARAMS),
    "a missing folder": (request("session/new", {"cwd": "/no/such", "mcpServers": []}), 7, PARAMS),
    "a missing further folder": (
        request("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": ["/no/x"]}),
        7,
        PARAMS,
    ),
    "a server over SSE": (
        request(
            "session/new",
            {"cwd": "/", "mcpServers": [{"type": "sse", "name": "x", "url": "u", "headers": []}]},
        ),
        7,
        PARAMS,
    ),
    "a server without a command": (
        request("session/new", {"cwd": "/", "mcpServers": [{"name": "x", "args": [], "env": []}]}),
        7,
        PARAMS,
    ),
    "a prompt to an unknown session": (
        request(
            "session/prompt", {"sessionId": SESSION, "prompt": [{"type": "text", "text": "x"}]}
        ),
        7,
        MISSING,
    ),
    "loading an unknown session": (
        request("session/load", {"sessionId": SESSION, "cwd": "/", "mcpServers": []}),
        7,
        MISSING,
    ),
    "resuming an unknown session": (
        request("session/resume", {"sessionId": SESSION, "cwd": "/"}),
        7,
        MISSING,
    ),
    "forking an unknown session": (
        request("session/fork", {"sessionId": SESSION, "cwd": "/"}),
        7,
        MISSING,
    ),
    "loading a path": (
        request("session/load", {"sessionId": "../../etc", "cwd": "/", "mcpServers": []}),
        7,
        MISSING,
    ),
    "closing an unknown session": (request("session/close", {"sessionId": SESSION}), 7, MISSING),
    "a mode of an unknown session": (
        request("session/set_mode", {"sessionId": SESSION, "modeId": "plan"}),
        7,
        MISSING,
    ),
    "an unknown cursor": (request("session/list", {"cursor": "next"}), 7, PARAMS),
}


@pytest.mark.parametrize("name", LINES)
async def test_bad_input_gets_the_right_code_and_takes_nothing_down(cli: Cli, name: str) -> None:
    line, number, code = LINES[name]
    client = await RawClient.start(cli)
    await client.send(line)
    answer = await client.read()
    assert (answer["id"], answer["error"]["code"]) == (number, code), answer
    assert answer["error"]["message"].endswith((".", "!"))
    assert "result" in await client.call("session/list", 8)
    assert await client.end() == 0


IN_SESSION: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown mode": ("session/set_mode", {"modeId": "warp"}),
    "an unknown option": ("session/set_config_option", {"configId": "x", "value": "y"}),
    "an unknown value": ("session/set_config_option", {"configId": "mode", "value": "y"}),
    "a boolean for a list": ("session/set_config_option", {"configId": "mode", "value": True}),
    "audio": (
        "session/prompt",
        {"prompt": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
    ),
    "an unknown kind of content": ("session/prompt", {"prompt": [{"type": "smell"}]}),
    "an image without data": ("session/prompt", {"prompt": [{"type": "image"}]}),
    "an image that is none": (
        "session/prompt",
        {"prompt": [{"type": "image", "data": "AAAA", "mimeType": "text/plain"}]},
    ),
    "an image that is not Base64": (
        "session/prompt",
        {"prompt": [{"type": "image", "data": "!!!", "mimeType": "image/png"}]},
    ),
    "a blob that is no image": (
        "session/prompt",
        {"prompt": [{"type": "resource", "resource": {"uri": "file:///x", "blob": "AAAA"}}]},
    ),
    "a resource without contents": (
        "session/prompt",
        {"prompt": [{"type": "resource", "resource": {"uri": "file:///x"}}]},
    ),
    "an empty prompt": ("session/prompt", {"prompt": []}),
    "a blank prompt": ("session/prompt", {"prompt": [{"type": "text", "text": "  "}]}),
    "an unknown command": ("session/prompt", {"prompt": [{"type": "text", "text": "/warp"}]}),
}


@pytest.mark.parametrize("name", IN_SESSION)
async def test_bad_values_are_refused_and_the_session_goes_on(cli: Cli, name: str) -> None:
    method, params = IN_SESSION[name]
    async with serving(["alive"]) as server:
        client = await RawClient.start(cli.use(server))
        session = await client.open(cli)
        answer = await client.call(method, 5, sessionId=session, **params)
        assert answer["error"]["code"] == PARAMS, answer
        prompt = [{"type": "text", "text": "hello"}]
        answer = await client.call("session/prompt", 6, sessionId=session, prompt=prompt)
        assert answer["result"] == {"stopReason": "end_turn"}
        assert await client.end() == 0


async def test_methods_before_initialize_are_refused(cli: Cli) -> None:
    process = await cli.start("--acp", stdin_fd=asyncio.subprocess.PIPE)
    client = RawClient(process)
    answer = await client.call("session/new", 1, cwd="/", mcpServers=[])
    assert answer["error"]["code"] == REQUEST
    assert await client.end() == 0


async def test_a_line_of_ten_megabytes_is_read(cli: Cli) -> None:
    async with serving(["read"]) as server:
        client = await RawClient.start(cli.use(server))
        session = await client.open(cli)
        text = {"uri": "file:///big", "text": "x" * 100_000}
        padding = {"padding": "y" * 10_000_000}
        answer = await client.call(
            "session/prompt",
            2,
            sessionId=session,
            prompt=[{"type": "resource", "resource": text}],
            _meta=padding,
        )
        assert answer["result"] == {"stopReason": "end_turn"}
        assert await client.end() == 0


async def test_an_id_in_use_is_refused_and_a_null_id_is_answered(cli: Cli) -> None:
    async with serving([{"text": "slow", "delay": 5}]) as server:
        client = await RawClient.start(cli.use(server))
        session = await client.open(cli)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        await client.send({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt})
        answer = await client.call("session/list", 3)
        assert answer["error"]["code"] == REQUEST
        assert "result" in await client.call("session/list", None)
        await client.send(
            {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}}
        )
        assert (await client.read_answer(3))["result"] == {"stopReason": "cancelled"}
        assert await client.end() == 0


async def test_notices_and_compaction_go_only_to_a_client_that_takes_them(cli: Cli) -> None:
    missing = {"name": "missing", "command": "/no/such/program", "args": [], "env": []}
    supports: list[dict[str, Any]] = [{}, {"session": {"notices": {}, "compaction": {}}}]
    for session_support in supports:
        async with serving(["one", "two", "a summary of it all", "done"]) as server:
            client = await RawClient.start(cli.use(server), **session_support)
            answer = await client.call("session/new", 2, cwd=str(cli.cwd), mcpServers=[missing])
            session = answer["result"]["sessionId"]
            for text in ("hello", "more", "/compact"):
                prompt = [{"type": "text", "text": text}]
                answer = await client.call("session/prompt", 3, sessionId=session, prompt=prompt)
                assert answer["result"] == {"stopReason": "end_turn"}, answer
            notices = [update["title"] for update in client.updates("notice")]
            states = [update["status"] for update in client.updates("compaction_update")]
            if session_support:
                assert any("missing" in notice for notice in notices)
                assert states == ["in_progress", "completed"]
            else:
                assert notices == states == []
            assert await client.end() == 0


async def test_a_client_with_booleans_has_a_switch_for_allow_all(cli: Cli) -> None:
    support: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}}
    async with serving([{"tools": [bash("touch made")]}, "done"]) as server:
        client = await RawClient.start(cli.use(server), **support)
        answer = await client.call("session/new", 2, cwd=str(cli.cwd), mcpServers=[])
        session = answer["result"]["sessionId"]
        [switch] = [o for o in answer["result"]["configOptions"] if o["id"] == "allow_all"]
        assert (switch["type"], switch["currentValue"]) == ("boolean", False)
        answer = await client.call(
            "session/set_config_option",
            3,
            sessionId=session,
            configId="allow_all",
            type="boolean",
            value=True,
        )
        assert "result" in answer
        prompt = [{"type": "text", "text": "x"}]
        await client.call("session/prompt", 4, sessionId=session, prompt=prompt)
        assert (cli.cwd / "made").exists()
        assert await client.end() == 0


async def test_standard_output_carries_the_protocol_only(cli: Cli) -> None:
    replies = [{"tools": [bash("echo to stdout; echo to stderr >&2")]}, "done"]
    async with serving(replies) as server:
        client = await RawClient.start(cli.use(server), "--allow-all")
        session = await client.open(cli)
        prompt = [{"type": "text", "text": "x"}]
        await client.call("session/prompt", 4, sessionId=session, prompt=prompt)
        assert all(json.dumps(message) for message in client.heard)
        assert await client.end() == 0


CONFLICTS = ["-p x", "--resume", "--continue", "--headless", "--output-format json", "--name x"]


@pytest.mark.parametrize("flags", CONFLICTS)
async def test_flags_of_one_run_are_refused(cli: Cli, flags: str) -> None:
    outcome = await cli.run("--acp", *flags.split())
    assert outcome.code == 2
    assert "cannot be used together" in outcome.notes


@pytest.mark.parametrize("flags", [["--acp"], ["--headless", "--stdio"]])
async def test_a_server_whose_input_is_empty_ends(cli: Cli, flags: list[str]) -> None:
    assert (await cli.run(*flags)).code == 0
