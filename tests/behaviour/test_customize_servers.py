"""MCP servers: where they are configured, and which source wins."""

import json

import pytest

from clikit import Cli, serving
from customizekit import write

SOURCES = ["user", "workspace", "editor", "plugin", "flag"]
"""The least important first. The registry of Windows has no place here: Windows is not served."""


def name_server(cli: Cli, source: str) -> tuple[str, ...]:
    """Configure the server `db` in one source; returns the flags that takes."""
    entry = {"mcpServers": {"db": {"type": "local", "command": f"by-{source}"}}}
    plugin = cli.home.parent / "plugin"
    files = {
        "user": cli.home / "mcp-config.json",
        "workspace": cli.cwd / ".mcp.json",
        "editor": cli.cwd / ".vscode/mcp.json",
        "plugin": plugin / ".mcp.json",
    }
    if source == "flag":
        return ("--additional-mcp-config", json.dumps(entry))
    write(files[source], json.dumps(entry))
    if source != "plugin":
        return ()
    write(plugin / "plugin.json", '{"name": "p"}')
    return ("--plugin-dir", str(plugin))


@pytest.mark.proves("MCP-01")
@pytest.mark.parametrize("count", range(1, len(SOURCES) + 1))
async def test_the_last_of_all_sources_wins(cli: Cli, count: int) -> None:
    flags = [flag for source in SOURCES[:count] for flag in name_server(cli, source)]
    async with serving([{"text": "x"}]) as server:
        outcome = await cli.use(server).ask("hi", "--trust-folder", *flags)
    (loaded,) = outcome.of("session.mcp_servers_loaded")[-1]["servers"]
    assert loaded["name"] == "db"
    expected = {"user": "user", "workspace": "workspace", "editor": "workspace", "plugin": "plugin"}
    assert loaded["source"] == expected.get(SOURCES[count - 1], "user")


@pytest.mark.proves("MCP-01")
async def test_what_wins_over_what_is_shown(cli: Cli) -> None:
    for source in SOURCES[:3]:
        name_server(cli, source)
    outcome = await cli.run("mcp", "list", "--json", env={"COPILOT_ALLOW_ALL": "true"})
    shown = json.loads(outcome.text)["customizations"]
    used = [one for one in shown if not one["overriddenBy"]]
    assert [one["description"] for one in used] == ["by-editor"]
    beaten = {one["file"]: one["overriddenBy"] for one in shown if one["overriddenBy"]}
    assert beaten == {
        str(cli.home / "mcp-config.json"): str(cli.cwd / ".mcp.json"),
        str(cli.cwd / ".mcp.json"): str(cli.cwd / ".vscode/mcp.json"),
    }
    assert all(one["why"] for one in shown if one["overriddenBy"])
