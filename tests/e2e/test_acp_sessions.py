"""Stored sessions, modes, options, commands and the plan, as an editor sees them."""

import json
from pathlib import Path
from typing import Any

import acp
import pytest

from acpkit import Link, connected
from clikit import Cli, bash, serving


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def shown(link: Link) -> list[Any]:
    """What a person sees of a conversation, without what depends on time."""
    calls = {
        call_id: {key: call.get(key) for key in ("title", "kind", "content", "status", "locations")}
        for call_id, call in link.editor.calls().items()
    }
    return [link.editor.text(), link.editor.text("agent_thought_chunk"), calls]


REPLIES = [
    {
        "reasoning": {"text": "Think."},
        "text": "Editing.",
        "tools": [
            {"name": "edit", "arguments": {"path": "a.txt", "old_str": "two", "new_str": "2"}}
        ],
    },
    {"tools": [bash("cat a.txt")]},
    {"tools": [{"name": "view", "arguments": {"path": "missing.txt"}}]},
    "Done.",
]


async def test_load_replays_what_was_shown_live(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_text("one\ntwo\n")
    async with serving(REPLIES) as server:
        cli.use(server)
        async with connected(cli) as link:
            await link.open()
            await link.say("Change it.")
            await link.say("/usage")
            live, session = shown(link), link.session
        async with connected(cli) as link:
            await link.agent.load_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            assert shown(link) == live
            assert link.editor.text("user_message_chunk") == "Change it./usage"
            order = [entry["update"]["sessionUpdate"] for entry in link.editor.updates]
            assert order[0] == "user_message_chunk"
            assert order.index("agent_message_chunk") < order.index("tool_call")


async def test_resume_replays_nothing_and_the_model_remembers(cli: Cli) -> None:
    async with serving(["first", "second"]) as server:
        cli.use(server)
        async with connected(cli) as link:
            await link.open()
            await link.say("remember me")
            session = link.session
        async with connected(cli) as link:
            await link.agent.resume_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            assert link.editor.text() == ""
            link.session = session
            assert await link.say("again") == "end_turn"
            assert link.editor.text() == "second"
        assert "remember me" in str(server.requests[-1].json["messages"])


async def test_ids_of_calls_stay_unique_when_a_model_repeats_them(cli: Cli) -> None:
    call = {"name": "bash", "id": "same", "arguments": {"command": "true", "description": "x"}}
    async with serving([{"tools": [call]}, "a", {"tools": [call]}, "b"]) as server:
        cli.use(server)
        async with connected(cli) as link:
            await link.open()
            await link.say()
            session = link.session
        async with connected(cli) as link:
            await link.agent.resume_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            link.session = session
            await link.say()
            assert list(link.editor.calls()) == ["same (2)"]


async def test_sessions_are_those_of_the_command_line(cli: Cli) -> None:
    async with serving(["one", "two", "three"]) as server:
        cli.use(server)
        await cli.run("-p", "from the shell")
        async with connected(cli) as link:
            listed = await link.agent.list_sessions(cwd=str(cli.cwd))
            [summary] = listed.sessions
            assert summary.title == "from the shell"
            await link.agent.load_session(
                cwd=str(cli.cwd), session_id=summary.session_id, mcp_servers=[]
            )
            assert link.editor.text() == "one"
            link.session = summary.session_id
            await link.say("from the editor")
        outcome = await cli.run("-p", "again", f"--resume={summary.session_id}")
        assert outcome.code == 0
        assert "from the editor" in str(server.requests[-1].json["messages"])


async def test_list_knows_only_the_folder_that_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    async with connected(cli) as link:
        await link.open()
        elsewhere = await link.agent.list_sessions(cwd=str(tmp_path))
        assert elsewhere.sessions == []


async def test_fork_gives_a_copy_that_goes_its_own_way(cli: Cli) -> None:
    async with serving(["first", "copy", "original"]) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say("hello")
        original = link.session
        forked = await link.agent.fork_session(cwd=str(cli.cwd), session_id=original)
        assert forked.session_id != original
        link.session = forked.session_id
        await link.say("in the copy")
        assert "hello" in str(server.requests[-1].json["messages"])
        link.session = original
        await link.say("in the original")
        assert "in the copy" not in str(server.requests[-1].json["messages"])


async def test_a_closed_session_can_be_loaded_and_a_deleted_one_cannot(cli: Cli) -> None:
    async with serving(["first"]) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say("hello")
        await link.agent.close_session(session_id=link.session)
        with pytest.raises(acp.RequestError) as refused:
            await link.say("again")
        assert refused.value.code == -32002
        await link.agent.load_session(cwd=str(cli.cwd), session_id=link.session, mcp_servers=[])
        await link.call("session/delete", sessionId=link.session)
        with pytest.raises(acp.RequestError) as refused:
            await link.agent.load_session(cwd=str(cli.cwd), session_id=link.session, mcp_servers=[])
        assert refused.value.code == -32002
        assert (await link.agent.list_sessions()).sessions == []


async def test_modes_and_options_stay_in_step(cli: Cli) -> None:
    async with serving(["unused"]) as server, connected(cli.use(server)) as link:
        opened = await link.open()
        assert opened.modes.current_mode_id == "interactive"
        await link.agent.set_session_mode(session_id=link.session, mode_id="plan")
        assert option(link.editor.of("config_option_update")[-1]["configOptions"], "mode") == "plan"
        answer = await link.agent.set_config_option(
            session_id=link.session, config_id="mode", value="autopilot"
        )
        options = [entry.model_dump(by_alias=True) for entry in answer.config_options]
        assert option(options, "mode") == "autopilot"
        await link.say("/mode interactive")
        modes = [update["currentModeId"] for update in link.editor.of("current_mode_update")]
        assert modes == ["plan", "autopilot", "interactive"]
        last = link.editor.of("config_option_update")[-1]["configOptions"]
        assert option(last, "mode") == "interactive"


def option(options: list[dict[str, Any]], name: str) -> Any:
    [found] = [entry for entry in options if entry["id"] == name]
    return found["currentValue"]


async def test_the_models_of_the_service_follow_the_answer(cli: Cli) -> None:
    supports = {"reasoning_effort": ["low", "high"]}
    big = {"id": "big", "capabilities": {"supports": supports}}
    script = {"replies": ["hello"], "models": ["scripted", big]}
    async with serving(script) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.editor.until(lambda: "big" in str(link.editor.of("config_option_update")))
        await link.agent.set_config_option(session_id=link.session, config_id="model", value="big")
        last = link.editor.of("config_option_update")[-1]["configOptions"]
        assert option(last, "model") == "big"
        assert option(last, "reasoning_effort") == "default"
        await link.agent.set_config_option(
            session_id=link.session, config_id="reasoning_effort", value="high"
        )
        await link.say()
        assert server.requests[-1].json["model"] == "big"
        assert server.requests[-1].json["reasoning_effort"] == "high"


async def test_allow_all_is_an_option_that_ends_the_questions(cli: Cli) -> None:
    replies = [{"tools": [bash("touch a")]}, "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.agent.set_config_option(
            session_id=link.session, config_id="allow_all", value="on"
        )
        await link.say()
        assert link.editor.asked == []
        assert (cli.cwd / "a").exists()


async def test_an_agent_is_an_option(cli: Cli) -> None:
    folder = cli.home / "agents"
    folder.mkdir()
    (folder / "poet.md").write_text("---\ndescription: Writes verse\n---\nAlways rhyme.\n")
    async with serving(["verse"]) as server, connected(cli.use(server)) as link:
        opened = await link.open()
        assert "poet" in opened.model_dump_json()
        await link.agent.set_config_option(session_id=link.session, config_id="agent", value="poet")
        await link.say()
        assert "Always rhyme." in str(server.requests[-1].json["messages"][0])


async def test_leaving_plan_mode_is_asked_with_the_plan(cli: Cli) -> None:
    replies = [
        use("exit_plan_mode", summary="The plan is simple", actions=["interactive"]),
        "carrying it out",
    ]
    async with serving(replies) as server, connected(cli.use(server), "--plan") as link:
        opened = await link.open()
        assert opened.modes.current_mode_id == "plan"
        link.editor.permission = "interactive"
        await link.say()
        [question] = link.editor.asked
        assert question["toolCall"]["kind"] == "switch_mode"
        assert "The plan is simple" in str(question["toolCall"]["content"])
        assert link.editor.of("current_mode_update")[-1]["currentModeId"] == "interactive"


async def test_commands_and_skills_are_advertised_as_they_change_and_run(cli: Cli) -> None:
    async with serving(["skill done", "plain"]) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.editor.until(lambda: link.editor.of("available_commands_update"))
        names = advertised(link)
        assert {"context", "compact", "undo"} <= names
        assert not {"exit", "clear"} & names
        await link.say("/context")
        assert "tokens" in link.editor.text()
        assert server.requests == []
        skill = cli.home / "skills" / "greet"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            "---\nname: greet\ndescription: Greets\n---\nSay hello in Greek.\n"
        )
        await link.say("hello")
        assert "greet" in advertised(link)
        await link.say("/greet now")
        assert "Say hello in Greek." in str(server.requests[-1].json["messages"])


def advertised(link: Link) -> set[str]:
    last = link.editor.of("available_commands_update")[-1]
    return {command["name"] for command in last["availableCommands"]}


async def test_an_unknown_command_is_refused_with_the_nearest_name(cli: Cli) -> None:
    async with serving([]) as server, connected(cli.use(server)) as link:
        await link.open()
        with pytest.raises(acp.RequestError, match="did you mean /context") as refused:
            await link.say("/contxt")
        assert refused.value.code == -32602
        assert server.requests == []


async def test_the_todo_list_is_a_plan_that_is_sent_whole(cli: Cli) -> None:
    insert = "INSERT INTO todos (id, title, status) VALUES ('a','Buy','pending'),('b','Eat','done')"
    replies = [
        use("sql", query=insert, description="add"),
        use("sql", query="UPDATE todos SET status='in_progress' WHERE id='a'", description="x"),
        "done",
    ]
    async with serving(replies) as server:
        cli.use(server)
        async with connected(cli) as link:
            await link.open()
            await link.say()
            plans = [plan["entries"] for plan in link.editor.of("plan")]
            states = [[entry["status"] for entry in entries] for entries in plans]
            assert states[0] == ["pending", "completed"]
            assert states[-1] == ["in_progress", "completed"]
            session = link.session
        async with connected(cli) as link:
            await link.agent.load_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            assert len(link.editor.of("plan")[-1]["entries"]) == 2


async def test_usage_cost_and_title_are_told(cli: Cli) -> None:
    prices = cli.home / "providers.json"
    async with serving([{"text": "hi", "usage": {"input": 1000, "output": 500}}]) as server:
        cli.use(server)
        del cli.env["COPILOT_PROVIDER_BASE_URL"], cli.env["COPILOT_MODEL"]
        model = {"id": "m", "provider": "p", "price": {"input": 1.0, "output": 2.0}}
        registry = {
            "providers": [{"name": "p", "baseUrl": server.base_url, "defaultModel": "m"}],
            "models": [{**model, "maxContextWindowTokens": 32_000}],
            "default": "p/m",
        }
        prices.write_text(json.dumps(registry))
        async with connected(cli) as link:
            await link.open()
            await link.say("A title for it")
            usage = link.editor.of("usage_update")[-1]
            assert usage["size"] == 32_000
            assert usage["cost"] == {"amount": 0.002, "currency": "USD"}
            assert link.editor.of("session_info_update")[-1]["title"] == "A title for it"


async def test_sessions_work_side_by_side_each_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    script = {
        "replies": [
            {"when": {"last": "one"}, "tools": [bash("pwd > where")]},
            {"when": {"last": "two"}, "tools": [bash("pwd > where")]},
        ],
        "otherwise": "done",
    }
    folders = [tmp_path / name for name in ("one", "two")]
    async with serving(script) as server, connected(cli.use(server), "--allow-all") as link:
        sessions = []
        for folder in folders:
            folder.mkdir()
            await link.open(cwd=str(folder))
            sessions.append(link.session)
        for session, folder in zip(sessions, folders, strict=True):
            link.session = session
            await link.say(folder.name)
        for folder in folders:
            assert (folder / "where").read_text().strip() == str(folder)
