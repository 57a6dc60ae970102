"""Forms, prompts and resources of MCP servers in the inline interface, in a real terminal."""

import sys
from typing import Any

import mcp_fixtures
from clikit import Cli, serving
from mcpkit import configure
from tuikit import conversing


def use(name: str) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": {}}]}


async def test_a_form_of_an_mcp_server_is_asked_field_by_field(cli: Cli) -> None:
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", rich={**entry, "slowConnectionThresholdMs": 30_000})
    script = [use("rich-test_elicitation"), {"text": "Asked."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all", "-i", "ask me") as terminal,
    ):
        await terminal.sees("The MCP server rich asks: Please answer")
        await terminal.may_answer()
        terminal.type("1")
        await terminal.sees("rich: username")
        await terminal.may_answer()
        terminal.type("2")
        await terminal.sees("your words:")
        terminal.type("ann\r")
        await terminal.sees("rich: email")
        await terminal.may_answer()
        terminal.type("1")
        await terminal.shows(r"Asked\.")
    answer = 'Elicitation completed: action=accept, content={"username": "ann"}'
    assert answer in server.requests[-1].json["messages"][-1]["content"]


async def test_a_prompt_of_an_mcp_server_is_completed_and_its_resources_are_shown(
    cli: Cli,
) -> None:
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", rich=entry)
    async with (
        serving([{"text": "Well."}]) as server,
        conversing(cli.use(server), "--allow-all") as terminal,
    ):
        await terminal.ready()
        terminal.type("/mcp resources rich\r")
        await terminal.sees("test://static-text")
        terminal.type("/rich:test_si")
        await terminal.sees("test_simple_prompt")
        terminal.type("\t\r")
        await terminal.shows(r"Well\.")
    assert "This is a simple prompt for testing." in str(server.requests[-1].json["messages"])


async def test_escape_cancels_a_form_of_an_mcp_server(cli: Cli) -> None:
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", rich={**entry, "slowConnectionThresholdMs": 30_000})
    tool = "rich-test_elicitation"
    script = [use(tool), {"text": "First."}, use(tool), {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all", "-i", "ask me") as terminal,
    ):
        await terminal.sees("The MCP server rich asks: Please answer")
        await terminal.may_answer()
        terminal.type("\x1b")
        await terminal.shows(r"First\.")
        assert "action=cancel" in server.requests[-1].json["messages"][-1]["content"]
        terminal.type("again\r")
        await terminal.may_answer()
        terminal.type("1")
        await terminal.sees("rich: username")
        await terminal.may_answer()
        terminal.type("2half a na")  # the field's own words
        await terminal.sees("half a na")
        terminal.type("\x1b")  # back to the choices
        await terminal.may_answer()
        terminal.type("\x1b")
        await terminal.shows(r"Second\.")
    assert "action=cancel" in server.requests[-1].json["messages"][-1]["content"]


async def test_a_form_ends_with_the_call_that_it_was_asked_for(cli: Cli) -> None:
    entry = {"command": sys.executable, "args": [mcp_fixtures.__file__]}
    configure(cli.home / "mcp-config.json", rich={**entry, "slowConnectionThresholdMs": 30_000})
    tool = "rich-test_elicitation"
    script = [use(tool), use(tool), {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all", "-i", "ask me") as terminal,
    ):
        await terminal.may_answer()
        terminal.type("\x03")
        await terminal.shows("Stopped by the user")
        await terminal.hides("Decline")
        await terminal.ready()
        terminal.type("again\r")
        await terminal.may_answer()  # the form of the first call does not stand in its way
        terminal.type("2")
        await terminal.shows(r"Second\.")
    assert "action=decline" in server.requests[-1].json["messages"][-1]["content"]
