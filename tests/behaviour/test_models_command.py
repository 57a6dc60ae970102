"""`trimtab models`, `models probe`, `net` and `--offline`, seen from outside."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from trimtab import Runtime


async def test_models_lists_what_can_be_used_with_limits_abilities_and_price(cli: Cli) -> None:
    async with serving({"replies": [], "models": ["gpt-4.1", "mystery"]}) as server:
        cli.use(server)
        outcome = await cli.run("models", "--json")
        text = (await cli.run("models")).text
    assert outcome.code == 0, outcome.notes
    (source,) = json.loads(outcome.out)["sources"]
    assert source["because"] == "named by COPILOT_PROVIDER_API_KEY"
    first, second = source["models"]
    assert (first["choice"], first["window"], first["price"]["input"]) == ("gpt-4.1", 128_000, 2.0)
    assert (second["price"], second["tools"], second["vision"]) == (None, True, True)
    assert "mystery" in text
    assert "price unknown" in text
    assert "test-key" not in text + outcome.text


@pytest.mark.proves("MODEL-07")
async def test_a_service_that_cannot_be_asked_is_null_and_the_others_are_listed(cli: Cli) -> None:
    async with serving({"replies": [], "models": ["qwen3"]}) as server:
        cli.env |= {
            "OPENAI_API_KEY": "sk-0123456789",
            "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
            "TRIMTAB_LOCAL_SERVERS": f"ollama={server.base_url}",
        }
        outcome = await cli.run("models", "--json")
    assert outcome.code == 0
    dead, alive = json.loads(outcome.out)["sources"]
    assert dead["models"] is None
    assert "nothing listens there" in dead["problem"]
    assert [model["choice"] for model in alive["models"]] == ["ollama/qwen3"]


def answer_probe(window: int | None = None) -> dict[str, Any]:
    add = {"name": "add", "arguments": {"a": 1, "b": 2}}
    usage = {} if window is None else {"usage": {"input": window}}
    return {
        "replies": [
            {"when": "20 \\+ 22", "tools": [add]},
            {"when": "at once", "tools": [add, add]},
            {"when": "colour", "text": "Red."},
            {"when": "pelican", "text": "yes", **usage},
        ],
        "otherwise": {"text": "yes"},
    }


async def test_probe_finds_out_what_a_model_can_do(cli: Cli) -> None:
    async with serving(answer_probe()) as server:
        outcome = await cli.use(server).run("models", "probe", "scripted", "--json")
        assert outcome.code == 0, outcome.notes
        found = json.loads(outcome.out)
        assert found["calls"] == server.usage.requests
    assert (found["tools"], found["parallelTools"], found["images"]) == (True, True, True)
    assert found["efforts"] == ["low", "medium", "high", "xhigh", "max"]
    assert found["window"]["limit"] is None
    assert found["window"]["accepted"] >= 30_000
    assert found["advice"] == []


async def test_probe_detects_the_small_default_window_of_local_servers(cli: Cli) -> None:
    async with serving(answer_probe(window=4096)) as server:
        outcome = await cli.use(server).run("models", "probe", "scripted")
    assert outcome.code == 0, outcome.notes
    assert "cut at 4,096 tokens" in outcome.text
    assert "OLLAMA_CONTEXT_LENGTH" in outcome.text


async def test_probe_tells_what_a_model_cannot_do(cli: Cli) -> None:
    script = {"replies": [{"when": "colour", "error": 400}], "otherwise": {"text": "no idea"}}
    async with serving(script) as server:
        outcome = await cli.use(server).run("models", "probe", "scripted")
    assert "tool calls      no" in outcome.text
    assert "images          no" in outcome.text
    assert "cannot work as an agent" in outcome.text


async def test_probe_of_a_service_that_refuses_the_key_ends_with_its_exit_code(cli: Cli) -> None:
    async with serving([{"error": 401}]) as server:
        outcome = await cli.use(server).run("models", "probe", "scripted")
        assert server.usage.requests == 1
    assert outcome.code == 7


async def test_net_lists_destinations_and_contacts_none(cli: Cli) -> None:
    async with serving([]) as server:
        cli.use(server).env |= {
            "GH_TOKEN": "gho_0123456789",
            "HTTPS_PROXY": "http://user:pass@proxy.example:3128",
            "TRIMTAB_LOCAL_SERVERS": f"ollama={server.base_url}",
        }
        outcome = await cli.run("net", "--json", "--offline")
        assert server.connections == 0
    shown = {one["address"]: one for one in json.loads(outcome.out)["destinations"]}
    assert shown[server.url]["allowed"]
    github = shown["https://api.github.com"]
    assert not github["allowed"]
    assert github["proxy"] == "http://proxy.example:3128"
    assert "pass" not in outcome.text
    assert "gho_" not in outcome.text


async def test_offline_reaches_a_server_on_this_machine_and_nothing_else(cli: Cli) -> None:
    async with serving([{"text": "hello"}]) as server:
        outcome = await cli.use(server).ask("hi", "--offline")
    assert outcome.code == 0, outcome.notes
    far = {"COPILOT_PROVIDER_BASE_URL": "https://models.invalid/v1"}
    for args, env in ((("--offline",), far), ((), {**far, "COPILOT_OFFLINE": "true"})):
        outcome = await cli.ask("hi", *args, env=env)
        assert outcome.code == 8
        assert "may not be contacted offline" in outcome.of("session.error")[0]["message"]
        assert not outcome.of("assistant.turn_retry")


async def test_an_unknown_model_is_told_with_near_matches(cli: Cli) -> None:
    script = {
        "replies": [{"error": {"status": 404, "code": "model_not_found"}}],
        "models": ["gpt-4.1", "claude-sonnet-4.5"],
    }
    async with serving(script) as server:
        outcome = await cli.use(server).ask("hi", "--model", "claude-sonet-4.5")
        assert server.usage.requests == 1
    (error,) = outcome.of("session.error")
    assert error["errorType"] == "model_not_found"
    assert "did you mean claude-sonnet-4.5?" in error["message"]
    assert outcome.code == 8


async def test_a_substituted_model_is_a_warning_in_the_stream(cli: Cli) -> None:
    async with serving([{"text": "hi", "model": "tiny-model"}]) as server:
        outcome = await cli.use(server).ask("hi", "--model", "gpt-4.1")
    assert [w["warningType"] for w in outcome.of("session.warning")] == ["model_substituted"]


async def test_a_fallback_model_is_used_when_the_first_is_unknown(cli: Cli) -> None:
    rule = {"when": {"model": "^gone$"}, "error": {"status": 404, "code": "model_not_found"}}
    async with serving({"replies": [rule], "otherwise": "hello"}) as server:
        args = ("--model", "gone", "--fallback-model", "scripted")
        outcome = await cli.use(server).ask("hi", *args)
    assert outcome.code == 0, outcome.notes
    (change,) = outcome.of("session.model_change")
    assert (change["previousModel"], change["newModel"]) == ("gone", "scripted")
    assert change["cause"] == "fallback"


@pytest.mark.parametrize(
    ("reply", "error_type", "code"),
    [
        ({"error": 401}, "authentication", 7),
        ({"error": 429}, "rate_limit", 8),
        ({"error": {"status": 402}}, "quota", 8),
        ({"error": 413}, "context_limit", 8),
        ({"error": {"status": 404, "code": "model_not_found"}}, "model_not_found", 8),
        ({"error": 400}, "invalid_request", 8),
        ({"error": 500}, "query", 8),
    ],
)
async def test_errors_have_the_types_of_the_reference(
    cli: Cli, reply: Any, error_type: str, code: int
) -> None:
    async with serving([{**reply, "repeat": "forever"}]) as server:
        outcome = await cli.use(server).ask("hi", env={"TRIMTAB_RETRIES": "1"})
    assert outcome.code == code
    assert outcome.of("session.error")[0]["errorType"] == error_type


async def test_max_effort_is_sent_as_it_is_where_the_levels_are_unknown(cli: Cli) -> None:
    async with serving([{"text": "hi"}]) as server:
        await cli.use(server).ask("hi", "--effort", "max")
        assert server.requests[0].json["reasoning_effort"] == "max"


async def test_no_progress_ends_with_exit_code_3(cli: Cli) -> None:
    script = {"replies": [], "otherwise": {"tools": [{"name": "view", "arguments": {"path": "."}}]}}
    async with serving(script) as server:
        outcome = await cli.use(server).ask("hi", "--max-repeats", "4")
        assert server.usage.requests == 4
    assert outcome.code == 3
    assert outcome.result["status"]
    assert outcome.of("session.warning")[-1]["warningType"] == "no_progress"


@pytest.mark.parametrize("args", [("--allow-all",), ("--allow-all", "--autopilot"), ()])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("view", {"path": "."}),
        ("bash", {"command": "touch made", "description": "x"}),
        ("nope", {}),
        ("view", {"wrong": 1}),
    ],
)
async def test_an_unattended_run_that_repeats_one_call_ends_by_itself(
    cli: Cli, name: str, arguments: dict[str, str], args: tuple[str, ...]
) -> None:
    """684 identical calls were made before the time was up."""
    script = {"replies": [], "otherwise": {"tools": [{"name": name, "arguments": arguments}]}}
    async with serving(script) as server:
        outcome = await cli.use(server).run("-p", "go", "--output-format", "json", *args)
        assert server.usage.requests == 25
    denied = name == "bash" and not args
    assert outcome.code == (4 if denied else 3), outcome.notes
    assert outcome.of("session.warning")[-1]["warningType"] == "no_progress"
    assert "was called 25 times" in outcome.notes


async def test_zero_repeats_means_no_limit(cli: Cli) -> None:
    view = {"tools": [{"name": "view", "arguments": {"path": "."}}], "repeat": 40}
    async with serving([view, "done"]) as server:
        outcome = await cli.use(server).ask("go", "--max-repeats", "0")
    assert outcome.code == 0, outcome.notes


@pytest.mark.proves("MODEL-10", "MODEL-11")
async def test_a_registered_model_is_used_as_its_entry_says(cli: Cli) -> None:
    async with serving([{"text": "hi", "model": "acme/big-v2"}]) as server:
        entry = {
            "providers": [
                {"name": "work", "baseUrl": server.base_url, "apiKeyCommand": "echo k-9"}
            ],
            "models": [
                {
                    "id": "big",
                    "provider": "work",
                    "wireModel": "acme/big-v2",
                    "efforts": ["low", "high", "xhigh"],
                    "maxOutputTokens": 777,
                    "price": {"input": 1_000_000, "output": 0},
                }
            ],
        }
        (cli.home / "providers.json").write_text(json.dumps(entry))
        outcome = await cli.ask("hi", "--model", "work/big", "--effort", "max")
        listed = json.loads((await cli.run("models", "--json")).out)
        request = server.requests[0]
    assert outcome.code == 0, outcome.notes
    (offer,) = listed["sources"][0]["models"]
    assert offer["choice"] == "work/big"
    choices = offer["configuration"]["properties"]["reasoningEffort"]["enum"]
    assert choices == ["low", "high", "xhigh"]
    assert request.json["model"] == "acme/big-v2"
    assert request.json["reasoning_effort"] == "xhigh"
    assert request.json["max_tokens"] == 777
    assert request.headers["authorization"] == "Bearer k-9"
    assert not outcome.of("session.warning")
    events = [json.loads(line) for line in cli.logs()[0].read_text().splitlines()]
    (call,) = [event["data"] for event in events if event["type"] == "trimtab.model_call"]
    assert call["costUsd"] == call["inputTokens"]


@pytest.mark.proves("MODEL-06")
async def test_a_model_without_a_policy_is_not_offered_but_can_be_typed(cli: Cli) -> None:
    models = ["shown", {"id": "hidden", "policy": None}]
    async with serving({"replies": [{"text": "hello"}], "models": models}) as server:
        cli.env |= {"COPILOT_GITHUB_TOKEN": "gho_0123456789", "COPILOT_API_URL": server.base_url}
        listed = json.loads((await cli.run("models", "--json")).out)
        outcome = await cli.ask("hi", "--model", "hidden")
        asked = [one.json["model"] for one in server.requests if one.body]
    (source,) = listed["sources"]
    assert [model["choice"] for model in source["models"]] == ["copilot/shown"]
    assert outcome.code == 0, outcome.notes
    assert asked == ["hidden"]


@pytest.mark.proves("MODEL-03", "MODEL-04")
async def test_clients_are_given_models_in_the_words_of_the_service(tmp_path: Path) -> None:
    limits = {"max_context_window_tokens": 9, "max_output_tokens": 3, "max_prompt_tokens": 6}
    supports = {
        "streaming": True,
        "tool_calls": True,
        "vision": False,
        "structured_outputs": True,
        "parallel_tool_calls": False,
        "reasoning_effort": ["low", "high"],
        "adaptive_thinking": True,
        "max_thinking_budget": 2,
        "min_thinking_budget": 1,
    }
    model = {
        "id": "m",
        "name": "Model M",
        "vendor": "Acme",
        "object": "model",
        "version": "7",
        "preview": True,
        "model_picker_enabled": False,
        "model_picker_category": "powerful",
        "policy": {"state": "enabled", "terms": "be kind"},
        "supported_endpoints": ["/responses"],
        "capabilities": {
            "type": "chat",
            "tokenizer": "o200k_base",
            "family": "m-family",
            "limits": limits,
            "supports": supports,
        },
    }
    async with serving({"replies": [], "models": [model]}) as server:
        env = {
            "COPILOT_HOME": str(tmp_path),
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_MODEL": "m",
        }
        assert await Runtime(env=env).list_models() == [model]


async def test_a_fallback_model_takes_over_from_one_that_repeats_itself(cli: Cli) -> None:
    again = {"when": {"model": "^first$"}, "tools": [bash("echo same")]}
    async with serving({"replies": [again], "otherwise": "Done another way."}) as server:
        args = ("--model", "first", "--fallback-model", "second", "--allow-all")
        outcome = await cli.use(server).ask("go", *args)
    assert outcome.code == 0, outcome.notes
    (change,) = outcome.of("session.model_change")
    assert (change["previousModel"], change["newModel"]) == ("first", "second")
    warnings = outcome.of("session.warning")
    assert [warning["warningType"] for warning in warnings] == [
        "stall_nudge",
        "model_fallback",
        "stall_change",
    ]
    assert "From now on the model is second" in warnings[-1]["message"]


async def test_a_built_in_agent_works_with_the_sessions_model(cli: Cli) -> None:
    wrong = {"when": {"model": "^(?!scripted$)"}, "error": {"status": 404}}
    async with serving({"replies": [wrong], "otherwise": "Found it."}) as server:
        outcome = await cli.use(server).ask("where?", "--agent", "explore")
    assert outcome.code == 0, outcome.notes
    assert {request.json["model"] for request in server.requests} == {"scripted"}
