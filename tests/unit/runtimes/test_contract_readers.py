"""Lines of runtimes as they really print them, and what is read from them."""

import json
import random
from typing import Any

import pytest

from trimtab.contracts.customization import RUNTIME_NAMES
from trimtab.contracts.provider import Usage
from trimtab.runtimes.contract import (
    Asked,
    CallBegan,
    CallEnded,
    Ended,
    Item,
    ModelNamed,
    Piece,
    Said,
    SessionOpened,
    Spent,
)
from trimtab.runtimes.failures import build_error, classify
from trimtab.runtimes.program import read_line
from trimtab.runtimes.table import load_runtime


def read(name: str, *events: dict[str, Any]) -> list[Item]:
    reader = load_runtime(name).reader()
    items = [item for event in events for item in reader.read(event)]
    return [*items, *reader.finish()]


def of(items: list[Item], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


def stream(**event: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def block(key: str, **content: Any) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"id": key, "role": "assistant", "content": [content]},
        "parent_tool_use_id": None,
    }


def result_of(key: str) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": key, "content": "ok"}
    return {"type": "user", "message": {"content": [part]}, "parent_tool_use_id": None}


def ask(key: str) -> dict[str, Any]:
    given = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": key}
    request = {"subtype": "hook_callback", "callback_id": "trimtab", "input": given}
    return {"type": "control_request", "request_id": f"r-{key}", "request": request}


def test_a_message_of_claude_with_several_calls_stays_one_and_is_said_before_they_are_asked() -> (
    None
):
    items = read(
        "claude",
        stream(type="message_start", message={"id": "m1", "usage": {"input_tokens": 7}}),
        block("m1", type="text", text="I look."),
        block("m1", type="tool_use", id="a", name="Bash", input={"command": "ls"}),
        ask("a"),
        block("m1", type="tool_use", id="b", name="Bash", input={"command": "ls"}),
        stream(type="message_delta", usage={"output_tokens": 3}),
        stream(type="message_stop"),
        ask("b"),
        result_of("a"),
        result_of("b"),
        {"type": "result", "subtype": "success", "is_error": False, "total_cost_usd": 0.5},
    )
    (said,) = of(items, Said)
    assert (said.text, [call.id for call in said.calls]) == ("I look.", ["a", "b"])
    order = [item.call.id for item in items if isinstance(item, Asked)]
    assert order == ["a", "b"]
    first = next(index for index, item in enumerate(items) if isinstance(item, Asked))
    assert items.index(said) < first
    (spent,) = of(items, Spent)
    assert (spent.usage.input_tokens, spent.usage.output_tokens, spent.cost_usd) == (7, 3, 0.5)


def test_tokens_that_only_the_result_of_claude_counts_are_not_lost() -> None:
    usage = {"inputTokens": 10, "outputTokens": 4, "cacheReadInputTokens": 90}
    items = read(
        "claude",
        stream(type="message_start", message={"id": "m1", "usage": {"input_tokens": 7}}),
        stream(type="message_delta", usage={"output_tokens": 3}),
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "modelUsage": {"claude-x": usage},
        },
    )
    spent = of(items, Spent)
    assert sum(one.usage.input_tokens for one in spent) == 100
    assert sum(one.usage.output_tokens for one in spent) == 4


def test_a_result_of_claude_may_be_an_error_although_its_subtype_is_success() -> None:
    (ended,) = of(
        read(
            "claude",
            {
                "type": "result",
                "subtype": "success",
                "is_error": True,
                "api_error_status": 401,
                "result": "Invalid API key",
            },
        ),
        Ended,
    )
    assert (ended.error, ended.status) == ("Invalid API key", 401)


COPILOT = (
    {"type": "session.tools_updated", "data": {"model": "gpt-x"}, "ephemeral": True},
    {"type": "assistant.turn_start", "data": {"turnId": "0"}},
    {"type": "assistant.message", "data": {"content": "One.", "outputTokens": 5}},
    {"type": "assistant.turn_end", "data": {"turnId": "0"}},
    {"type": "assistant.turn_start", "data": {"turnId": "1"}},
    {"type": "assistant.message", "data": {"content": "Two.", "outputTokens": 6}},
    {"type": "assistant.turn_end", "data": {"turnId": "1"}},
    {"type": "session.task_complete", "data": {"success": True, "summary": "done"}},
)
RESULT = {
    "type": "result",
    "sessionId": "s-1",
    "exitCode": 0,
    "usage": {"premiumRequests": 2, "totalApiDurationMs": 77},
}


@pytest.mark.proves("ADP-12", "ADP-13")
def test_copilots_output_is_its_messages_its_session_its_model_and_its_figures() -> None:
    items = read("copilot", *COPILOT, RESULT)
    assert "".join(said.text for said in of(items, Said)) == "One.Two."
    assert of(items, SessionOpened) == [SessionOpened("s-1")]
    assert of(items, ModelNamed) == [ModelNamed("gpt-x")]
    spent = of(items, Spent)
    assert [one.usage for one in spent] == [Usage(output_tokens=5), Usage(output_tokens=6)]
    assert [one.cost_usd for one in spent] == [None, None]
    (ended,) = of(items, Ended)
    assert (ended.turns, ended.duration_ms, ended.premium_requests) == (2, 77, 2)
    assert (ended.cost_usd, ended.error) == (None, "")


@pytest.mark.proves("ADP-19")
def test_copilot_has_ended_only_with_its_result_also_after_task_complete() -> None:
    assert not of(read("copilot", *COPILOT), Ended)
    assert of(read("copilot", *COPILOT, RESULT), Ended)
    assert of(read("copilot", RESULT), Ended)


@pytest.mark.proves("ADP-18")
@pytest.mark.parametrize("pieces", [[], ["On", "e."]])
def test_copilots_message_is_whole_however_it_streamed(pieces: list[str]) -> None:
    deltas = [
        {"type": "assistant.message_delta", "data": {"deltaContent": piece}} for piece in pieces
    ]
    message = {"type": "assistant.message", "data": {"content": "One."}}
    items = read("copilot", *deltas, message, RESULT)
    assert [piece.text for piece in of(items, Piece)] == pieces
    assert [said.text for said in of(items, Said)] == ["One."]


@pytest.mark.proves("ADP-14")
@pytest.mark.parametrize("line", [b"", b"   ", b"Loading", b"[1]", b"{", b"\xff\xfe", b"12"])
def test_a_line_that_is_no_object_is_text(line: bytes) -> None:
    assert isinstance(read_line(line), str)


@pytest.mark.proves("ADP-14", "ADP-17")
@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_unknown_events_and_missing_fields_say_nothing(name: str) -> None:
    assert read_line(b'{"type": "brand.new", "data": {"x": 1}}') == {
        "type": "brand.new",
        "data": {"x": 1},
    }
    assert read(name, {"type": "brand.new"}, {"type": None}, {}, {"data": []}) == []


def test_codex_wraps_commands_and_numbers_items_anew_in_each_run() -> None:
    item = {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'echo \"a b\"'"}
    first, second = (
        of(read("codex", {"type": "item.started", "item": item}), CallBegan)[0].call
        for _ in range(2)
    )
    assert first.args == {"command": 'echo "a b"'}
    assert first.id != second.id


def test_pi_failed_if_its_last_message_says_so() -> None:
    message = {"role": "assistant", "stopReason": "error", "errorMessage": "401 no key"}
    items = read("pi", {"type": "message_end", "message": message}, {"type": "agent_end"})
    (ended,) = of(items, Ended)
    assert (ended.error, ended.status) == ("401 no key", 401)


def test_a_run_that_pi_does_not_finish_has_no_result() -> None:
    message = {"role": "assistant", "content": [], "stopReason": "toolUse"}
    assert not of(read("pi", {"type": "message_end", "message": message}), Ended)


@pytest.mark.proves("ADP-15")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "auth") for text in ("Not authenticated", "run copilot login", "401", "HTTP 403")),
        *((text, "rate_limit") for text in ("Rate limit hit", "too many requests", "got 429")),
        *(
            (text, "not_found")
            for text in ("unknown model x", "model not found", "the model x is invalid")
        ),
        *((text, "crash") for text in ("internal error", "panic: x", "Uncaught exception")),
        ("something else", ""),
    ],
)
def test_failures_are_told_apart_by_their_words(text: str, kind: str) -> None:
    assert classify(text) == kind


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [("no", 401, 7), ("no", 429, 8), ("no", 404, 8), ("panic", None, 8), ("odd", None, 8)],
)
def test_a_failure_has_the_exit_code_of_its_class(error: str, status: int, code: int) -> None:
    found = build_error(load_runtime("codex"), Ended(error=error, status=status))
    assert found.exit_code == code
    assert found.message.startswith("Codex failed: ")


LINES: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
        stream(type="message_start", message={"id": "m1", "usage": {"input_tokens": 7}}),
        stream(type="content_block_delta", delta={"text": "a", "thinking": "b"}),
        stream(type="message_delta", usage={"output_tokens": 3}),
        block("m1", type="tool_use", id="a", name="Edit", input={"file_path": "x"}),
        ask("a"),
        result_of("a"),
        {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "errors": ["x"],
            "total_cost_usd": 0.5,
            "modelUsage": {"m": {"inputTokens": 1}},
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "t"},
        {
            "type": "item.completed",
            "item": {"id": "i", "type": "command_execution", "command": "bash -lc 'ls'"},
        },
        {
            "type": "item.completed",
            "item": {"id": "j", "type": "file_change", "changes": [{"kind": "add", "path": "x"}]},
        },
        {
            "type": "item.completed",
            "item": {"id": "k", "type": "mcp_tool_call", "result": {"content": [{"text": "x"}]}},
        },
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
        {"type": "turn.failed", "error": {"message": "x"}},
    ],
    "copilot": [
        *COPILOT,
        {
            "type": "assistant.message",
            "data": {"content": "", "toolRequests": [{"toolCallId": "a", "name": "bash"}]},
        },
        {"type": "tool.execution_start", "data": {"toolCallId": "a", "arguments": {}}},
        {
            "type": "tool.execution_complete",
            "data": {"toolCallId": "a", "result": {"content": "x"}},
        },
        {"type": "session.error", "data": {"message": "x", "statusCode": 401}},
        RESULT,
    ],
    "opencode": [
        {"type": "step_start", "sessionID": "s", "part": {}},
        {"type": "tool_use", "part": {"tool": "bash", "callID": "a", "state": {"input": {}}}},
        {"type": "step_finish", "part": {"tokens": {"input": 1, "cache": {"read": 1}}, "cost": 1}},
        {"type": "error", "error": {"name": "x", "data": {"statusCode": 401, "message": "x"}}},
    ],
    "gemini": [
        {"type": "init", "session_id": "s", "model": "m"},
        {"type": "message", "role": "assistant", "content": "x", "delta": True},
        {"type": "tool_use", "tool_id": "a", "tool_name": "replace", "parameters": {"x": 1}},
        {"type": "tool_result", "tool_id": "a", "status": "error", "error": {"message": "x"}},
        {"type": "result", "status": "success", "stats": {"input_tokens": 1}},
    ],
    "pi": [
        {"type": "session", "id": "s"},
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": "x"}},
        {
            "type": "message_end",
            "message": {
                "role": "assistant",
                "content": [{"type": "toolCall", "id": "a", "name": "edit", "arguments": {}}],
                "usage": {"input": 1, "cost": {"total": 1}},
                "stopReason": "error",
                "errorMessage": "401 x",
            },
        },
        {"type": "tool_execution_end", "result": {"content": [{"text": "x"}]}},
    ],
}
ODD: tuple[Any, ...] = (None, True, -1, 1e300, float("nan"), "", "\ud800", [], [None], {}, {"x": 1})


def mangle(value: Any, chance: random.Random) -> Any:
    """Return a value of which parts are replaced, removed or repeated."""
    if chance.random() < 0.12:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {key: mangle(item, chance) for key, item in value.items() if chance.random() > 0.05}
        return kept | ({"extra": chance.choice(ODD)} if chance.random() < 0.1 else {})
    if isinstance(value, list):
        return [mangle(item, chance) for item in value for _ in range(chance.choice((1, 1, 2)))]
    return value


@pytest.mark.proves("ADP-17")
@pytest.mark.parametrize("name", RUNTIME_NAMES)
def test_no_mangled_line_breaks_a_reader(name: str) -> None:
    runtime, chance = load_runtime(name), random.Random(name)
    for _ in range(1500):
        lines = [mangle(line, chance) for line in chance.choices(LINES[name], k=6)]
        events = [line for line in lines if isinstance(line, dict)]
        for event in events:
            runtime.is_partial(event)
        for item in read(name, *events):
            if isinstance(item, CallBegan | Asked):
                called, args = runtime.rename(item.call)
                assert isinstance(called, str)
                assert isinstance(args, dict)
            if isinstance(item, CallEnded | Said):
                assert isinstance(item.text, str)


def test_no_bytes_break_the_reading_of_lines() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        line = bytearray(json.dumps(chance.choice(LINES["claude"])).encode())
        for _ in range(chance.randrange(1, 6)):
            line[chance.randrange(len(line))] = chance.randrange(256)
        assert isinstance(read_line(bytes(line)), dict | str)


def test_a_line_cut_anywhere_is_text_and_no_error() -> None:
    whole = json.dumps({"type": "result", "sessionId": "ä" * 20}).encode()
    for end in range(1, len(whole)):
        assert isinstance(read_line(whole[:end]), str)
