"""Answers of hooks: no output allows a call by accident, and their order does not matter."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import Ended, HookEntry, HookFailed
from trimtab.hooks.answers import MAX_CONTEXT_BYTES, check, combine, read_answer, read_end
from trimtab.hooks.caller import matches
from trimtab.hooks.claude import read_arguments, translate

GUARD = HookEntry(event="preToolUse", type="command", origin="user", file="f", command="x")
CLAUDE = HookEntry(
    event="preToolUse", type="command", origin="user", file="f", command="x", claude=True
)
DECISIONS = ("deny", "ask", "allow")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.sampled_from(DECISIONS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([
        "permissionDecision", "decision", "modifiedArgs", "continue", "hookSpecificOutput",
        "additionalContext", "updatedInput", "behavior", "type",
    ]), inner, max_size=5),
    max_leaves=10,
)  # fmt: skip


def decide(output: JsonObject | None) -> str:
    return str((output or {}).get("permissionDecision", "nothing"))


@given(st.text(max_size=60) | json_values.map(json.dumps))
def test_whatever_a_guard_prints_is_understood_or_a_failure(text: str) -> None:
    try:
        output = read_answer(GUARD, text)
    except HookFailed:
        return
    assert decide(output) in (*DECISIONS, "nothing")
    assert isinstance((output or {}).get("modifiedArgs", {}), dict)
    if decide(output) == "allow":
        assert "allow" in text or "approve" in text


@given(
    st.lists(
        st.sampled_from([{}, *({"permissionDecision": decision} for decision in DECISIONS)]),
        max_size=4,
    )
)
def test_the_strictest_decision_wins_in_every_order(outputs: list[JsonObject]) -> None:
    results = {decide(combine(order)) for order in itertools.permutations(outputs)}
    assert len(results) == 1
    said = [decide(output) for output in outputs]
    assert results == {next((decision for decision in DECISIONS if decision in said), "nothing")}


@given(code=st.integers(-64, 255), output=st.binary(max_size=40), errors=st.binary(max_size=40))
def test_only_a_good_end_can_allow(code: int, output: bytes, errors: bytes) -> None:
    ended = Ended(exit_code=code, output=output, errors=errors)
    try:
        said = read_end(GUARD, ended)
    except HookFailed:
        return
    if code:
        assert code == 2
        assert decide(said) == "deny"


def test_a_reason_goes_with_its_decision_and_contexts_are_joined() -> None:
    combined = combine(
        [
            {
                "permissionDecision": "allow",
                "permissionDecisionReason": "a",
                "additionalContext": "1",
            },
            {
                "permissionDecision": "deny",
                "permissionDecisionReason": "b",
                "additionalContext": "2",
            },
            {"permissionDecision": "ask", "permissionDecisionReason": "c"},
        ]
    )
    assert combined["permissionDecision"] == "deny"
    assert combined["permissionDecisionReason"] == "b"
    assert combined["additionalContext"] == "1\n\n2"


CLAUDES: list[tuple[JsonObject, JsonObject]] = [
    ({"decision": "block", "reason": "r"}, {"permissionDecision": "deny", "permissionDecisionReason": "r"}),
    ({"decision": "approve"}, {"permissionDecision": "allow"}),
    ({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}, {"permissionDecision": "ask"}),
    ({"hookSpecificOutput": {"updatedInput": {"command": "x"}}}, {"modifiedArgs": {"command": "x"}}),
    ({"continue": False, "stopReason": "enough"}, {"permissionDecision": "deny", "permissionDecisionReason": "enough"}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "meant"), CLAUDES, ids=range(len(CLAUDES)))
def test_claudes_words_mean_the_same(said: JsonObject, meant: JsonObject) -> None:
    understood = check("preToolUse", said)
    assert meant.items() <= understood.items()


def test_a_permission_request_in_claudes_words_is_understood() -> None:
    said = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}}
    assert check("permissionRequest", said) == {"behavior": "deny", "message": "no"}


def test_progress_lines_come_before_the_answer() -> None:
    text = '{"type":"progress","message":"half"}\n{"permissionDecision":"deny"}\n'
    assert decide(read_answer(GUARD, text)) == "deny"


def test_long_context_is_cut_and_says_so() -> None:
    said = check("postToolUse", {"additionalContext": "é" * MAX_CONTEXT_BYTES})["additionalContext"]
    assert len(said.encode()) < MAX_CONTEXT_BYTES + 100
    assert said.endswith(f"[cut: the hook returned {2 * MAX_CONTEXT_BYTES:,} bytes]")


@pytest.mark.parametrize(
    ("entry", "matcher", "tool", "fits"),
    [
        (GUARD, "", "bash", True),
        (GUARD, "*", "bash", True),
        (GUARD, "bash|edit", "bash", True),
        (GUARD, "bas", "bash", False),
        (GUARD, "Bash", "bash", False),
        (CLAUDE, "Bash", "bash", True),
        (CLAUDE, "bash", "bash", True),
        (CLAUDE, "Write|Edit", "create", True),
        (GUARD, "(", "bash", True),
    ],
)
def test_matchers_fit_whole_names(entry: HookEntry, matcher: str, tool: str, fits: bool) -> None:
    fields: dict[str, Any] = {name: getattr(entry, name) for name in entry.__struct_fields__}
    assert matches(HookEntry(**{**fields, "matcher": matcher}), {"toolName": tool}) is fits


def test_arguments_go_to_claude_by_both_names_and_come_back_by_ours() -> None:
    args = {"path": "/a", "old_str": "x", "new_str": "y"}
    said = translate("preToolUse", {"toolName": "edit", "toolArgs": args, "sessionId": "s"})
    assert said["tool_name"] == "Edit"
    assert said["tool_input"]["file_path"] == "/a"
    assert said["tool_input"]["old_string"] == "x"
    changed = {**said["tool_input"], "file_path": "/b"}
    assert read_arguments("edit", changed) == {**args, "path": "/b"}
