"""Commands typed as prompts: answered at once, without a model call."""

import json
import os
import re
from pathlib import Path

import pytest

from clikit import Cli, serving
from livekit import Watch, opened
from trimtab import Runtime, SessionOptions
from trimtab.commands.table import COMMANDS
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import Client
from trimtab.testing import Script, ScriptedProvider


async def test_a_command_is_answered_on_standard_output_without_the_model(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving(["never"]) as server:
        cli.use(server)
        outcome = await cli.run("-p", "/context")
        assert not server.requests
    assert outcome.code == 0
    assert outcome.text.startswith("scripted: ")
    assert "tool definitions" in outcome.text


async def test_help_lists_every_command_and_paths_go_to_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, ["It is a path.", "It is one, too.", "Sent."]) as (
        live,
        watch,
        provider,
    ):
        await live.ask("/help")
        for prompt in ("/usr/bin is what?", "/tmp is what?", " /nosuch is what?"):
            await live.ask(prompt)
        (answer,) = watch.of("session.info")
        assert len(provider.requests) == 3
    assert answer.info_type == "command"
    for name in COMMANDS.keys() - {"branch"}:  # on request, by the setting host.branchSupport
        assert f"/{name}" in answer.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/nosuch", "Unknown command /nosuch; see /help."),
        ("/modle gpt-5", "Unknown command /modle; did you mean /mode or /model?"),
        ("/CONTEXTS", "did you mean /context?"),
        ("/clear", "works only in an interactive session"),
        ("!ls", "begin with ! run a shell command"),
        ("/queue frob", "Unknown argument 'frob'"),
        ("/limits tokens", "is not a list of names and values"),
        ("/limits bananas 3", "Unknown limit 'bananas'"),
        ("/limits tokens many", "write a number or off"),
        ("/limits usd 5", "No price is known"),
        ("/mode dancing", "Unknown mode 'dancing'"),
        ("/undo later", "write /undo [preview]"),
        ("/undo 1 2", "write /undo [preview]"),
        ("/redo 1", "write /redo [preview]"),
        ("! ls", "begin with ! run a shell command"),
        ("/allow-all", "Only a person in a conversation can do this; start with --allow-all."),
        ("/permissions allow-all", "start with --allow-all."),
        ("/permissions often", "write /permissions [show"),
        ("/add-dir", "write /add-dir PATH"),
        ("/add-dir /tmp", "start with --add-dir PATH."),
        ("/cwd /", "start with -C PATH."),
        ("/rename", "/rename NAME"),
        ("/mcp enable", "write /mcp enable NAME"),
        ("/mcp restart nosuch", "Unknown MCP server 'nosuch'"),
    ],
)
async def test_a_wrong_command_is_told_and_never_sent(tmp_path: Path, text: str, said: str) -> None:
    cli = Cli(tmp_path)
    async with serving(["never"]) as server:
        ran = await cli.use(server).ask(text)
        assert not server.requests
    assert ran.code == 2
    assert said in ran.result["error"]["message"]


async def test_a_wrong_command_is_told_once_as_text(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving(["never"]) as server:
        ran = await cli.use(server).run("-p", "/nosuch")
    assert ran.code == 2
    assert ran.notes.count("Unknown command /nosuch") == 1


async def test_a_command_leaves_nothing_in_the_queue(tmp_path: Path) -> None:
    """Each command was reported as a prompt that was never sent when the session was resumed."""
    cli = Cli(tmp_path)
    async with serving([{"text": "Hello."}]) as server:
        first = await cli.use(server).ask("hello")
        resume = f"--resume={first.result['sessionId']}"
        for text in ("/context", "/usage", "/nosuch", "/limits bananas 3", "/help"):
            ran = await cli.ask(text, resume)
            assert not ran.of("session.warning"), ran.of("session.warning")


async def test_prompts_that_were_never_sent_can_be_seen_sent_and_dropped(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving([{"text": "x", "delay": 60}]) as server:
        cli.use(server)
        runtime = Runtime(env=cli.env)
        watch = Watch()
        live = await runtime.create(
            SessionOptions(cwd=str(cli.cwd)), Client(on_event=watch.on_event)
        )
        for prompt in ("first", "second", "third\nin two lines", "fourth"):
            live.send(prompt)
        await watch.saw("model.call_start")
        await live.close()
    resume = f"--resume={live.id}"
    async with serving([{"text": "ok", "repeat": "forever"}]) as server:
        cli.use(server)
        listed = await cli.ask("/queue", resume)
        assert "3 prompts of this session never sent" in listed.of("session.warning")[0]["message"]
        assert "/queue send" in listed.of("session.warning")[0]["message"]
        assert "  2  third in two lines\n" in listed.of("session.info")[0]["message"]
        await cli.ask("/queue drop 2", resume)
        assert not server.requests
        sent = await cli.ask("/queue send", resume)
        assert [m["content"] for m in sent.of("user.message")] == ["second", "fourth"]
        assert sent.code == 0
        assert len(server.requests) == 2
        empty = await cli.ask("/queue", resume)
    assert not empty.of("session.warning")
    assert empty.of("session.info")[0]["message"] == "No prompts are waiting."


@pytest.mark.parametrize("listed", [True, False])
async def test_a_model_is_switched_to_only_if_its_service_has_it(
    tmp_path: Path, listed: bool
) -> None:
    cli = Cli(tmp_path)
    models = ["scripted", "other-2"] if listed else []
    async with serving({"replies": [], "models": models}) as server:
        ran = await cli.use(server).ask("/model nosuch")
        near = await cli.ask("/model other-3")
        good = await cli.ask("/model other-2")
    if listed:
        assert ran.code == 2
        assert "Unknown model 'nosuch'" in ran.result["error"]["message"]
        assert "did you mean other-2" in near.result["error"]["message"]
        assert good.of("session.info")[0]["message"] == "The model is other-2."
    else:
        assert ran.code == 0
        assert "the name is unchecked" in ran.of("session.info")[0]["message"]


async def test_undo_and_redo_work_as_commands(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    made = cli.cwd / "made.txt"
    create = {"name": "create", "arguments": {"path": "made.txt", "file_text": "x\n"}}
    async with serving([{"tools": [create]}, {"text": "Done."}]) as server:
        first = await cli.use(server).ask("make it")
        resume = f"--resume={first.result['sessionId']}"
        preview = await cli.ask("/undo preview", resume)
        assert made.exists()
        undone = await cli.ask("/undo", resume)
        assert not made.exists()
        await cli.ask("/redo", resume)
        assert made.exists()
    assert "-x" in preview.of("session.info")[0]["message"]
    assert "undo of turn 1: 1 path changed." in undone.of("session.info")[0]["message"]


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_compaction_says_how_large_the_conversation_was_and_is(
    tmp_path: Path, resumed: bool
) -> None:
    """It said that 0 tokens were summarised."""
    cli = Cli(tmp_path)
    words = "many words " * 2000
    replies = [{"text": words}, {"text": words}, {"text": "A summary."}]
    async with serving(replies) as server:
        runtime = Runtime(env=cli.use(server).env)
        options, watch = SessionOptions(cwd=str(cli.cwd)), Watch()
        live = await runtime.create(options, Client(on_event=watch.on_event))
        await live.ask("first")
        await live.ask("second")
        if resumed:
            await live.close()
            live = await runtime.resume(live.id, options, Client(on_event=watch.on_event))
        await live.ask("/compact")
        await live.close()
    said = watch.of("session.info")[-1].message
    found = re.fullmatch(
        r"3 messages summarised: the conversation went from ([\d,]+) to ([\d,]+) tokens\.", said
    )
    assert found is not None, said
    before, after = (int(number.replace(",", "")) for number in found.groups())
    assert before > 10_000
    assert 0 < after < 2_000
    (event,) = watch.of("session.compaction_complete")
    assert event.tokens_removed == before - after


async def test_limits_can_be_set_while_a_session_lives(tmp_path: Path) -> None:
    usage = {"input": 900, "output": 100}
    steps = [{"text": "one", "usage": usage}, {"text": "two", "usage": usage}]
    async with opened(tmp_path, steps) as (live, watch, provider):
        await live.ask("first")
        await live.ask("/limits tokens 1500")
        stop = await live.ask("second")
        assert stop.reason == "budget"
        assert len(provider.requests) == 1, "the second call would go past the limit"
        await live.ask("/limits tokens off")
        assert (await live.ask("third")).reason == "end_turn"
        changed = [one.session_limits["maxTokens"] for one in watch.of(LIMITS_CHANGED)]
    assert changed == [1500, None]


LIMITS_CHANGED = "session.session_limits_changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/compact", "nothing to summarise"),
        ("/usage", "No model calls yet."),
        ("/model", "The model is scripted."),
        ("/mode plan", "The mode is plan."),
    ],
)
async def test_what_commands_say(tmp_path: Path, text: str, said: str) -> None:
    async with opened(tmp_path, ["x"]) as (live, watch, _):
        await live.ask(text)
        (answer,) = watch.of("session.info")
    assert said in answer.message


async def test_a_model_of_another_service_is_switched_to_by_its_name(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    script = {"replies": [{"text": "hello"}, {"text": "hello"}]}
    async with serving(script) as one, serving(script) as other:
        registry = {
            "providers": [
                {"name": "one", "baseUrl": one.base_url},
                {"name": "other", "baseUrl": other.base_url},
            ],
            "models": [{"provider": "one", "id": "a"}, {"provider": "other", "id": "b"}],
            "default": "one/a",
        }
        (cli.home / "providers.json").write_text(json.dumps(registry))
        from trimtab.contracts.options import SessionOptions
        from trimtab.runtime.runtime import Runtime

        live = await Runtime(env=cli.env).create(SessionOptions(cwd=str(cli.cwd)))
        try:
            await live.ask("first")
            await live.ask("/model other/b")
            await live.ask("second")
        finally:
            await live.close()
        assert [request.json["model"] for request in one.requests] == ["a"]
        assert [request.json["model"] for request in other.requests] == ["b"]


async def test_a_model_for_titles_writes_one_and_is_paid_from_the_same_ledger(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    usage = {"input": 10, "output": 5}
    script = [
        {"when": {"last": "Write a title"}, "text": '"Fix the Parser."', "usage": usage},
        {"text": "ok", "delay": 0.3, "usage": usage},
    ]
    async with serving(script) as server:
        registry = {
            "providers": [{"name": "here", "baseUrl": server.base_url}],
            "models": [{"provider": "here", "id": "big"}, {"provider": "here", "id": "tiny"}],
            "default": "here/big",
            "roles": {"title": "here/tiny"},
        }
        (cli.home / "providers.json").write_text(json.dumps(registry))
        outcome = await cli.ask("the parser is broken")
        assert sorted(request.json["model"] for request in server.requests) == ["big", "tiny"]
    assert outcome.of("session.title_changed") == [{"title": "Fix the Parser"}]
    assert outcome.result["usage"]["modelCalls"] == 2
    assert outcome.result["usage"]["tokens"]["input"] == 20
    assert outcome.result["model"] == "big"


@pytest.mark.proves("MODEL-12")
async def test_the_model_comes_from_the_flag_then_the_agent_then_the_settings(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    del_model = {"COPILOT_MODEL": ""}
    (cli.home / "settings.json").write_text('{"model": "from-settings" /* mine */}')
    agents = cli.home / "agents"
    agents.mkdir()
    (agents / "fox.agent.md").write_text(
        "---\nname: fox\ndescription: d\nmodel: from-agent\n---\nYou are a fox.\n"
    )
    async with serving([{"text": "ok", "repeat": "forever"}]) as server:
        cli.use(server)
        await cli.ask("one", env=del_model)
        await cli.ask("two", "--agent", "fox", env=del_model)
        await cli.ask("three", "--agent", "fox", "--model", "from-flag", env=del_model)
        asked = [request.json["model"] for request in server.requests]
    assert asked == ["from-settings", "from-agent", "from-flag"]


async def test_limits_in_the_settings_hold_and_flags_win(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (cli.home / "settings.json").write_text('{"limits": {"maxTurns": 1}}')
    step = {"tools": [{"name": "glob", "arguments": {"pattern": "*"}}], "repeat": "forever"}
    async with serving([step]) as server:
        cli.use(server)
        assert (await cli.ask("go")).code == 6
        assert len(server.requests) == 1
        assert (await cli.ask("go", "--max-turns", "3")).code == 6
        assert len(server.requests) == 4
        (cli.home / "settings.json").write_text('{"limits": {"maxTurns": "many"}}')
        broken = await cli.ask("go")
    assert broken.code == 2
    assert "limits" in broken.result["error"]["message"]


async def test_a_session_is_renamed_and_described(tmp_path: Path) -> None:
    async with opened(tmp_path, []) as (live, _, _):
        assert await live.run_command("/rename  my   work ") == "The session is now called my work."
        described = await live.run_command("/session") or ""
        folders = await live.run_command("/list-dirs") or ""
    assert f"id      {live.id}" in described
    assert "name    my work" in described
    assert folders == f"{tmp_path} (working directory)"


async def test_a_person_widens_and_narrows_what_is_allowed(tmp_path: Path) -> None:
    more = tmp_path / "more folders"
    more.mkdir()
    env = {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of([])))
    live = await runtime.create(
        SessionOptions(cwd=str(tmp_path)), Client(on_event=Watch().on_event, attended=True)
    )
    try:
        asked = live.controls.agent.parts.permissions
        await live.run_command("/add-dir 'more folders'")
        assert str(more) in (await live.run_command("/list-dirs") or "")
        await live.run_command("/allow-all")
        seen = [asked.policy.allow_all_tools]
        assert "allow everything" in (await live.run_command("/permissions") or "")
        await live.run_command("/permissions default")
        assert [*seen, asked.policy.allow_all_tools] == [True, False]
        assert str(more) in (await live.run_command("/list-dirs") or "")
        await live.run_command(f"/cwd {more}")
        assert live.controls.options.cwd == str(more)
        with pytest.raises(UsageError, match="No such folder"):
            await live.run_command("/cwd nowhere")
    finally:
        await live.close()
