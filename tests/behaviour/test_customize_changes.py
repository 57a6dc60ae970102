"""What people change about the agent while a session lives is used from the next prompt on."""

from pathlib import Path

from customizekit import write
from livekit import opened

HELLO = ["one", "two", "three", "four"]


async def test_changed_instructions_reach_the_next_prompt_by_an_event(tmp_path: Path) -> None:
    file = write(tmp_path / "AGENTS.md", "Prices are in cents.")
    async with opened(tmp_path, HELLO) as (live, watch, provider):
        await live.ask("a")
        await live.ask("b")
        assert len(watch.of("system.message")) == 1, "nothing changed"
        write(file, "Prices are in euros, always.")
        await live.ask("c")
        file.unlink()
        await live.ask("d")
        told = [one.content for one in watch.of("system.message")]
        sent = [request.system for request in provider.requests]
    assert len(told) == 3
    assert sent == [told[0], told[0], told[1], told[2]]
    assert "in cents" in told[0]
    assert "in euros" in told[1]
    assert "Prices" not in told[2]


async def test_a_skill_that_is_added_can_be_used_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path, HELLO, trust_folder=True) as (live, watch, provider):
        await live.ask("a")
        text = "---\ndescription: deploys\n---\nRun make deploy."
        write(tmp_path / ".github/skills/deploy/SKILL.md", text)
        await live.ask("/deploy now")
        loaded = [[s["name"] for s in one.skills] for one in watch.of("session.skills_loaded")]
        asked = provider.requests[1]
    assert loaded == [[], ["deploy"]]
    assert "- deploy: deploys" in asked.system
    assert "skill" in [tool.name for tool in asked.tools]
    assert "Run make deploy." in str(asked.messages[-1])


async def test_a_changed_agent_speaks_by_its_new_text(tmp_path: Path) -> None:
    from trimtab.contracts.options import CustomizationOptions

    head = "---\ndescription: d\ntools: ['*']\n---\n"
    file = write(tmp_path / ".github/agents/ann.md", head + "Be Ann.")
    chosen = CustomizationOptions(agent="ann")
    session = opened(tmp_path, HELLO, trust_folder=True, customize=chosen)
    async with session as (live, _, provider):
        await live.ask("a")
        write(file, head + "Be Ann, and kind.")
        await live.ask("b")
        first, second = (request.system for request in provider.requests)
    assert "Be Ann." in first
    assert "Be Ann, and kind." in second


async def test_rules_servers_and_plugins_are_watched(tmp_path: Path) -> None:
    async with opened(tmp_path, HELLO, trust_folder=True) as (live, watch, provider):
        await live.ask("a")
        write(tmp_path / ".claude/rules/deep/all.md", "Always be kind.")
        server = '{"mcpServers": {"db": {"command": "db"}}}'
        write(tmp_path / ".mcp.json", server)
        await live.ask("b")
        servers = [
            [one["name"] for one in told.servers] for told in watch.of("session.mcp_servers_loaded")
        ]
        systems = [request.system for request in provider.requests]
    assert servers == [[], ["db"]]
    assert "Always be kind." not in systems[0]
    assert "Always be kind." in systems[1]


async def test_hooks_stay_as_they_were_and_an_event_says_so(tmp_path: Path) -> None:
    hook = '{"version": 1, "hooks": {"userPromptSubmitted": [{"type": "command", "bash": "%s"}]}}'
    file = write(tmp_path / ".github/hooks/a.json", hook % "touch first")
    async with opened(tmp_path, HELLO, trust_folder=True) as (live, watch, _):
        await live.ask("a")
        write(file, hook % "touch second")
        await live.ask("b")
        await live.ask("c")
        told = [one.message for one in watch.of("session.warning")]
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "second").exists()
    assert len(told) == 1
    assert told[0].startswith(f"{file} changed; the hooks of this session stay as they were.")


async def test_other_settings_in_the_files_of_hooks_may_change_in_silence(tmp_path: Path) -> None:
    hook = '{"version": 1, "hooks": {"agentStop": [{"type": "command", "bash": "true"}]}%s}'
    file = write(tmp_path / ".github/hooks/a.json", hook % "")
    async with opened(tmp_path, HELLO, trust_folder=True) as (live, watch, _):
        settings = write(Path(live.folder.path).parents[1] / "settings.json", hook % "")
        await live.ask("a")
        write(settings, hook % ', "disabledSkills": ["x"]')
        write(file, "// the same\n" + hook % "")
        await live.ask("b")
        assert watch.of("session.warning") == []
        write(settings, '{"disableAllHooks": true}')
        await live.ask("c")
        (told,) = watch.of("session.warning")
    assert told.warning_type == "hooks_changed"
    assert told.message.startswith(f"{settings} changed;")


async def test_settings_that_break_while_a_session_lives_stay_as_they_were(tmp_path: Path) -> None:
    async with opened(tmp_path, HELLO) as (live, watch, provider):
        settings = write(Path(live.folder.path).parents[1] / "settings.json", "{}")
        write(settings.parent / "skills/deploy/SKILL.md", "---\ndescription: deploys\n---\nx")
        write(settings, '{"disabledSkills": ["deploy"]}')
        await live.ask("a")
        write(settings, '{"disabledSkills": [\n"deploy"')
        await live.ask("b")
        write(settings, "{} // corrected")
        await live.ask("c")
        told = [one.message for one in watch.of("session.warning")]
    assert ["deploys" in request.system for request in provider.requests] == [False, False, True]
    (message,) = [one for one in told if "its last good copy is used" in one]
    assert "settings.json:2: " in message
