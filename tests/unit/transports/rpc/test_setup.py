"""Options of `session.create` and `session.resume`, as the official client sends them."""

import json
from pathlib import Path
from typing import Any

import pytest
from copilot import CopilotClient
from copilot.client import ManagedSettings, ManagedSettingsPermissions
from copilot.generated import rpc
from copilot.session import PermissionHandler

from customizekit import write
from githubkit import TOKEN
from sdkkit import LIMIT, Sdk, listening, serving, talking_here, use
from trimtab.config.paths import Home
from trimtab.config.trust import Trust

DONE = {"text": "Done."}
ASK = PermissionHandler.approve_all


def make_plugin(root: Path, name: str) -> Path:
    write(root / "plugin.json", json.dumps({"name": name}))
    write(root / f"skills/{name}-skill/SKILL.md", f"---\ndescription: of {name}\n---\nBody.\n")
    write(root / f"agents/{name}-agent.md", f"---\ndescription: of {name}\n---\nBe it.\n")
    return root


def make_hook(folder: Path, reason: str) -> Path:
    answer = json.dumps({"permissionDecision": "deny", "permissionDecisionReason": reason})
    hook = {"type": "command", "bash": f"echo '{answer}'"}
    write(folder / "guard.json", json.dumps({"version": 1, "hooks": {"preToolUse": [hook]}}))
    return folder


async def test_folders_that_a_client_names_count_without_discovery(
    sdk: Sdk, tmp_path: Path
) -> None:
    write(sdk.cwd / "crew/mate.md", "---\ndescription: Helps.\n---\nHelp.\n")
    hooks = make_hook(tmp_path / "hooks", "not today")
    plugin = make_plugin(tmp_path / "plugin", "rope")
    async with talking_here(
        sdk,
        [use("bash", command="true", description="x"), DONE],
        agent_directories=["crew"],
        hook_directories=[str(hooks)],
        plugin_directories=[str(plugin)],
    ) as talk:
        assert await talk.say("go") == "Done."
        assert talk.tool_results() == ["Denied by preToolUse hook: not today"]
        assert "- rope-skill: of rope" in talk.system()
        (task,) = [
            tool["function"]
            for tool in talk.server.requests[0].json["tools"]
            if tool["function"]["name"] == "task"
        ]
        assert "mate" in json.dumps(task)
        assert "rope-agent" in json.dumps(task)


async def test_folders_given_on_resume_count_as_on_create(sdk: Sdk, tmp_path: Path) -> None:
    hooks = make_hook(tmp_path / "hooks", "still not")
    call = use("bash", command="true", description="x")
    async with talking_here(sdk, [DONE, call, DONE]) as talk:
        await talk.say("one")
        await talk.session.disconnect()
        session = await talk.client.resume_session(
            talk.session.session_id,
            on_permission_request=ASK,
            hook_directories=[str(hooks)],
            plugin_directories=[str(make_plugin(tmp_path / "plugin", "rope"))],
        )
        await session.send_and_wait("two", timeout=LIMIT)
        assert talk.tool_results() == ["Denied by preToolUse hook: still not"]
        assert "- rope-skill: of rope" in talk.system()
        again = await talk.client.resume_session(
            talk.session.session_id,
            on_permission_request=ASK,
            plugin_directories=[str(make_plugin(tmp_path / "other", "sail"))],
            enable_skills=True,
        )
        names = {skill.name for skill in (await again.rpc.skills.list()).skills}
        assert names == {"rope-skill", "sail-skill"}


async def test_plugins_that_a_program_brings_serve_all_its_sessions(
    sdk: Sdk, tmp_path: Path
) -> None:
    plugin = make_plugin(tmp_path / "plugin", "rope")
    async with serving([DONE]) as server:
        sdk.use(server)
        async with listening(sdk) as connection:
            sdk.watch()
            launcher: Any = print  # never called, since there are no extensions
            client = CopilotClient(
                connection=connection,
                builtin_plugin_directories=[str(plugin)],
                extension_launch_provider=launcher,
            )
            await client.start()
            session = await client.create_session(on_permission_request=ASK)
            names = [skill.name for skill in (await session.rpc.skills.list()).skills]
            assert names == ["rope-skill"]
            with pytest.raises(Exception, match="while sessions are active"):
                await client.rpc.plugins.builtin.set(rpc.PluginsBuiltinSetRequest([str(plugin)]))
            await session.disconnect()
            with pytest.raises(Exception, match="must be an absolute path"):
                await client.rpc.plugins.builtin.set(rpc.PluginsBuiltinSetRequest(["plugin"]))
            await client.rpc.plugins.builtin.set(rpc.PluginsBuiltinSetRequest([]))
            other = await client.create_session(on_permission_request=ASK)
            assert (await other.rpc.skills.list()).skills == []
            await client.stop()


async def test_a_client_switches_skills_hooks_and_instructions_off(sdk: Sdk) -> None:
    write(sdk.home / "skills/knots/SKILL.md", "---\ndescription: Knots.\n---\nTie.\n")
    write(sdk.cwd / ".github/instructions/py.instructions.md", '---\napplyTo: "*.py"\n---\nPEP 8.')
    write(sdk.cwd / "a.py", "x = 1\n")
    make_hook(sdk.cwd / ".github/hooks", "the folder says no")
    view = use("view", path=str(sdk.cwd / "a.py"))
    options: dict[str, Any] = {
        "enable_config_discovery": True,
        "trust_working_directory": "session",
        "skill_directories": [str(sdk.home / "skills")],
    }
    async with talking_here(sdk, [view, DONE, view, DONE], **options) as talk:
        await talk.say("go")
        assert "- knots" in talk.system()
        assert talk.tool_results() == ["Denied by preToolUse hook: the folder says no"]
        other = await talk.client.create_session(
            on_permission_request=ASK,
            working_directory=str(sdk.cwd),
            enable_skills=False,
            enable_file_hooks=False,
            enable_on_demand_instruction_discovery=False,
            **options,
        )
        await other.send_and_wait("go", timeout=LIMIT)
        assert "- knots" not in talk.system()
        assert "1. x = 1" in talk.tool_results()[-1]
        assert "PEP 8" not in json.dumps(talk.shown())


async def test_a_folder_is_trusted_for_a_session_or_for_good(sdk: Sdk) -> None:
    home = Home(config=str(sdk.home), state=str(sdk.home))
    async with talking_here(sdk, [], trust_working_directory="session") as talk:
        assert not Trust(home).is_trusted(str(sdk.cwd))
        await talk.client.create_session(
            on_permission_request=ASK,
            working_directory=str(sdk.cwd),
            trust_working_directory="user",
        )
        assert Trust(home).is_trusted(str(sdk.cwd))


async def test_autopilot_goes_on_as_often_as_the_client_says(sdk: Sdk) -> None:
    options: dict[str, Any] = {"autopilot": {"continuation_enabled": False}}
    async with talking_here(sdk, [DONE] * 5, **options) as talk:
        await talk.say("go", agent_mode="autopilot")
        assert len(talk.server.requests) == 1
        more = rpc.SessionUpdateOptionsParams(
            autopilot=rpc.AutopilotOptions(continuation_enabled=True, max_continues=2)
        )
        await talk.session.rpc.options.update(more)
        await talk.say("go on")
        assert len(talk.server.requests) == 4


async def test_options_without_effect_are_reported(sdk: Sdk) -> None:
    async with talking_here(
        sdk, [], config_directory="/elsewhere", ask_user_variant="elicitation"
    ) as talk:
        await talk.heard.until("session.warning", 2)
        told = [warning.message for warning in talk.heard.of("session.warning")]
        assert ["configDir" in told[0], "askUserVariant" in told[1]] == [True, True]


async def test_a_policy_that_cannot_be_applied_is_refused(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        rules = ManagedSettingsPermissions(deny=["Shell(rm *)"])
        given: list[dict[str, Any]] = [
            {"managed_settings": ManagedSettings(permissions=rules)},
            {"enable_managed_settings": True, "github_token": TOKEN},
        ]
        for options in given:
            with pytest.raises(Exception, match="Managed settings cannot be applied here"):
                await talk.client.create_session(**options)


async def test_a_disabled_server_is_not_started(sdk: Sdk) -> None:
    servers: Any = {"sea": {"type": "local", "command": "/no/such", "args": [], "tools": ["*"]}}
    async with talking_here(sdk, [DONE], mcp_servers=servers, disabled_mcp_servers=["sea"]) as talk:
        await talk.say("go")
        (server,) = (await talk.session.rpc.mcp.list()).servers
        assert server.status.value == "disabled"
