"""Failures of commands for which the sandbox seems to be the reason."""

from typing import Any

import msgspec
import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy, Rule
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.approvals import approve_bundle
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.processor import Permissions
from trimtab.permissions.sandbox_bypass import (
    NOTE,
    REFUSED,
    SIGNS,
    SandboxBypass,
    find_outside_bundle,
    runs_outside,
    warn_of_release,
    was_stopped,
)

POLICY = Policy(cwd="/work", roots=("/work",))


@pytest.mark.parametrize("sign", SIGNS)
def test_a_failed_command_that_shows_a_sign_of_it_was_stopped(sign: str) -> None:
    assert was_stopped(f"x: {sign}\n<exited with exit code 1>", POLICY)
    assert not was_stopped(f"x: {sign}\n<exited with exit code 0>", POLICY)
    assert not was_stopped(f"x: {sign}", POLICY)


def test_other_failures_and_refused_hosts_are_not_its_doing() -> None:
    assert not was_stopped("3 tests failed\n<exited with exit code 1>", POLICY)
    text = f"{REFUSED}\nx: {SIGNS[0]}\n<exited with exit code 1>"
    assert not was_stopped(text, POLICY)


class Shell(EchoTool):
    """Fails as in a sandbox, until it is let out."""

    def access(self, args: Any, ctx: Any) -> list[Access]:
        return [Access(kind="shell", target=args["text"], mutates=True)]

    async def run(self, args: Any, ctx: Any) -> ToolResult:
        self.runs.append(args)
        if len(self.runs) > 1:
            return ToolResult(text="done\n<exited with exit code 0>")
        return ToolResult(text=f"x: {SIGNS[0]}\n<exited with exit code 1>")


@pytest.mark.parametrize("kind", ["approve-once", "reject"])
async def test_a_stopped_command_runs_again_outside_only_if_a_person_lets_it(kind: str) -> None:
    asked: list[JsonObject] = []

    async def ask(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind=kind)

    tool, bypass = Shell(), SandboxBypass(POLICY, ask)
    run = make_run(
        [{"tools": [call(text="make")]}, "done"], "go", tools=[tool], processors=[bypass]
    )
    session = await drained(run)
    (complete,) = session.of("tool.execution_complete")
    assert [request["sandboxBypass"] for request in asked] == [True]
    approved = kind == "approve-once"
    assert len(tool.runs) == 1 + approved
    assert complete.sandboxed is (not approved)
    assert complete.result["content"].endswith("code 0>" if approved else NOTE)
    assert bypass.released == set()


CONFINED = msgspec.structs.replace(POLICY, confined=True)
SANDBOXED = msgspec.structs.replace(CONFINED, writable=("/work", "/tmp"))


class Inside(Shell):
    """Succeeds at once."""

    async def run(self, args: Any, ctx: Any) -> ToolResult:
        self.runs.append(args)
        return ToolResult(text="<exited with exit code 0>")


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "touch /elsewhere/a",
        "cp a /elsewhere/b",
        "rm /elsewhere/a",
        "make && echo x > /elsewhere/a",
    ],
)
async def test_a_command_that_the_sandbox_would_stop_is_asked_about_once(command: str) -> None:
    asked: list[JsonObject] = []

    async def ask(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind="approve-once")

    permissions = Permissions(SANDBOXED, ask)
    tool, bypass = Inside(), SandboxBypass(SANDBOXED, ask, permissions)
    replies = [{"tools": [call(text=text)]} for text in (command, "make")]
    run = make_run([*replies, "done"], "go", tools=[tool], processors=[permissions, bypass])
    session = await drained(run)
    assert [request.get("sandboxBypass") for request in asked] == [True]
    assert "The sandbox does not let /" in asked[0]["warning"]
    ran = [complete.sandboxed for complete in session.of("tool.execution_complete")]
    assert ran == [False, True]
    assert bypass.released == set()


@pytest.mark.parametrize(
    "command",
    ["make", "echo x > made", "touch /tmp/a", "cp /elsewhere/a b", "cat /elsewhere/a > /dev/null"],
)
def test_what_the_sandbox_lets_happen_stays_inside(command: str) -> None:
    access = Access(kind="shell", target=command, mutates=True)
    assert warn_of_release(access, SANDBOXED) == {}


def test_an_answer_lets_nothing_out_of_a_sandbox_in_which_commands_need_permission() -> None:
    access = Access(kind="shell", target="touch /elsewhere/a", mutates=True)
    policy = msgspec.structs.replace(SANDBOXED, confined=False)
    assert warn_of_release(access, SANDBOXED) != {}
    assert warn_of_release(access, policy) == {}


async def test_the_answer_of_a_hook_lets_nothing_out_of_the_sandbox() -> None:
    async def ask(request_id: str, request: JsonObject) -> Answer:
        return Answer(kind="reject")

    async def hook(pending: Any, request: JsonObject) -> Answer:
        return Answer(kind="approve-once")

    permissions = Permissions(SANDBOXED, ask, hook=hook)
    bypass = SandboxBypass(SANDBOXED, ask, permissions)
    replies = [{"tools": [call(text="touch /elsewhere/a")]}, "done"]
    run = make_run(replies, "go", tools=[Inside()], processors=[permissions, bypass])
    (complete,) = (await drained(run)).of("tool.execution_complete")
    assert complete.sandboxed is True


async def test_a_call_id_that_is_used_again_is_not_let_out_again() -> None:
    answers = [Answer(kind="approve-once"), Answer(kind="approve-once")]

    async def ask(request_id: str, request: JsonObject) -> Answer:
        return answers.pop(0)

    permissions = Permissions(SANDBOXED, ask)
    bypass = SandboxBypass(SANDBOXED, ask, permissions)
    permissions.let_out.add("again")
    replies = [{"tools": [call(text="make") | {"id": "again"}]}, "done"]
    run = make_run(replies, "go", tools=[Inside()], processors=[permissions, bypass])
    (complete,) = (await drained(run)).of("tool.execution_complete")
    assert complete.sandboxed is True


class Keeper:
    """Keeps approvals in memory."""

    location = "/work"

    def __init__(self) -> None:
        self.kept: list[JsonObject] = []

    def keep(self, approval: JsonObject, *, always: bool) -> None:
        self.kept.append(approval)

    def find_checks(self) -> list[str]:
        return []

    def find_hosts(self) -> list[str]:
        return []


async def test_an_answer_that_lasts_lets_the_commands_of_the_rule_out() -> None:
    asked: list[JsonObject] = []

    async def ask(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind="approve-for-location")

    keeper = Keeper()
    permissions = Permissions(CONFINED, ask, keeper)
    tool, bypass = Shell(), SandboxBypass(CONFINED, ask, permissions)
    replies = [{"tools": [call(text=text)]} for text in ("ssh a", "ssh a df | head -5")]
    run = make_run([*replies, "done"], "go", tools=[tool], processors=[permissions, bypass])
    session = await drained(run)
    (request,) = asked
    assert request["suggestedRules"] == ["outside(ssh a)"]
    assert [event.sandboxed for event in session.of("tool.execution_complete")] == [False, False]
    kept = {"kind": "commands", "commandIdentifiers": ["ssh a"], "outsideSandbox": True}
    assert keeper.kept == [kept]
    assert bypass.released == set()


async def test_commands_that_belong_together_are_let_out_by_one_answer() -> None:
    asked: list[JsonObject] = []

    async def ask(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return approve_bundle(request)

    keeper = Keeper()
    permissions = Permissions(CONFINED, ask, keeper)
    tool, bypass = Shell(), SandboxBypass(CONFINED, ask, permissions)
    commands = ("docker compose up -d", "docker compose restart web", "docker compose logs")
    replies = [{"tools": [call(text=text)]} for text in commands]
    run = make_run([*replies, "done"], "go", tools=[tool], processors=[permissions, bypass])
    await drained(run)
    (request,) = asked
    assert request["bundle"]["title"].endswith("outside the sandbox,")
    (kept,) = keeper.kept
    assert kept["outsideSandbox"] is True
    assert "docker compose down" not in kept["commandIdentifiers"]


@pytest.mark.parametrize("names", [["ssh", "rm"], ["docker compose up", "sudo"], []])
async def test_no_client_lets_out_more_than_was_offered(names: list[str]) -> None:
    async def ask(request_id: str, request: JsonObject) -> Answer:
        approval: JsonObject = {"kind": "commands", "commandIdentifiers": names}
        return Answer(kind="approve-for-location", approval=approval)

    keeper = Keeper()
    permissions = Permissions(CONFINED, ask, keeper)
    tool, bypass = Shell(), SandboxBypass(CONFINED, ask, permissions)
    replies = [{"tools": [call(text="docker compose up -d")]}, "done"]
    await drained(make_run(replies, "go", tools=[tool], processors=[permissions, bypass]))
    (kept,) = keeper.kept
    assert kept["commandIdentifiers"] == ["docker compose up"]


@pytest.mark.parametrize(
    ("command", "offered"), [("git add a", False), ("ssh a", False), ("docker ps", True)]
)
def test_a_bundle_is_let_out_only_if_the_sandbox_cannot_run_it(command: str, offered: bool) -> None:
    approval = {"commandIdentifiers": [" ".join(command.split()[:2])]}
    assert (find_outside_bundle(command, approval, CONFINED) is not None) is offered


@pytest.mark.parametrize(
    ("command", "outside"),
    [
        ("ssh a", True),
        ("ssh a 2>&1 | tail -5", True),
        ("ls", False),
        ("ssh a && make", False),
        ("ssh $(cat words)", False),
        ("$x a; ssh b", False),
        ("bash -c 'ssh a; rm b'", False),
        ("ssh a > out.txt", False),
        ("PATH=. ssh a", False),
        ("./ssh a", False),
    ],
)
def test_a_command_runs_outside_only_if_all_of_it_may(command: str, outside: bool) -> None:
    access = Access(kind="shell", target=command)
    allow = (Rule("outside", "ssh"), Rule("shell", "make"))
    assert runs_outside(access, msgspec.structs.replace(CONFINED, allow=allow)) is outside
    without = msgspec.structs.replace(POLICY, allow=allow)
    assert runs_outside(access, without) is False


def test_a_rule_that_lets_commands_out_allows_nothing_by_itself() -> None:
    policy = msgspec.structs.replace(POLICY, allow=(Rule("outside", "ssh"),))
    assert decide_shell("ssh a", policy).verdict == "ask"


@pytest.mark.parametrize(
    ("kind", "policy", "outcome"),
    [
        ("approve-once", POLICY, "approved"),
        ("reject", POLICY, "denied-interactively-by-user"),
        ("approve-once", CONFINED, "approved"),
        ("reject", CONFINED, "denied-interactively-by-user"),
        ("approve-for-session", CONFINED, "approved-for-session"),
    ],
)
async def test_the_question_and_its_outcome_are_recorded(
    kind: str, policy: Policy, outcome: str
) -> None:
    asked: list[JsonObject] = []

    async def ask(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind=kind)

    permissions = Permissions(policy, ask)
    bypass = SandboxBypass(policy, ask, permissions)
    replies = [{"tools": [call(text="ssh a")]}, "done"]
    session = await drained(make_run(replies, "go", tools=[Shell()], processors=[bypass]))
    (request,) = asked
    assert request["canOfferSessionApproval"] is False
    assert ("suggestedRules" in request) is policy.confined
    (completed,) = session.of("permission.completed")
    assert completed.result["kind"] == outcome
    assert completed.decision_source == "human_response"
    lasting = [rule for rule in permissions.policy.allow if rule.kind == "outside"]
    assert bool(lasting) is (kind == "approve-for-session")


@pytest.mark.parametrize(
    ("allow", "offered"),
    [
        ((), True),
        ((Rule("shell", "docker ps"),), True),
        ((Rule("write", "docker ps"),), True),
        ((Rule("outside", "docker ps"),), False),
    ],
)
def test_a_command_that_is_let_out_already_brings_no_bundle(
    allow: tuple[Rule, ...], offered: bool
) -> None:
    policy = msgspec.structs.replace(CONFINED, allow=allow)
    approval = {"commandIdentifiers": ["docker ps"]}
    assert (find_outside_bundle("docker ps", approval, policy) is not None) is offered


def test_a_refused_write_outside_what_is_writable_is_the_sandboxs_doing() -> None:
    text = "touch: cannot touch '/nowhere/a': No such file or directory\n<exited with exit code 1>"
    assert not was_stopped(text, POLICY)
