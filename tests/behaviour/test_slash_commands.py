"""Commands typed as prompts: answered at once, without a model call."""

import json
from pathlib import Path

import pytest

from clikit import Cli, serving
from livekit import opened


async def test_a_command_is_answered_on_standard_output_without_the_model(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving(["never"]) as server:
        cli.use(server)
        outcome = await cli.run("-p", "/context")
        assert not server.requests
    assert outcome.code == 0
    assert outcome.text.startswith("scripted: ")
    assert "tool definitions" in outcome.text


async def test_help_lists_every_command_and_unknown_ones_go_to_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, ["It is a path."]) as (live, watch, provider):
        await live.ask("/help")
        await live.ask("/usr/bin is what?")
        (answer,) = watch.of("session.info")
        assert len(provider.requests) == 1
    assert answer.info_type == "command"
    for name in ("/context", "/limits", "/compact", "/model", "/mode", "/usage"):
        assert name in answer.message


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
        ("/limits tokens", "is not a list of limits"),
        ("/limits bananas 3", "There is no limit 'bananas'"),
        ("/limits tokens many", "write a number, or off"),
        ("/limits usd 5", "No price is known"),
        ("/mode dancing", "There is no mode 'dancing'"),
        ("/compact", "nothing to summarise"),
        ("/usage", "Nothing was spent yet."),
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
