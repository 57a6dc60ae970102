"""Answers that hold for a while, and what ends that."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpkit import hosting, server, serving_http
from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.result_cache import MAX_BYTES, MAX_ENTRIES, MAX_SECONDS, ResultCache, read_ttl

HOUR = {"ttlMs": 3_600_000, "resources": []}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(1500, 1.5), (0, 0), (-5, 0), (None, 0), ("900", 0), (True, 0), (10**15, MAX_SECONDS)],
)
def test_a_hint_is_a_number_of_milliseconds(given: Any, seconds: float) -> None:
    assert read_ttl({"ttlMs": given}) == seconds
    assert read_ttl({"ttlMs": float("nan")}) == 0


def test_an_answer_is_for_the_same_request_only() -> None:
    cache = ResultCache()
    cache.keep("resources/read", {"uri": "a"}, HOUR)
    assert cache.find("resources/read", {"uri": "a"}) == HOUR
    assert cache.find("resources/read", {"uri": "b"}) is None
    assert cache.find("resources/list", {"uri": "a"}) is None


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("tools/call", HOUR),
        ("resources/list", {"resources": []}),
        ("resources/list", {**HOUR, "ttlMs": 0}),
        ("resources/read", {**HOUR, "resultType": "input_required"}),
        ("resources/read", {**HOUR, "text": "x" * MAX_BYTES}),
    ],
)
def test_other_answers_are_not_kept(method: str, answer: JsonObject) -> None:
    cache = ResultCache()
    cache.keep(method, {}, answer)
    assert cache.find(method, {}) is None


@pytest.mark.parametrize(
    ("notice", "forgotten"),
    [
        ("notifications/prompts/list_changed", {"prompts/list"}),
        (
            "notifications/resources/list_changed",
            {"resources/list", "resources/templates/list", "resources/read"},
        ),
        ("notifications/resources/updated", {"resources/read"}),
        ("notifications/message", set()),
    ],
)
def test_a_notification_ends_what_it_is_about(notice: str, forgotten: set[str]) -> None:
    cache = ResultCache()
    kept = ("prompts/list", "resources/list", "resources/templates/list", "resources/read")
    for method in kept:
        cache.keep(method, {}, HOUR)
    cache.forget(notice)
    assert {method for method in kept if cache.find(method, {}) is None} == forgotten


def test_only_so_many_answers_are_kept() -> None:
    cache = ResultCache()
    for number in range(MAX_ENTRIES + 1):
        cache.keep("resources/read", {"uri": str(number)}, HOUR)
    assert cache.find("resources/read", {"uri": "0"}) is None
    assert cache.find("resources/read", {"uri": str(MAX_ENTRIES)}) == HOUR


async def test_a_server_is_not_asked_again_while_its_answer_holds(tmp_path: Path) -> None:
    async with serving_http() as peer:
        peer.mode = "stateless"
        answers = [{"resources": [], "ttlMs": 60_000}, {"resources": ["newer"], "ttlMs": 0}]
        peer.refuse = answer_lists(answers)
        configured = server(type="http", url=peer.url)
        async with hosting(tmp_path, configured) as hosted:
            connection = hosted.host.servers["small"]
            assert connection.status == "connected"
            first = await connection.request("resources/list", {})
            assert await connection.request("resources/list", {}) == first
            connection._on_notice("notifications/resources/list_changed", {})
            assert (await connection.request("resources/list", {}))["resources"] == ["newer"]
    assert not answers


def answer_lists(answers: list[JsonObject]) -> Any:
    """Answers each request for resources with the next of some answers."""

    async def answer(exchange: Any) -> bool:

        message = msgspec.json.decode(exchange.request.body)
        if message.get("method") != "resources/list":
            return False
        result = {"jsonrpc": "2.0", "id": message["id"], "result": answers.pop(0)}
        await exchange.answer(200, msgspec.json.encode(result))
        return True

    return answer
