"""An approval is for exactly one call: what was approved is what runs, or nothing does."""

from collections.abc import Sequence
from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import approve_bundle
from trimtab.permissions.processor import Permissions

POLICY = Policy(cwd="/work", roots=("/work",), home="/home/someone")


class Person:
    """Approves, and does something to the request while it is open."""

    def __init__(self, kind: str, meddle: Any = None) -> None:
        self._kind = kind
        self._meddle = meddle
        self.digests: list[str] = []

    async def __call__(self, request_id: str, request: JsonObject) -> Answer:
        self.digests.append(request["digest"])
        if self._meddle is not None:
            self._meddle(request)
        return Answer(kind=self._kind)


async def use_echo(person: Person, *texts: str) -> tuple[EchoTool, Any]:
    tool = EchoTool(mutates=True)
    run = make_run(
        [*({"tools": [call(text=text)]} for text in texts), "done"],
        "go",
        tools=[tool],
        processors=[Permissions(POLICY, person)],
    )
    return tool, await drained(run)


@pytest.mark.parametrize("kind", ["approve-once", "approve-for-session"])
async def test_a_call_that_is_changed_while_it_is_asked_about_does_not_run(kind: str) -> None:
    def meddle(request: JsonObject) -> None:
        request["args"]["text"] = "something else"

    tool, session = await use_echo(Person(kind, meddle), "harmless")
    assert tool.runs == []
    (done,) = session.of("tool.execution_complete")
    assert not done.success
    assert "changed after it was approved" in done.error["message"]


async def test_a_call_that_gets_another_argument_while_it_is_asked_about_does_not_run() -> None:
    tool, _ = await use_echo(Person("approve-once", lambda r: r["args"].update(more=1)), "harmless")
    assert tool.runs == []


async def test_a_call_that_is_approved_as_it_is_runs() -> None:
    tool, session = await use_echo(Person("approve-once"), "harmless")
    assert tool.runs == [{"text": "harmless"}]
    (done,) = session.of("tool.execution_complete")
    assert done.success


async def test_every_call_has_a_digest_of_its_own() -> None:
    person = Person("approve-once")
    await use_echo(person, "one", "two", "one")
    first, second, third = person.digests
    assert first == third != second


class Keeper:
    """Keeps nothing; the project there has checks."""

    location = "/work"

    def __init__(self, *checks: str) -> None:
        self.checks = checks
        self.kept: list[JsonObject] = []

    def keep(self, approval: JsonObject, *, always: bool) -> None:
        self.kept.append(approval)

    def find_checks(self) -> Sequence[str]:
        return self.checks

    def find_hosts(self) -> list[str]:
        return []


class ShellTool(EchoTool):
    """Runs nothing; its text counts as a command."""

    def access(self, args: Any, ctx: Any) -> list[Access]:
        return [Access(kind="shell", target=args["text"])]


async def ask_about(keeper: Keeper, *commands: str, approve: bool) -> list[JsonObject]:
    """Return the requests about commands; the first that offers checks may approve them."""
    asked: list[JsonObject] = []

    async def answer(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        if approve and "bundle" in request:
            return approve_bundle(request)
        return Answer(kind="approve-once")

    replies = [*({"tools": [call(text=command)]} for command in commands), "done"]
    judge = Permissions(POLICY, answer, keeper)
    await drained(make_run(replies, "go", tools=[ShellTool()], processors=[judge]))
    return asked


async def test_all_checks_are_offered_with_the_first_question_about_one() -> None:
    keeper = Keeper("make test", "make lint", "pytest")
    asked = await ask_about(keeper, "frob", "make lint", "pytest", approve=False)
    assert [request.get("bundle") for request in asked] == [
        None,
        {
            "title": "the project's own commands",
            "rules": ["shell(make test)", "shell(make lint)", "shell(pytest)"],
        },
        {
            "title": "building, checking and running code",
            "rules": ["shell(@code)", "shell(./)"],
        },
    ]
    assert keeper.kept == []


async def test_checks_that_are_approved_together_are_not_asked_about_again() -> None:
    keeper = Keeper("make test", "pytest")
    asked = await ask_about(keeper, "pytest -q", "make test", "frob", approve=True)
    assert [request["fullCommandText"] for request in asked] == ["pytest -q", "frob"]
    names = ["make test", "pytest"]
    assert keeper.kept == [{"kind": "commands", "commandIdentifiers": names}]


async def test_a_single_check_is_offered_as_any_other_command() -> None:
    (asked,) = await ask_about(Keeper("frob"), "frob", approve=True)
    assert "bundle" not in asked
