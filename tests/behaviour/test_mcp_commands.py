"""`/mcp` and completions: what a person asks of the servers of a session."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import mcp_fixtures
from livekit import opened
from trimtab.commands.servers import ask_servers
from trimtab.commands.table import find_command
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import CustomizationOptions
from trimtab.mcp.session_servers import SessionServers

RICH = {
    "command": sys.executable,
    "args": [mcp_fixtures.__file__],
    "slowConnectionThresholdMs": 60_000,
}


@asynccontextmanager
async def session(folder: Path, *replies: Any) -> AsyncIterator[Any]:
    servers = CustomizationOptions(servers={"rich": RICH})
    async with opened(folder, [*replies, {"text": "Done."}], customize=servers) as (live, watch, _):
        yield live, watch


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("prompts rich", "/rich:test_prompt_with_arguments arg1 arg2  test_prompt_with_arguments"),
        ("resources rich", "test://static-text  text"),
        ("resources rich", "test://template/{id}/data  template"),
        ("read rich test://static-text", "This is the content of the static text resource."),
        ("read rich test://static-binary", "image/png, which is not shown"),
        ("complete /rich:test_s", "test_simple_prompt"),
        ("complete /rich:test_prompt_with_arguments arg1=pa", "paris\npark"),
        ("complete /nobody:x", "Nothing fits"),
        ("logs", "The servers have not logged anything"),
        ("level rich debug", "Lines of rich from debug on are shown."),
        ("restart rich", "rich is restarted."),
    ],
)
async def test_a_person_asks_a_server(tmp_path: Path, typed: str, shown: str) -> None:
    async with session(tmp_path) as (live, _):
        assert shown in await ask_servers(live.controls.servers, typed)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("nonsense", "/mcp has no action 'nonsense'; write /mcp enable"),
        ("read rich", "write /mcp read NAME ADDRESS"),
        ("prompts", "write /mcp prompts NAME"),
        ("logs nobody", "Unknown MCP server 'nobody'"),
        ("prompts nobody", "Unknown MCP server 'nobody'"),
        ("level rich loud", "'loud' is not a level; use one of debug"),
        ("read rich test://nowhere", "The MCP server rich refused: not found"),
        ('read "rich', "write /mcp read NAME ADDRESS"),
    ],
)
async def test_what_is_wrong_says_how_it_is_written(
    tmp_path: Path, typed: str, reason: str
) -> None:
    async with session(tmp_path) as (live, _):
        with pytest.raises(UsageError) as refused:
            await ask_servers(live.controls.servers, typed)
        assert reason in refused.value.message


async def test_the_log_of_a_server_can_be_read_and_its_level_changed(tmp_path: Path) -> None:
    call = {"tools": [{"name": "rich-test_tool_with_logging", "arguments": {}}]}
    async with session(tmp_path, call, {"text": "Done."}, call) as (live, watch):
        servers: SessionServers = live.controls.servers
        await live.ask("go")
        logged = (await ask_servers(servers, "logs rich")).splitlines()
        assert logged[0] == "rich: info: Tool execution started"
        assert len(logged) == 3
        await ask_servers(servers, "level rich info")
        await live.ask("again")
        assert len((await ask_servers(servers, "logs")).splitlines()) == 6
        shown = [info.message for info in watch.of("session.info") if info.info_type == "mcp_log"]
        assert shown == logged


async def test_a_prompt_is_completed_while_it_is_typed(tmp_path: Path) -> None:
    async with session(tmp_path) as (live, _):
        servers: SessionServers = live.controls.servers
        assert await servers.complete("/rich:test_si") == ("test_si", ["test_simple_prompt"])
        assert (await servers.complete("/rich:nothing at all"))[1] == []
        assert await servers.complete("/other:x") == ("", [])
        assert await servers.complete("no command") == ("", [])


async def test_a_prompt_of_a_server_is_not_an_unknown_command(tmp_path: Path) -> None:
    async with session(tmp_path) as (live, _):
        assert find_command(live, "/rich:test_simple_prompt now") is None
        with pytest.raises(UsageError, match="Unknown command /nobody:prompt"):
            find_command(live, "/nobody:prompt")
