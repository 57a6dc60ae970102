"""The editor's own files, terminals and forms, and the MCP servers it brings."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio

import mcp_fixtures
from acpkit import SOON, connected
from clikit import Cli, bash, serving
from mcpkit import PYTHON, SCRIPT, serving_http

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
TERMINALS = {"terminal": True}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def test_files_are_read_from_the_editors_buffers(cli: Cli) -> None:
    path = cli.cwd / "a.txt"
    path.write_text("saved\n")
    replies = [use("view", path="a.txt"), "done"]
    async with serving(replies) as server, connected(cli.use(server), capabilities=FILES) as link:
        link.editor.files[str(path)] = "not saved yet\n"
        await link.open()
        await link.say()
        assert "not saved yet" in str(server.requests[-1].json["messages"][-1])


async def test_an_edit_of_unsaved_text_goes_through_the_editor_and_can_be_undone(cli: Cli) -> None:
    path = cli.cwd / "a.txt"
    path.write_text("saved\n")
    replies = [use("edit", path="a.txt", old_str="typed", new_str="TYPED"), "done"]
    async with serving(replies) as server, connected(cli.use(server), capabilities=FILES) as link:
        link.editor.files[str(path)] = "typed\n"
        await link.open()
        await link.say()
        diff = {"type": "diff", "path": str(path), "oldText": "typed\n", "newText": "TYPED\n"}
        [question] = [ask for ask in link.editor.asked if "toolCall" in ask]
        assert question["toolCall"]["content"] == [diff]
        [call] = link.editor.calls().values()
        assert call["content"] == [diff]
        assert path.read_text() == "TYPED\n"
        written = [ask["content"] for ask in link.editor.asked if "content" in ask]
        assert written[-1] == "TYPED\n"
        await link.say("/undo")
        assert path.read_text() == "typed\n"
    blamed = await cli.run("blame", "a.txt")
    assert blamed.code == 0


@pytest.mark.parametrize("tool", ["create", "apply_patch"])
async def test_every_tool_that_writes_does_so_through_the_editor(cli: Cli, tool: str) -> None:
    path = cli.cwd / "a.txt"
    replies = [use("create", path="a.txt", file_text="new\n"), "done"]
    if tool == "apply_patch":
        path.write_text("saved\n")
        patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-typed\n+new\n*** End Patch\n"
        call = {"name": "apply_patch", "arguments": patch, "kind": "custom"}
        replies = [{"tools": [call]}, "done"]
    async with serving(replies) as server:
        cli.use(server)
        cli.env["COPILOT_MODEL"] = "gpt-5-scripted" if tool == "apply_patch" else "scripted"
        async with connected(cli, capabilities=FILES) as link:
            if tool == "apply_patch":
                link.editor.files[str(path)] = "typed\n"
            await link.open()
            await link.say()
            written = [ask["content"] for ask in link.editor.asked if "content" in ask]
            assert written[-1] == "new\n"
            assert path.read_text() == "new\n"


async def test_a_file_that_is_not_text_is_never_read_through_the_editor(cli: Cli) -> None:
    path = cli.cwd / "latin.txt"
    path.write_bytes(b"caf\xe9 one\n")
    replies = [use("edit", path="latin.txt", old_str="one", new_str="two"), "done"]
    async with serving(replies) as server, connected(cli.use(server), capabilities=FILES) as link:
        await link.open()
        await link.say()
        assert path.read_bytes() == b"caf\xe9 two\n"


async def test_a_client_without_files_is_not_asked_for_them(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_text("saved\n")
    replies = [use("view", path="a.txt"), {"tools": [bash("touch b")]}, "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say()
        assert {ask["method"] for ask in link.editor.asked} == {"session/request_permission"}


async def test_commands_run_in_the_editors_terminals(cli: Cli) -> None:
    replies = [{"tools": [bash("echo in terminal; touch made; exit 3")]}, "done"]
    async with (
        serving(replies) as server,
        connected(cli.use(server), capabilities=TERMINALS) as link,
    ):
        await link.open()
        await link.say()
        [call] = link.editor.calls().values()
        assert {"type": "terminal", "terminalId": "terminal-1"} in call["content"]
        assert call["rawOutput"]["exitCode"] == 3
        await link.editor.until(lambda: link.editor.released == ["terminal-1"])
        assert "in terminal" in str(server.requests[-1].json["messages"][-1])
        assert (cli.cwd / "made").exists()
        assert any(entry["type"] == "diff" for entry in call["content"])


async def test_a_cancelled_command_in_a_terminal_is_killed(cli: Cli) -> None:
    replies = [{"tools": [bash("echo started; sleep 60")]}, "done"]
    async with (
        serving(replies) as server,
        connected(cli.use(server), "--allow-all", capabilities=TERMINALS) as link,
    ):
        await link.open()
        turn = asyncio.create_task(link.say())
        await link.editor.until(lambda: "terminal-1" in str(link.editor.updates))
        await link.agent.cancel(session_id=link.session)
        async with asyncio.timeout(SOON):
            assert await turn == "cancelled"
        async with asyncio.timeout(50):
            assert await link.editor.terminals["terminal-1"].wait() == -9


async def test_a_command_that_nobody_approved_stays_behind_the_fence(cli: Cli) -> None:
    replies = [{"tools": [bash("ls")]}, "done"]
    async with (
        serving(replies) as server,
        connected(cli.use(server), capabilities=TERMINALS) as link,
    ):
        await link.open()
        await link.say()
        assert link.editor.terminals == {}
        [call] = link.editor.calls().values()
        assert call["status"] == "completed"


QUESTION = use("ask_user", question="Which one?", choices=["red", "blue"])
ANSWERS: list[tuple[Any, str]] = [
    ({"action": "accept", "content": {"choice": "blue"}}, "blue"),
    ({"action": "accept", "content": {"answer": "green"}}, "green"),
    ({"action": "decline"}, ""),
    ({"action": "cancel"}, ""),
    ("error", ""),
]


@pytest.mark.parametrize(("form", "told"), ANSWERS)
async def test_questions_are_forms(cli: Cli, form: Any, told: str) -> None:
    replies = [QUESTION, "done"]
    async with serving(replies) as server, connected(cli.use(server), capabilities=FORMS) as link:
        link.editor.form = form
        await link.open()
        assert await link.say() == "end_turn"
        [ask] = link.editor.asked
        assert ask["message"] == "Which one?"
        assert ask["requestedSchema"]["properties"]["choice"]["enum"] == ["red", "blue"]
        result = str(server.requests[-1].json["messages"][-1])
        assert told in result


async def test_without_forms_the_model_is_not_offered_questions(cli: Cli) -> None:
    async with serving([QUESTION, "done"]) as server, connected(cli.use(server)) as link:
        await link.open()
        assert await link.say() == "end_turn"
        assert "ask_user" not in str(server.requests[0].json["tools"])


async def test_an_mcp_server_of_the_client_joins_the_session(cli: Cli) -> None:
    command, *flags = PYTHON
    stdio = McpServerStdio(
        name="small",
        command=command,
        args=[*flags, SCRIPT],
        env=[EnvVariable(name="COLOUR", value="teal")],
    )
    replies = [use("small-where"), "done"]
    async with serving(replies) as server, connected(cli.use(server), "--allow-all") as link:
        await link.open(mcp_servers=[stdio])
        await link.say()
        assert "teal" in str(server.requests[-1].json["messages"][-1])
        [call] = link.editor.calls().values()
        assert call["status"] == "completed"


async def test_an_mcp_server_over_http_is_sent_the_clients_headers(cli: Cli) -> None:
    async with serving_http() as peer, serving([use("far-echo", text="hi"), "done"]) as server:
        headers = [HttpHeader(name="X-Key", value="secret-value")]
        http = HttpMcpServer(type="http", name="far", url=peer.url, headers=headers)
        async with connected(cli.use(server), "--allow-all") as link:
            await link.open(mcp_servers=[http])
            await link.say()
            assert {sent["x-key"] for _, sent, _ in peer.requests} == {"secret-value"}
            [call] = link.editor.calls().values()
            assert call["status"] == "completed"


async def test_a_dead_mcp_server_holds_up_nothing(cli: Cli) -> None:
    hanging = McpServerStdio(name="hanging", command="sleep", args=["600"], env=[])
    missing = McpServerStdio(name="missing", command="/no/such/program", args=[], env=[])
    silent = HttpMcpServer(
        type="http",
        name="silent",
        url="http://127.0.0.1:9/mcp",
        headers=[HttpHeader(name="X-Key", value="secret-value")],
    )
    async with serving(["hello"]) as server, connected(cli.use(server)) as link:
        async with asyncio.timeout(SOON):
            await link.open(mcp_servers=[hanging, missing, silent])
        assert await link.say() == "end_turn"
        assert "hello" in link.editor.text()
        warnings = link.editor.text("agent_thought_chunk")
        assert "missing" in warnings


ASKING = McpServerStdio(name="asking", command=sys.executable, args=[mcp_fixtures.__file__], env=[])
ACCEPTED = {"action": "accept", "content": {"name": "Ann"}}
SERVER_FORMS: list[tuple[Any, Any, str]] = [
    (FORMS, ACCEPTED, "action=accept"),
    (FORMS, {"action": "decline"}, "action=decline"),
    (FORMS, {"action": "cancel"}, "action=cancel"),
    (FORMS, "error", "action=cancel"),
    ({}, ACCEPTED, "action=decline"),
]


@pytest.mark.parametrize(("capabilities", "form", "told"), SERVER_FORMS)
async def test_a_form_of_an_mcp_server_is_shown_to_a_client_with_forms(
    cli: Cli, capabilities: Any, form: Any, told: str
) -> None:
    replies = [use("asking-test_elicitation_sep1034_defaults"), "done"]
    async with (
        serving(replies) as server,
        connected(cli.use(server), "--allow-all", capabilities=capabilities) as link,
    ):
        link.editor.form = form
        await link.open(mcp_servers=[ASKING])
        assert await link.say() == "end_turn"
        result = str(server.requests[-1].json["messages"][-1])
        shown = [ask for ask in link.editor.asked if ask["method"] == "elicitation/create"]
    assert told in result
    assert [ask["requestedSchema"]["properties"] for ask in shown] == (
        [mcp_fixtures.PERSON] if capabilities else []
    )
    if form is ACCEPTED and capabilities:
        assert '"name": "Ann"' in result
        assert '"age": 30' in result


async def test_an_address_of_an_mcp_server_is_shown_only_to_a_client_that_opens_addresses(
    cli: Cli,
) -> None:
    replies = [use("asking-test_address"), "done"]
    addresses: dict[str, Any] = {"elicitation": {"url": {}}}
    async with (
        serving(replies) as server,
        connected(cli.use(server), "--allow-all", capabilities=addresses) as link,
    ):
        link.editor.form = {"action": "accept"}
        await link.open(mcp_servers=[ASKING])
        assert await link.say() == "end_turn"
        [shown] = link.editor.asked
        assert "action=accept" in str(server.requests[-1].json["messages"][-1])
    assert shown["mode"] == "url"
    assert shown["url"] == "https://example.com/sign-in"
