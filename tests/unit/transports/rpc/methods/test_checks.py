"""Catalogues, exclusions, sandbox and other questions, over the official client."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from copilot.generated import rpc

from customizekit import write
from sdkkit import Sdk, talking_here

DONE = {"text": "Done."}
TASK = {"name": "s", "description": "d", "prompt": "p"}


async def test_commands_are_listed_without_a_session(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        listed = (await talk.client.rpc.commands.list()).commands
        found = {command.name: command for command in listed}
        assert found["help"].allow_during_agent_execution
        assert found["add-dir"].input.hint == "PATH"
        own = {command.name for command in (await talk.session.rpc.commands.list()).commands}
        assert set(found) <= own


async def test_hooks_are_discovered_where_they_are(sdk: Sdk) -> None:
    hook = {"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "true"}]}}
    write(sdk.home / "hooks/mine.json", json.dumps(hook))
    write(sdk.cwd / ".github/hooks/theirs.json", json.dumps(hook))
    async with talking_here(sdk, []) as talk:

        async def discover(**params: Any) -> list[tuple[str, bool]]:
            found = await talk.client.rpc.hooks.discover(rpc.HooksDiscoverRequest(**params))
            return [(entry.origin.value, entry.enabled) for entry in found.hooks]

        assert await discover() == [("user", True)]
        project = [str(sdk.cwd)]
        assert await discover(project_paths=project) == [("user", True), ("repository", False)]
        only = await discover(project_paths=project, exclude_host_hooks=True)
        assert only == [("repository", False)]


async def test_excluded_files_and_the_sandbox_are_reported(sdk: Sdk) -> None:
    write(sdk.home / "settings.json", json.dumps({"permissions": {"deny": ["read(secret.txt)"]}}))
    async with talking_here(sdk, []) as talk:
        paths = [str(sdk.cwd / "secret.txt"), str(sdk.cwd / "a.txt")]
        check = talk.session.rpc.content_exclusion.check_paths
        found = await check(rpc.ContentExclusionCheckPathsRequest(paths=paths))
        assert found.available
        assert [one.excluded for one in found.checks] == [True, False]
        outside = await check(rpc.ContentExclusionCheckPathsRequest(paths=["/etc/passwd"]))
        assert (outside.available, outside.checks) == (False, [])
        support = await talk.client.rpc.sandbox.get_host_support()
        assert support.supported is (support.reason is None)
        managed = await talk.session.rpc.managed_settings.get()
        assert managed.managed_keys == []


async def test_a_skill_is_disabled_for_later_sessions(sdk: Sdk) -> None:
    write(sdk.home / "settings.json", json.dumps({"disabledSkills": ["knots"]}))
    async with talking_here(sdk, []) as talk:
        config = talk.client.rpc.skills.config
        for name, disabled in (("sails", True), ("knots", False), ("sails", True)):
            await config.set_skill_disabled(
                rpc.SkillsConfigSetSkillDisabledRequest(name=name, disabled=disabled)
            )
        settings = json.loads((sdk.home / "settings.json").read_text())
        assert settings["disabledSkills"] == ["sails"]


async def test_an_agent_gets_another_prompt_in_a_session(sdk: Sdk) -> None:
    task, mate = (
        {"tools": [{"name": "task", "arguments": {**TASK, "agent_type": name}}]}
        for name in ("explore", "mate")
    )
    agents: Any = [{"name": "mate", "description": "Helps.", "prompt": "Help."}]
    async with talking_here(sdk, [task, DONE, mate, DONE, DONE], custom_agents=agents) as talk:
        agent = talk.session.rpc.agent
        for name in ("explore", "mate"):
            await agent.set_prompt(rpc.AgentSetPromptRequest(id=name, prompt=f"Be a {name} cat."))
        await talk.say("go")
        systems = [talk.system(number) for number in range(5)]
        assert "Be a explore cat." in systems[1]
        assert "Be a mate cat." in systems[3]
        for name, reason in (("general-purpose", "does not have"), ("nope", "not available")):
            with pytest.raises(Exception, match=reason):
                await agent.set_prompt(rpc.AgentSetPromptRequest(id=name, prompt="x"))


async def test_customizations_are_read_again_on_request(sdk: Sdk) -> None:
    async with talking_here(sdk, [], enable_config_discovery=True) as talk:
        write(sdk.cwd / "AGENTS.md", "Be brief.")
        write(sdk.home / "skills/knots/SKILL.md", "---\ndescription: Knots.\n---\nTie.")
        sources = (await talk.session.rpc.instructions.reload()).sources
        assert [source.content for source in sources] == ["Be brief."]
        done = await talk.session.rpc.customizations.reload()
        states = {outcome.subsystem.value: outcome.status.value for outcome in done.outcomes}
        assert (states["skills"], states["hooks"]) == ("reloaded", "skipped")
        assert [skill.name for skill in (await talk.session.rpc.skills.list()).skills] == ["knots"]


async def test_plugins_are_managed_through_a_session_too(sdk: Sdk, tmp_path: Path) -> None:
    write(tmp_path / "source/plugin.json", json.dumps({"name": "tools", "version": "1.0"}))
    async with talking_here(sdk, [], enable_config_discovery=True) as talk:
        plugins = talk.session.rpc.plugins
        await plugins.install(rpc.SessionPluginsInstallRequest(source=str(tmp_path / "source")))
        await plugins.disable(rpc.SessionPluginsDisableRequest(names=["tools"]))
        (mine,) = (await talk.client.rpc.plugins.list()).plugins
        assert (mine.name, mine.enabled) == ("tools", False)
        await plugins.enable(rpc.SessionPluginsEnableRequest(names=["tools"]))
        updated = await plugins.update(rpc.PluginsUpdateRequest(name="tools"))
        assert updated.new_version == "1.0"
        assert (await plugins.marketplaces.list()).marketplaces == []
        await plugins.uninstall(rpc.PluginsUninstallRequest(name="tools"))
        assert (await talk.client.rpc.plugins.list()).plugins == []


async def test_a_marketplace_describes_plugins_without_a_file_of_their_own(
    sdk: Sdk, tmp_path: Path
) -> None:
    entry = {"name": "rope", "source": "./rope", "version": "1.0", "strict": False}
    content = {"name": "dock", "owner": {"name": "o"}, "plugins": [entry]}
    write(tmp_path / "market/.claude-plugin/marketplace.json", json.dumps(content))
    write(tmp_path / "market/rope/skills/knots/SKILL.md", "---\ndescription: Knots.\n---\nTie.")
    write(tmp_path / "direct/plugin.json", json.dumps({"name": "direct"}))
    async with talking_here(sdk, [], enable_config_discovery=True) as talk:
        plugins = talk.client.rpc.plugins
        added = await plugins.marketplaces.add(
            rpc.PluginsMarketplacesAddRequest(source=str(tmp_path / "market"))
        )
        assert added.name == "dock"
        done = await plugins.install(rpc.PluginsInstallRequest(source="rope@dock"))
        assert (done.plugin.name, done.plugin.version, done.skills_installed) == ("rope", "1.0", 1)
        assert done.deprecation_warning is None
        updated = await plugins.update(rpc.PluginsUpdateRequest(name="rope@dock"))
        assert updated.new_version == "1.0"
        direct = await plugins.install(rpc.PluginsInstallRequest(source=str(tmp_path / "direct")))
        assert "deprecated" in direct.deprecation_warning
        await talk.session.rpc.plugins.reload()
        assert [skill.name for skill in (await talk.session.rpc.skills.list()).skills] == ["knots"]


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack with tar: Python's own way differs between its versions."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    return folder


@pytest.mark.parametrize("kind", ["archive", "directory"])
async def test_logs_are_collected_without_secrets(sdk: Sdk, tmp_path: Path, kind: str) -> None:
    secret = "gho_" + "s3cr3t" * 6
    write(tmp_path / "extra/app.log", f"token {secret}\n")
    target = tmp_path / "bundle"
    where = {"archive": "outputPath", "directory": "outputDirectory"}[kind]
    request = rpc.DebugCollectLogsRequest.from_dict(
        {
            "destination": {"kind": kind, where: str(target)},
            "additionalEntries": [
                {"kind": "directory", "path": str(tmp_path / "extra"), "bundlePath": "app"},
                {"kind": "file", "path": str(tmp_path / "none"), "bundlePath": "none.log"},
            ],
        }
    )
    async with talking_here(sdk, [DONE]) as talk:
        await talk.say("hello")
        done = await talk.session.rpc.debug.collect_logs(request)
        assert [entry.bundle_path for entry in done.entries] == ["events.jsonl", "app/app.log"]
        assert [entry.bundle_path for entry in done.skipped_entries] == ["none.log"]
        if kind == "archive":
            target = unpack(target, tmp_path / "out")
        assert b'"hello"' in (target / "events.jsonl").read_bytes()
        assert secret not in (target / "app/app.log").read_text()
        for bundle_path in ("../x", "/x", "events.jsonl"):
            bad = {"kind": "file", "path": "/etc/hostname", "bundlePath": bundle_path}
            entry = rpc.DebugCollectLogsEntry.from_dict(bad)
            wrong = rpc.DebugCollectLogsRequest(
                destination=request.destination, additional_entries=[entry]
            )
            with pytest.raises(Exception, match="is not a name in the bundle"):
                await talk.session.rpc.debug.collect_logs(wrong)


async def test_what_does_not_exist_here_is_answered_as_nothing(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        assert (await talk.session.rpc.autopilot_objective.get_state()).state is None
        assert not (await talk.session.rpc.mcp.move_loading_to_background()).moved_to_background
        assert not (await talk.session.rpc.sandbox.get_enforcement_status()).required
        assert await talk.session.rpc.quota.take_warnings() == []
        assert (await talk.client.rpc.models.get_built_in_catalog()).models == []
        assert (await talk.client.rpc.extensions.discover()).extensions == []
        assert (await talk.client.rpc.managed_settings.read()).settings_json is None
        await talk.client.rpc.managed_settings.clear_cache()
        answer = await talk.session.rpc.mcp.oauth.respond(rpc.MCPOauthRespondRequest("gone"))
        assert not answer.success
        about = {"sessionId": talk.session.session_id}
        snapshot = await talk.client._client.request("session.queue.snapshot", about)
        assert snapshot == {"items": [], "steeringMessages": []}
        settings = await talk.session.rpc.tools.get_subagent_settings()
        assert settings.subagents is None
        request = rpc.ToolsGetBuiltinDescriptorsRequest()
        tools = (await talk.session.rpc.tools.get_builtin_descriptors(request)).tools
        assert "bash" in {tool.name for tool in tools}
