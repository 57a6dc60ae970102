"""Premium requests and limits, as GitHub's service lists them for each model."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving


def listed(name: str, multiplier: float, window: int = 200_000) -> dict[str, Any]:
    limits = {"max_context_window_tokens": window, "max_prompt_tokens": window // 2}
    capabilities = {"type": "chat", "limits": limits, "supports": {"tool_calls": True}}
    policy = {"state": "enabled"}
    billing = {"multiplier": multiplier}
    return {"id": name, "policy": policy, "billing": billing, "capabilities": capabilities}


MODELS = [listed("wise", 3), listed("quick", 0.25), listed("free", 0)]


def of_github(cli: Cli, server: Any) -> Cli:
    cli.env |= {"COPILOT_GITHUB_TOKEN": "gho_0123456789", "COPILOT_API_URL": server.base_url}
    return cli


def stored(cli: Cli, wire_name: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in cli.logs()[0].read_text().splitlines()]
    return [event["data"] for event in events if event["type"] == wire_name]


@pytest.mark.proves("LOOP-05", "RES-02")
@pytest.mark.parametrize(("model", "each"), [("wise", 3), ("quick", 0.25), ("free", 0)])
async def test_a_prompt_costs_the_multiplier_of_its_model_however_many_calls_it_takes(
    tmp_path: Path, model: str, each: float
) -> None:
    cli = Cli(tmp_path)
    replies = [{"tools": [bash("echo 1")]}, {"tools": [bash("echo 2")]}, "done", "again"]
    async with serving({"replies": replies, "models": MODELS}) as server:
        first = await of_github(cli, server).ask("go", "--model", model)
        second = await cli.ask("once more", "--model", model, "--continue")
        shown = (await cli.run("-p", "/usage", "--model", model, "--continue")).text
    assert first.result["usage"]["premiumRequests"] == each
    assert second.result["usage"]["premiumRequests"] == 2 * each
    ended = stored(cli, "session.shutdown")
    assert [one["totalPremiumRequests"] for one in ended] == [each, 2 * each, 2 * each]
    assert ended[-1]["modelMetrics"][model]["requests"] == {"count": 4, "cost": 2 * each}
    assert (f"premium requests: {2 * each:g}\n" in shown) is bool(each)
    assert [one["cost"] for one in first.of("assistant.usage")] == [each] * 3


async def test_prompts_of_autopilot_and_calls_that_failed_cost_no_premium_request(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    done = {"tools": [{"name": "task_complete", "arguments": {"summary": "s"}}]}
    replies = [{"error": 503}, "not yet", "nor now", done]
    async with serving({"replies": replies, "models": MODELS}) as server:
        outcome = await of_github(cli, server).ask("go", "--model", "wise", "--autopilot")
    statuses = [one["status"] for one in stored(cli, "trimtab.model_call")]
    assert statuses == ["error", "success", "success", "success"]
    assert outcome.result["usage"]["premiumRequests"] == 3


async def test_a_model_that_the_service_chose_costs_its_own_multiplier(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    replies = [{"text": "hello", "model": "quick"}]
    async with serving({"replies": replies, "models": MODELS}) as server:
        outcome = await of_github(cli, server).ask("go", "--model", "auto")
    assert outcome.result["usage"]["premiumRequests"] == 0.25


async def test_another_service_costs_no_premium_request(tmp_path: Path) -> None:
    async with serving(["hello"]) as server:
        outcome = await Cli(tmp_path).use(server).ask("go")
    assert outcome.result["usage"]["premiumRequests"] == 0
    assert "cost" not in outcome.of("assistant.usage")[0]


@pytest.mark.parametrize("flags", [("--model", "tiny"), ()])
async def test_the_largest_prompt_is_the_one_that_the_service_lists(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    cli = Cli(tmp_path)
    tiny = {**listed("tiny", 1, window=24_000), "is_chat_default": True}
    replies = [{"tools": [bash("echo 1")]}, "done"]
    async with serving({"replies": replies, "models": [tiny]}) as server:
        outcome = await of_github(cli, server).ask("go", *flags)
    limits = [one["tokenLimit"] for one in outcome.of("session.usage_info")]
    assert limits[-1] == 12_000
    assert (limits[0] == 12_000) is (not flags), "known from the start if the list was read"
