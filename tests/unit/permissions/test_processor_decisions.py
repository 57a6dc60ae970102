"""How a call is decided, asked about and recorded, step by step."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopkit import TouchingTool, make_run
from permissionkit import POLICY, rules
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import Answer, Policy
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.processor import Permissions

COMMAND = Access(kind="shell", target="make deploy")
HARMLESS = Access(kind="read", target="/srv/project/a.py", mutates=False)
DESTRUCTIVE = Access(kind="shell", target="rm -rf /")


class Person:
    """Answers every question in the same way."""

    def __init__(self, kind: str, feedback: str = "") -> None:
        self._answer = Answer(kind=kind, feedback=feedback)
        self.asked: list[JsonObject] = []

    async def __call__(self, request_id: str, request: JsonObject) -> Answer:
        self.asked.append(request)
        return self._answer


async def decide(
    access: Access,
    policy: Policy = POLICY,
    person: Person | None = None,
    hook: Any = None,
    verdict: Any = None,
) -> tuple[PendingCall | ToolResult, Run]:
    run = make_run([])
    permissions = Permissions(policy, person, hook=hook)
    pending = PendingCall(
        call=ToolCall(id="c1", name="echo", arguments=""),
        tool=TouchingTool(access),
        args={},
        hook_verdict=verdict,
    )
    return await permissions.before_tool(run, pending), run


def events(run: Run) -> tuple[list[Any], list[Any]]:
    session: Any = run.session
    return session.of("permission.requested"), session.of("permission.completed")


async def test_what_a_rule_denies_is_announced_as_settled_and_nobody_is_asked() -> None:
    person = Person("approve-once")
    policy = msgspec.structs.replace(POLICY, deny=rules("shell(make)"))
    refused, run = await decide(COMMAND, policy, person)
    assert isinstance(refused, ToolResult)
    assert refused.kind == "denied"
    assert refused.text.startswith("Permission denied: ")
    ((requested,), (completed,)) = events(run)
    assert requested.resolved_by_hook is True
    assert requested.request_id == completed.request_id
    assert completed.tool_call_id == "c1"
    assert completed.decision_source == "host_policy"
    assert completed.result["kind"] == "denied-by-rules"
    assert len(completed.result["rules"]) == 1
    assert person.asked == []


@pytest.mark.parametrize(
    ("kind", "runs", "result", "source"),
    [
        ("approve-once", True, "approved", "human_response"),
        ("reject", False, "denied-interactively-by-user", "human_response"),
    ],
)
async def test_a_person_is_asked_and_the_answer_recorded(
    kind: str, runs: bool, result: str, source: str
) -> None:
    person = Person(kind)
    verdict, run = await decide(COMMAND, person=person)
    assert isinstance(verdict, PendingCall) is runs
    ((requested,), (completed,)) = events(run)
    assert requested.resolved_by_hook is None
    assert (completed.result["kind"], completed.decision_source) == (result, source)
    (request,) = person.asked
    assert request["fullCommandText"] == "make deploy"
    assert request["reason"] == "No rule allows make."


@pytest.mark.parametrize(
    ("feedback", "told"),
    [
        ("", "The user rejected this tool call."),
        ("use staging", "The user rejected this tool call. They said: use staging"),
    ],
)
async def test_the_words_of_a_rejection_reach_the_model(feedback: str, told: str) -> None:
    verdict, _ = await decide(COMMAND, person=Person("reject", feedback))
    assert isinstance(verdict, ToolResult)
    assert (verdict.kind, verdict.text) == ("rejected", told)


async def test_with_nobody_to_ask_the_call_is_denied_with_the_reason() -> None:
    verdict, run = await decide(COMMAND)
    assert isinstance(verdict, ToolResult)
    assert verdict.kind == "denied"
    assert "No rule allows make." in verdict.text
    assert verdict.summary
    assert "No rule" not in verdict.summary
    (_, (completed,)) = events(run)
    assert completed.decision_source == "unattended_fallback"


@pytest.mark.parametrize(
    ("access", "verdict", "always_ask", "asked"),
    [
        (COMMAND, None, False, 1),
        (COMMAND, "allow", False, 0),
        (COMMAND, "allow", True, 0),
        (HARMLESS, None, False, 0),
        (HARMLESS, "ask", False, 1),
        (HARMLESS, "allow", False, 0),
        (DESTRUCTIVE, "allow", False, 1),
    ],
)
async def test_a_hook_before_the_call_may_ask_or_allow_but_not_lasting_damage(
    access: Access, verdict: Any, always_ask: bool, asked: int
) -> None:
    person = Person("approve-once")
    policy = msgspec.structs.replace(POLICY, always_ask=always_ask)
    allowed, _ = await decide(access, policy, person, verdict=verdict)
    assert isinstance(allowed, PendingCall)
    assert len(person.asked) == asked


async def test_a_hook_does_not_allow_what_a_rule_denies() -> None:
    policy = msgspec.structs.replace(POLICY, deny=rules("shell(make)"))
    verdict, _ = await decide(COMMAND, policy, Person("approve-once"), verdict="allow")
    assert isinstance(verdict, ToolResult)


@pytest.mark.parametrize(
    ("kind", "runs", "result", "source"),
    [
        ("approve-once", True, "approved", "human_response"),
        ("deny-by-hook", False, "denied-by-permission-request-hook", "host_policy"),
    ],
)
async def test_a_hook_may_answer_the_request_itself(
    kind: str, runs: bool, result: str, source: str
) -> None:
    async def answer(pending: PendingCall, request: JsonObject) -> Answer | None:
        return Answer(kind=kind, feedback="not today")

    person = Person("reject")
    verdict, run = await decide(COMMAND, person=person, hook=answer)
    assert isinstance(verdict, PendingCall) is runs
    ((requested,), (completed,)) = events(run)
    assert requested.resolved_by_hook is True
    assert (completed.result["kind"], completed.decision_source) == (result, source)
    assert person.asked == []
    if isinstance(verdict, ToolResult):
        assert verdict.text == "Denied by permissionRequest hook: not today"


async def test_a_hook_without_an_answer_leaves_it_to_the_person() -> None:
    async def pass_on(pending: PendingCall, request: JsonObject) -> Answer | None:
        return None

    person = Person("approve-once")
    _, run = await decide(COMMAND, person=person, hook=pass_on)
    ((requested,), _) = events(run)
    assert requested.resolved_by_hook is None
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    ("command", "at_risk"),
    [
        ("rm -rf old", ["old"]),
        ("rm -rf old .venv missing", ["old"]),
        ("rm -rf .venv", None),
        ("rm -rf o*", ["old"]),
        ("git stash drop", []),
        ("rm -rf old && git reset --hard", []),
        ("rm old/a", None),
    ],
)
@pytest.mark.parametrize("kept", [True, False, None])
async def test_a_rule_lets_a_command_destroy_only_what_undo_surely_brings_back(
    tmp_path: Path, command: str, at_risk: list[str] | None, kept: bool | None
) -> None:
    for name in ("old", ".venv"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    policy = msgspec.structs.replace(
        POLICY,
        cwd=str(tmp_path),
        roots=(str(tmp_path),),
        undone=(str(tmp_path),),
        allow=rules("write", "shell(rm)", "shell(git:*)"),
    )
    requested: list[list[str]] = []

    async def can_restore(paths: Sequence[str]) -> bool:
        requested.append([os.path.relpath(path, tmp_path) for path in paths])
        return bool(kept)

    permissions = Permissions(policy)
    if kept is not None:
        permissions.rely_on_undo(can_restore, lambda _: None)
    access = Access(kind="shell", target=command)
    call = ToolCall(id="c1", name="echo", arguments="")
    pending = PendingCall(call=call, tool=TouchingTool(access), args={})
    outcome = await permissions.for_agent().before_tool(make_run([]), pending)
    assert isinstance(outcome, PendingCall) is (at_risk is None or bool(kept))
    assert requested == ([] if at_risk is None or kept is None else [at_risk])
    if isinstance(outcome, ToolResult):
        assert "undo does not keep all that it would destroy" in outcome.text
