"""Slash commands that hand work to the model, copy the session, or choose an agent or a setting."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from livekit import Watch, opened
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.commands.absent import ABSENT
from trimtab.commands.table import ALIASES, COMMANDS
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import Client, LimitOptions
from trimtab.testing import Script, ScriptedProvider
from trimtab.testing.playing import ALLOW_ALL


@asynccontextmanager
async def talking(folder: Path, replies: Any) -> AsyncIterator[tuple[LiveSession, Watch, Any]]:
    """Open a session that a person follows."""
    provider, watch = ScriptedProvider(Script.of(replies)), Watch()
    env = {"COPILOT_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    runtime = Runtime(env=env, provider=provider)
    (folder / "work").mkdir(exist_ok=True)
    options = SessionOptions(cwd=str(folder / "work"), permissions=ALLOW_ALL)
    live = await runtime.create(options, Client(on_event=watch.on_event, attended=True))
    try:
        yield live, watch, provider
    finally:
        await live.close()


async def test_a_question_beside_the_conversation_does_not_become_part_of_it(
    tmp_path: Path,
) -> None:
    replies = ["Four.", "It is the sum.", "Six."]
    async with opened(tmp_path, replies) as (live, watch, provider):
        await live.ask("two and two?")
        before = list(live.projections.conversation.messages)
        assert await live.run_command("/btw why four?") == "It is the sum."
        assert list(live.projections.conversation.messages) == before
        await live.ask("and two more?")
        aside, last = provider.requests[1:]
        calls = [call.purpose for call in watch.of("trimtab.model_call")]
    assert "why four?" in str(aside.messages[-1])
    assert "two and two?" in str(aside.messages)
    assert aside.tool_choice == "none"
    assert "why four?" not in str(last.messages)
    assert "It is the sum." not in str(last.messages)
    assert calls == ["main", "aside", "main"]


async def test_a_question_is_answered_while_a_command_runs(tmp_path: Path) -> None:
    replies = [
        {"when": "wait", "tools": [bash("until [ -e go ]; do sleep 0.02; done")]},
        {"when": "what is it doing", "text": "It waits for a file."},
        "Done.",
    ]
    async with opened(tmp_path, replies) as (live, watch, _):
        live.send("wait")
        await watch.saw("tool.execution_start")
        assert await live.run_command("/ask what is it doing?") == "It waits for a file."
        (tmp_path / "go").touch()
        await live.finished()
        assert live.answer == "Done."


async def test_a_question_counts_towards_the_budget(tmp_path: Path) -> None:
    usage = {"input": 900, "output": 100}
    async with opened(tmp_path, [{"text": "one", "usage": usage}, "never"]) as (live, _, provider):
        await live.ask("first")
        await live.ask("/limits tokens 1100")
        with pytest.raises(Exception, match="budget is too small"):
            await live.run_command("/ask more?")
        assert len(provider.requests) == 1


async def test_a_session_is_written_into_a_new_file_of_the_wanted_format(tmp_path: Path) -> None:
    async with talking(tmp_path, ["Hello there."]) as (live, _, _):
        await live.ask("hi")
        work = tmp_path / "work"
        said = await live.run_command("/share")
        assert said is not None
        assert "Hello there." in (work / f"trimtab-session-{live.id}.md").read_text()
        await live.run_command("/share html page.html")
        assert (work / "page.html").read_text().startswith("<!DOCTYPE html>")
        await live.run_command("/share 'log.json'")
        assert json.loads((work / "log.json").read_text())[0]["type"] == "session.start"
        (work / "mine.md").write_text("mine")
        with pytest.raises(UsageError, match="exists already"):
            await live.run_command("/share mine.md")
        with pytest.raises(UsageError, match="uploads nothing"):
            await live.run_command("/share gist")
        assert (work / "mine.md").read_text() == "mine"


async def test_a_session_is_copied_while_it_works(tmp_path: Path) -> None:
    replies = [
        {"tools": [bash("until [ -e go ]; do sleep 0.02; done")]},
        {"text": "Done.", "repeat": "forever"},
    ]
    async with talking(tmp_path, replies) as (live, watch, _):
        live.send("wait")
        await watch.saw("tool.execution_start")
        said = await live.run_command("/fork second try") or ""
        (tmp_path / "work" / "go").touch()
        await live.finished()
    copy = said.rpartition("=")[2].rstrip(".")
    provider = ScriptedProvider(Script.of(["Here again."]))
    env = {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    options = SessionOptions(cwd=str(tmp_path / "work"))
    forked = await Runtime(env=env, provider=provider).resume(copy, options, Client())
    try:
        await forked.ask("and?")
        assert forked.folder.read_metadata()["name"] == "second try"
        assert "wait" in str(provider.requests[0].messages)
        assert "Done." not in str(provider.requests[0].messages)
    finally:
        await forked.close()


@pytest.mark.parametrize("text", ["/share", "/fork", "/settings theme light"])
async def test_the_text_of_a_prompt_copies_and_sets_nothing(tmp_path: Path, text: str) -> None:
    async with opened(tmp_path, []) as (live, _, _):
        with pytest.raises(UsageError, match="Only a person"):
            await live.run_command(text)


@pytest.mark.parametrize("name", ["init", "review", "rubber-duck", "security-review"])
async def test_a_command_stands_for_a_prompt_and_is_shown_as_it_was_typed(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path, ["I looked."]) as (live, watch, provider):
        await live.ask(f"/{name} only the parser")
        (message,) = watch.of("user.message")
    assert message.content == f"/{name} only the parser"
    sent = str(provider.requests[0].messages[-1])
    assert "The person adds: only the parser" in sent
    assert "{{" not in sent


async def test_research_needs_a_question(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (live, _, _):
        with pytest.raises(UsageError, match="write /research QUESTION"):
            await live.expand_command("/research")


async def test_init_improves_the_instructions_that_there_are(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (live, _, _):
        assert ".github/copilot-instructions.md" in (await live.expand_command("/init") or "")
        (tmp_path / "AGENTS.md").write_text("Be short.")
        assert "file AGENTS.md" in (await live.expand_command("/init") or "")


async def test_a_skill_of_the_person_replaces_a_command_of_the_same_name(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    skill = cli.home / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: review\ndescription: Mine\n---\nReview it as WE do it.\n"
    )
    async with serving([{"text": "ok", "repeat": "forever"}]) as server:
        ran = await cli.use(server).ask("/review the parser")
        helped = await cli.ask("/help")
        sent = str(server.requests[0].json["messages"])
    assert ran.code == 0
    assert "as WE do it" in sent
    assert "code-review" not in sent.partition("as WE do it")[2]
    assert "/review" not in helped.of("session.info")[0]["message"]


async def test_an_agent_is_chosen_and_left(tmp_path: Path) -> None:
    agents = tmp_path / "home" / "agents"
    agents.mkdir(parents=True)
    (agents / "fox.agent.md").write_text("---\nname: fox\ndescription: Sly\n---\nYou are a fox.\n")
    async with talking(tmp_path, [{"text": "ok", "repeat": "forever"}]) as (live, watch, provider):
        assert "fox  Sly" in (await live.run_command("/agent") or "")
        assert await live.run_command("/agent fox") == "The agent is fox."
        await live.ask("hi")
        assert await live.run_command("/agent default") == "The agent is default."
        await live.ask("hi")
        with pytest.raises(UsageError, match="Custom agent 'wolf' not found"):
            await live.run_command("/agent wolf")
        assert watch.of("subagent.selected")[0].agent_name == "fox"
    first, second = (request.system for request in provider.requests)
    assert "You are a fox." in first
    assert "You are a fox." not in second


async def test_a_setting_is_shown_changed_and_removed(tmp_path: Path) -> None:
    async with talking(tmp_path, []) as (live, _, _):
        path = tmp_path / "home" / "settings.json"
        assert await live.run_command("/settings theme") == "theme: not set"
        said = await live.run_command("/settings theme light") or ""
        assert said.startswith(f"theme is now light; it is saved in {path}.")
        assert json.loads(path.read_text()) == {"theme": "light"}
        await live.run_command("/config host.mcp.enabled false")
        assert "host.mcp.enabled: false" in (await live.run_command("/settings") or "")
        await live.run_command("/settings theme default")
        assert json.loads(path.read_text()) == {"host.mcp.enabled": False}
        for text, wrong in (
            ("/settings them light", "did you mean theme"),
            ("/settings stream perhaps", "stream needs true or false"),
            ("/settings limits 5", "limits needs an object in JSON"),
        ):
            with pytest.raises(UsageError, match=wrong):
                await live.run_command(text)


async def test_commands_of_copilot_that_do_not_exist_here_say_what_to_do_instead(
    tmp_path: Path,
) -> None:
    assert not ABSENT.keys() & (COMMANDS.keys() | ALIASES.keys())
    async with opened(tmp_path, []) as (live, _, _):
        for name, sentence in ABSENT.items():
            with pytest.raises(UsageError) as raised:
                await live.run_command(f"/{name} some words")
            assert str(raised.value) == sentence
            assert sentence.endswith(".")


async def test_autopilot_works_towards_a_goal(tmp_path: Path) -> None:
    done = {"tools": [{"name": "task_complete", "arguments": {"summary": "Reached."}}]}
    async with opened(tmp_path, [done, "Reached."]) as (live, watch, _):
        await live.ask("/goal count to three")
        await live.finished()
        assert live.mode == "autopilot"
        assert watch.of("user.message")[0].content == "count to three"


async def test_help_says_how_to_write_a_command(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (live, _, _):
        assert await live.run_command("/help share") == (
            "/share [md | html | json] [PATH]\nWrite this session into a file."
        )
        everything = await live.run_command("/help") or ""
        assert "Unreleased" in (await live.run_command("/changelog") or "")
        assert await live.run_command("/session plan") == "This session has no plan yet."
    assert max(map(len, everything.splitlines())) < 110
    names = [line.split()[0] for line in everything.splitlines()[:-1]]
    assert names == sorted(names)


async def test_usage_says_what_was_spent_and_changed_and_what_is_left(tmp_path: Path) -> None:
    made = {"name": "create", "arguments": {"path": "made.txt", "file_text": "one\ntwo\n"}}
    replies = [
        {"tools": [made], "usage": {"input": 900, "output": 50, "cached": 600}},
        {"text": "Made.", "usage": {"input": 1000, "output": 50}},
    ]
    limits = LimitOptions(max_tokens=1_000_000)
    async with opened(tmp_path, replies, limits=limits) as (live, _, _):
        await live.ask("make it")
        lines = (await live.run_command("/usage") or "").splitlines()
    assert lines[0].startswith("scripted: 2 calls, 1,900 tokens in (600 cached), 100 out, ")
    assert lines[1] == "budget: 2,000 of 1,000,000 tokens"
    assert lines[2].startswith("model time: ")
    assert lines[3] == "changes: +2 -0 in 1 file"
