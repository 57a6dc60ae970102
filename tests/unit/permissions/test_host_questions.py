"""One question for each new host that a command in the sandbox wants to reach."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.host_questions import HostQuestions, find_missing, write_address


class Answering:
    """Permissions with a person who answers, or waits for a sign to."""

    def __init__(self, kind: str, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> None:
        self.policy = msgspec.structs.replace(POLICY, allow=rules(*allow), deny=rules(*deny))
        self.kind = kind
        self.asked: list[Any] = []

    async def ask_person(self, request_id: str, request: Any) -> Any:
        self.asked.append(request)
        await asyncio.sleep(0)
        return SimpleNamespace(kind=self.kind)

    def find_hosts(self) -> tuple[str, ...]:
        return ()

    def settle(self, access: Any, answer: Any) -> Any:
        return {"kind": "approved" if answer.kind.startswith("approve") else "denied"}


def questions(permissions: Answering) -> tuple[HostQuestions, list[Any]]:
    events: list[Any] = []
    return HostQuestions(permissions, events.append), events  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "may"), [("approve-once", True), ("approve-for-session", True), ("reject", False)]
)
async def test_a_person_is_asked_once_for_a_command_and_a_host(kind: str, may: bool) -> None:
    permissions = Answering(kind)
    hosts, events = questions(permissions)
    same = [hosts.ask("example.com", 443, "c1") for _ in range(3)]
    assert await asyncio.gather(*same) == [may] * 3
    assert await hosts.ask("example.com", 443, "c1") is may
    assert len(permissions.asked) == 1
    await hosts.ask("example.com", 80, "c1")
    await hosts.ask("example.com", 443, "c2")
    assert len(permissions.asked) == 3
    requested, completed = events[:2]
    assert requested.permission_request == permissions.asked[0]
    assert requested.request_id == completed.request_id
    assert (completed.tool_call_id, completed.decision_source) == ("c1", "human_response")
    assert completed.result == {"kind": "approved" if may else "denied"}


async def test_the_question_names_the_host_and_the_rule_for_it() -> None:
    permissions = Answering("reject")
    await questions(permissions)[0].ask("example.com", 443, "c1")
    (request,) = permissions.asked
    assert (request["kind"], request["toolCallId"]) == ("url", "c1")
    assert request["intention"] == "Connect to example.com"
    assert request["url"] == "https://example.com"
    assert request["reason"] == "A command in the sandbox wants to connect to example.com."
    assert request["suggestedRules"] == ["url(https://example.com)"]
    assert request["suggestedRulesCover"]


@pytest.mark.parametrize(
    ("allow", "deny", "may"),
    [
        (("url(example.com)",), (), True),
        ((), ("url(example.com)",), False),
        (("url(example.com)",), ("url(example.com)",), False),
    ],
)
async def test_rules_that_name_the_host_decide_first(
    allow: tuple[str, ...], deny: tuple[str, ...], may: bool
) -> None:
    permissions = Answering("reject" if may else "approve-once", allow, deny)
    hosts, events = questions(permissions)
    assert await hosts.ask("example.com", 443, "c1") is may
    assert (permissions.asked, events) == ([], [])


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("a.example", 443, "https://a.example"),
        ("a.example", 80, "http://a.example"),
        ("a.example", 8080, "https://a.example:8080"),
        ("::1", 443, "https://[::1]"),
        ("::1", 22, "https://[::1]:22"),
    ],
)
def test_a_host_and_port_are_written_as_rules_name_them(host: str, port: int, address: str) -> None:
    assert write_address(host, port) == address


async def test_a_rule_denies_a_host_by_every_port() -> None:
    permissions = Answering("approve-once", (), ("url(http://example.com:1)",))
    hosts, _ = questions(permissions)
    assert await hosts.ask("example.com", 443, "c1") is False
    allowed = Answering("reject", ("url(http://example.com)",), ())
    hosts, _ = questions(allowed)
    assert await hosts.ask("example.com", 443, "c1") is False
    assert len(allowed.asked) == 1


@pytest.mark.parametrize(
    ("address", "known", "allow", "missing"),
    [
        ("https://a.test", ["https://a.test", "https://b.test"], (), ["a", "b"]),
        ("https://a.test", ["https://a.test", "https://b.test"], ("url(b.test)",), []),
        ("https://a.test", ["https://a.test"], (), []),
        ("https://c.test", ["https://a.test", "https://b.test"], (), []),
        ("https://a.test", [], (), []),
        (
            "https://a.test",
            ["https://a.test", "https://b.test", "https://c.test"],
            ("url(b.test)", "web_fetch", "shell(curl)"),
            ["a", "c"],
        ),
    ],
)
def test_the_hosts_of_a_project_are_offered_together_if_several_are_missing(
    address: str, known: list[str], allow: tuple[str, ...], missing: list[str]
) -> None:
    policy = msgspec.structs.replace(POLICY, allow=rules(*allow))
    expected = [f"url(https://{name}.test)" for name in missing]
    assert find_missing(address, known, policy) == expected
