"""Skills, plugins and MCP servers over the official SDK: listed, changed, switched."""

import json
from pathlib import Path
from typing import Any

from copilot.client import RuntimeConnection
from copilot.generated import rpc

from clikit import TRIMTAB, Cli, bash
from customizekit import write
from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
SKILL = "---\ndescription: Adds up\n---\nAdd carefully.\n"


def make_plugin(root: Path, version: str = "1.0") -> Path:
    write(root / "plugin.json", json.dumps({"name": "tools", "version": version}))
    write(root / "skills/one/SKILL.md", "---\ndescription: from a plugin\n---\nPlugin body.\n")
    return root


async def test_a_skill_is_switched_off_and_on_in_a_session(sdk: Sdk) -> None:
    write(sdk.home / "own/sums/SKILL.md", SKILL)
    folders = [str(sdk.home / "own")]
    async with talking(sdk, [DONE] * 3, skill_directories=folders) as talk:
        skills = talk.session.rpc.skills
        assert [(one.name, one.enabled) for one in (await skills.list()).skills] == [("sums", True)]
        await skills.disable(rpc.SkillsDisableRequest(name="sums"))
        await talk.say("one")
        await skills.enable(rpc.SkillsEnableRequest(name="sums"))
        await talk.say("two")
        listed = (await skills.list()).skills
        assert [one.enabled for one in listed] == [True]
        assert ["- sums: Adds up" in talk.system(n) for n in range(2)] == [False, True]
        loaded = talk.heard.of("session.skills_loaded")
        assert [[one.enabled for one in told.skills] for told in loaded][-2:] == [[False], [True]]


async def test_skills_are_read_again_and_those_used_are_known(sdk: Sdk) -> None:
    write(sdk.home / "own/sums/SKILL.md", SKILL)
    folders = [str(sdk.home / "own")]
    replies = [use("skill", skill="sums"), DONE]
    async with talking(sdk, replies, skill_directories=folders) as talk:
        skills = talk.session.rpc.skills
        await skills.ensure_loaded()
        await talk.say("add")
        (used,) = (await skills.get_invoked()).skills
        assert (used.name, used.path) == ("sums", str(sdk.home / "own/sums/SKILL.md"))
        assert "Add carefully." in used.content
        write(sdk.home / "own/more/SKILL.md", "---\ncolour: red\n---\nx")
        write(sdk.home / "own/bad/SKILL.md", "---\nname: [\n---\nx")
        told = await skills.reload()
        assert ["more/SKILL.md" in one for one in told.warnings] == [True]
        assert ["bad/SKILL.md:" in one for one in told.errors] == [True]
        names = {one.name for one in (await skills.list()).skills}
        assert {"sums", "more"} <= names


async def test_a_skill_that_is_not_there_yet_can_be_switched_off(sdk: Sdk) -> None:
    folders = [str(sdk.home / "own")]
    write(sdk.home / "own/other/SKILL.md", SKILL)
    async with talking(sdk, [DONE] * 2, skill_directories=folders) as talk:
        skills = talk.session.rpc.skills
        await skills.disable(rpc.SkillsDisableRequest(name="sums"))
        await skills.enable(rpc.SkillsEnableRequest(name="nobody"))
        write(sdk.home / "own/sums/SKILL.md", SKILL)
        await skills.reload()
        listed = {one.name: one.enabled for one in (await skills.list()).skills}
        assert listed == {"other": True, "sums": False}
        await skills.enable(rpc.SkillsEnableRequest(name="sums"))
        assert all(one.enabled for one in (await skills.list()).skills)


async def test_agents_are_read_again(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], enable_config_discovery=True) as talk:
        agents = talk.session.rpc.agent
        before = {one.name for one in (await agents.list()).agents}
        write(sdk.home / "agents/ann.md", "---\ndescription: d\n---\nBe Ann.")
        after = {one.name for one in (await agents.reload()).agents}
        assert after - before == {"ann"}


async def test_plugins_are_installed_switched_updated_and_removed(sdk: Sdk, tmp_path: Path) -> None:
    source = make_plugin(tmp_path / "source")
    async with talking(sdk, [DONE] * 2, enable_config_discovery=True) as talk:
        plugins = talk.client.rpc.plugins
        done = await plugins.install(
            rpc.PluginsInstallRequest(source="source", working_directory=str(tmp_path))
        )
        assert (done.plugin.name, done.plugin.version, done.skills_installed) == ("tools", "1.0", 1)
        await talk.say("hi")
        assert "- one: from a plugin" in talk.system(0)
        (mine,) = (await talk.session.rpc.plugins.list()).plugins
        assert (mine.name, mine.enabled, mine.version) == ("tools", True, "1.0")
        make_plugin(source, "2.0")
        changed = await plugins.update(rpc.PluginsUpdateRequest(name="tools"))
        assert (changed.previous_version, changed.new_version) == ("1.0", "2.0")
        (result,) = (await plugins.update_all()).results
        assert result.success
        await plugins.disable(rpc.PluginsDisableRequest(names=["tools", "unknown"]))
        assert [one.enabled for one in (await plugins.list()).plugins] == [False]
        await talk.say("hi")
        assert "- one: from a plugin" not in talk.system(1)
        await plugins.enable(rpc.PluginsEnableRequest(names=["tools"]))
        await plugins.uninstall(rpc.PluginsUninstallRequest(name="tools"))
        assert (await plugins.list()).plugins == []


async def test_marketplaces_are_added_browsed_and_removed(sdk: Sdk, tmp_path: Path) -> None:
    offers = {"name": "market", "plugins": [{"name": "tools", "description": "d", "source": "t"}]}
    write(tmp_path / "market/marketplace.json", json.dumps(offers))
    make_plugin(tmp_path / "market/t")
    async with sdk.client() as client:
        places = client.rpc.plugins.marketplaces
        where = rpc.PluginsMarketplacesAddRequest(source=str(tmp_path / "market"))
        assert (await places.add(where)).name == "market"
        assert [one.name for one in (await places.list()).marketplaces] == ["market"]
        name = rpc.PluginsMarketplacesBrowseRequest(name="market")
        assert [one.name for one in (await places.browse(name)).plugins] == ["tools"]
        (fresh,) = (await places.refresh(rpc.PluginsMarketplacesRefreshRequest())).results
        assert fresh.success
        wanted = rpc.PluginsInstallRequest(source="tools@market")
        assert (await client.rpc.plugins.install(wanted)).plugin.marketplace == "market"
        refused = await places.remove(rpc.PluginsMarketplacesRemoveRequest(name="market"))
        assert (refused.removed, refused.dependent_plugins) == (False, ["tools"])
        forced = rpc.PluginsMarketplacesRemoveRequest(name="market", force=True)
        assert (await places.remove(forced)).removed
        assert (await client.rpc.plugins.list()).plugins == []
        assert not list(sdk.home.glob("installed-plugins/market/*"))


async def test_servers_of_the_person_are_configured(sdk: Sdk) -> None:
    async with sdk.client() as client:
        config = client.rpc.mcp.config
        stdio: Any = rpc.MCPSerializableServerConfig(command="db-server", args=["-x"])
        await config.add(rpc.MCPConfigAddRequest(name="db", config=stdio))
        changed: Any = rpc.MCPSerializableServerConfig(command="other", args=[])
        await config.update(rpc.MCPConfigUpdateRequest(name="db", config=changed))
        servers = (await config.list()).servers
        assert {name: one.command for name, one in servers.items()} == {"db": "other"}
        await config.disable(rpc.MCPConfigDisableRequest(names=["db"]))
        found = await client.rpc.mcp.discover(
            rpc.MCPDiscoverRequest(working_directory=str(sdk.cwd))
        )
        assert [(one.name, one.enabled, one.source.value) for one in found.servers] == [
            ("db", False, "user")
        ]
        await config.enable(rpc.MCPConfigEnableRequest(names=["db"]))
        await config.remove(rpc.MCPConfigRemoveRequest(name="db"))
        assert (await config.list()).servers == {}


async def test_a_server_that_cannot_be_started_is_listed_as_such(sdk: Sdk) -> None:
    write(sdk.home / "mcp-config.json", '{"mcpServers": {"db": {"command": "no-such"}}}')
    async with talking(sdk, [DONE], enable_config_discovery=True) as talk:
        await talk.say("hi")
        servers = (await talk.session.rpc.mcp.list()).servers
        (server,) = [one for one in servers if one.name != "github-mcp-server"]
        assert (server.name, server.status.value) == ("db", "failed")
        assert "no-such could not be started" in (server.error or "")
        running = await talk.session.rpc.mcp.is_server_running(
            rpc.MCPIsServerRunningRequest(server_name="db")
        )
        assert not running.running


async def test_the_flags_of_the_server_hold_for_every_session(sdk: Sdk) -> None:
    """A rule that a person gave the server must not be lost because a client opens the session."""
    flags = ["--deny-tool", "shell(touch)", "--excluded-tools", "glob", "--max-turns", "2"]
    connection = RuntimeConnection.for_stdio(path=TRIMTAB, args=flags)
    calls = [{"tools": [bash(f"touch {name}")]} for name in ("one", "two", "three")]
    async with talking(sdk, [*calls, "done"], connection=connection) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        kinds = [data.result.kind for data in talk.heard.of("permission.completed")]
        assert "glob" not in talk.tool_names(0)
        assert len(talk.server.requests) == 2
    assert kinds == ["denied-by-rules"] * 2
    assert list(sdk.cwd.iterdir()) == []


async def test_flags_about_one_session_are_refused_for_a_server(cli: Cli) -> None:
    for flags in (["--name", "x"], ["--session-id", "x"], ["--attachment", "x"], ["--resume"]):
        ran = await cli.run("--headless", "--stdio", *flags)
        assert ran.code == 2
        assert "cannot be used together" in ran.notes
