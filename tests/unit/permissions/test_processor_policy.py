"""The policy that a session's agents share: how it changes, and what is asked of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopkit import EchoTool, make_run
from permissionkit import POLICY, rules
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import Answer, Policy, Rule
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.processor import Permissions

WRITE = Access(kind="write", target="/srv/project/a.py")
TOOL = Access(kind="custom-tool", target="deploy")


class Keeper:
    """Keeps approvals in memory, with how long they hold."""

    location = "/srv/project"

    def __init__(self) -> None:
        self.kept: list[tuple[JsonObject, bool]] = []

    def keep(self, approval: JsonObject, *, always: bool) -> None:
        self.kept.append((approval, always))

    def find_checks(self) -> Sequence[str] | None:
        return None

    def find_hosts(self) -> Sequence[str]:
        return ["https://a.test"]


class Touching(EchoTool):
    def __init__(self, *accesses: Access, name: str = "echo") -> None:
        super().__init__(name)
        self._accesses = accesses

    def access(self, args: Any, ctx: Any) -> Any:
        return self._accesses


def make_call(*accesses: Access, name: str = "echo", **fields: Any) -> PendingCall:
    call = ToolCall(id="c1", name=name, arguments="")
    return PendingCall(call=call, tool=Touching(*accesses, name=name), args={}, **fields)


def change(**fields: object) -> Policy:
    return msgspec.structs.replace(POLICY, **fields)


def test_rules_that_come_up_late_survive_another_policy() -> None:
    permissions = Permissions(change(deny=rules("shell(a)")))
    permissions.forbid(rules("shell(b)"))
    assert permissions.policy.deny == rules("shell(a)", "shell(b)")
    assert permissions.policy.late == rules("shell(b)")
    permissions.adopt(change(cwd="/other", deny=rules("shell(c)")))
    assert permissions.policy.cwd == "/other"
    assert permissions.policy.deny == rules("shell(c)", "shell(b)")
    assert permissions.policy.late == rules("shell(b)")


def test_what_is_granted_holds_once_for_all_agents_and_is_revoked_by_its_source() -> None:
    session = (Rule("shell", "make", "session"), Rule("shell", "ls", "session"))
    permissions = Permissions(change(allow=rules("shell(make)")))
    other = permissions.for_agent()
    permissions.grant(session)
    permissions.grant(session)
    assert other.policy.allow == (*rules("shell(make)"), *session)
    other.revoke(lambda rule: rule.argument == "make", ("session",))
    assert permissions.policy.allow == (*rules("shell(make)"), session[1])


def test_another_agent_keeps_its_calls_apart() -> None:
    fence: Any = object()
    permissions = Permissions(POLICY, fence=fence)
    permissions.fenced.add("c1")
    other = permissions.for_agent()
    assert other.fenced == set()
    assert other.fence is fence


def test_a_move_takes_the_policy_and_the_keeper_of_the_other_folder() -> None:
    permissions, keeper = Permissions(POLICY), Keeper()
    assert permissions.find_hosts() == ()
    permissions.move(Permissions(change(cwd="/other"), keeper=keeper))
    assert permissions.policy.cwd == "/other"
    assert permissions.find_hosts() == ["https://a.test"]


@pytest.mark.parametrize(
    ("deny", "path", "objects"),
    [
        ((), "/srv/project/.env", False),
        (("read(.env)",), "/srv/project/.env", True),
        (("read(.env)",), "/srv/project/a", False),
        (("read(.env)",), "/etc/a", False),
        (("read(.env)",), "/proc/1/environ", False),
        (("view",), "/srv/project/a", True),
        (("grep",), "/srv/project/a", False),
    ],
)
def test_only_a_rule_objects_to_reading_a_path(
    deny: tuple[str, ...], path: str, objects: bool
) -> None:
    reason = Permissions(change(deny=rules(*deny))).find_objection(path)
    assert bool(reason) is objects
    assert not objects or reason.endswith("forbids it.")


def test_an_image_that_a_person_attached_is_read_unasked_and_noted_once(tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 32)
    permissions = Permissions(change(roots=("/srv/project",)))
    access = Access(kind="read", target=str(image), mutates=False)
    assert permissions.judge(access, "view").verdict == "ask"
    permissions.trust_image(str(image))
    permissions.trust_image(str(image))
    assert permissions.policy.images == (str(image),)
    assert permissions.judge(access, "view").verdict == "allow"
    permissions.adopt(POLICY)
    assert permissions.policy.images == (str(image),)


def test_a_path_is_judged_by_its_name_and_by_where_it_leads(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / ".env").write_text("x")
    (work / "link").symlink_to(other / ".env")
    (work / "inside").symlink_to(work / "a")
    (other / "zlink").symlink_to(work / "a")
    policy = Policy(cwd=str(work), roots=(str(work),), deny=rules("read(zlink)"))
    permissions = Permissions(policy)

    def judge(path: Path) -> str:
        return permissions.judge(Access(kind="read", target=str(path)), "view").verdict

    assert judge(work / "link") == "ask"
    assert judge(work / "inside") == "allow"
    assert judge(other / "zlink") == "deny"
    by_target = Permissions(msgspec.structs.replace(policy, deny=rules("read(.env)")))
    assert by_target.judge(Access(kind="read", target=str(work / "link")), "x").verdict == "deny"


@pytest.mark.parametrize(
    ("deny", "tool", "verdict"),
    [
        ("edit", "edit", "deny"),
        ("edit", "create", "allow"),
        ("edit(a.py)", "edit", "deny"),
        ("edit(a.py)", "create", "deny"),
        ("edit(b.py)", "edit", "allow"),
        ("write(a.py)", "edit", "deny"),
        ("view", "zzz", "allow"),
    ],
)
def test_a_rule_with_the_name_of_a_tool_denies_just_that_tool(
    deny: str, tool: str, verdict: str
) -> None:
    permissions = Permissions(change(allow_all_tools=True, deny=rules(deny)))
    assert permissions.judge(WRITE, tool).verdict == verdict


async def test_a_call_may_bring_rules_of_its_own() -> None:
    run: Run = make_run([])
    permissions = Permissions(POLICY)
    refused = await permissions.before_tool(run, make_call(TOOL))
    assert isinstance(refused, ToolResult)
    granted = (Rule("custom-tool", "deploy"),)
    assert isinstance(
        await permissions.before_tool(run, make_call(TOOL, granted=granted)), PendingCall
    )
    assert permissions.policy == POLICY


async def test_every_access_of_a_call_is_judged() -> None:
    run: Run = make_run([])
    harmless = Access(kind="none")
    refused = await Permissions(POLICY).before_tool(run, make_call(harmless, TOOL))
    assert isinstance(refused, ToolResult)
    allowed = change(allow=rules("write"))
    refused = await Permissions(allowed).before_tool(run, make_call(WRITE, TOOL))
    assert isinstance(refused, ToolResult)


@pytest.mark.parametrize(
    ("access", "runs"),
    [
        (Access(kind="read", target="/etc/a"), True),
        (Access(kind="url", target="https://a.test"), True),
        (TOOL, True),
        (Access(kind="shell", target="rm -r a"), False),
    ],
)
async def test_a_hook_that_allows_works_like_allow_all_for_one_call(
    access: Access, runs: bool
) -> None:
    permissions = Permissions(change(always_ask=True))
    judged = await permissions.before_tool(make_run([]), make_call(access, hook_verdict="allow"))
    assert isinstance(judged, PendingCall) is runs
    assert permissions.policy.always_ask


async def test_where_a_path_leads_is_kept_until_the_call_ends() -> None:
    permissions, pending = Permissions(change(allow=rules("write"))), make_call(WRITE)
    await permissions.before_tool(make_run([]), pending)
    assert permissions.pins == {"c1": {"/srv/project/a.py": "/srv/project/a.py"}}
    await permissions.after_tool(make_run([]), pending, ToolResult(text=""))
    assert permissions.pins == {}


@pytest.mark.parametrize(
    ("allow", "all_paths", "deny", "secrets"),
    [
        (("read({}/)",), False, (), True),
        (("read({}/)",), True, (), False),
        (("write",), False, (), False),
        (("read",), False, (), False),
        ((), False, ("read(.env)",), False),
        (("read({}/)",), False, ("read(x.y)",), True),
    ],
)
async def test_a_search_elsewhere_leaves_out_secrets(
    tmp_path: Path,
    allow: tuple[str, ...],
    all_paths: bool,
    deny: tuple[str, ...],
    secrets: bool,
) -> None:
    given = rules(*(text.format(tmp_path) for text in allow))
    policy = change(
        roots=("/srv/project",), allow=given, allow_all_paths=all_paths, deny=rules(*deny)
    )
    permissions = Permissions(policy)
    assert bool(permissions.find_hidden()) is bool(deny)
    folder = Access(kind="read", target=str(tmp_path), mutates=False)
    await permissions.before_tool(make_run([]), make_call(folder, name="grep"))
    hidden = permissions.find_hidden("c1")
    assert any("id_rsa" in glob for glob in hidden) is secrets
    assert bool(hidden) is (secrets or bool(deny))


COMMANDS = {"kind": "commands", "commandIdentifiers": ["make"]}
MAKE = Access(kind="shell", target="make")


@pytest.mark.parametrize(
    ("kind", "outcome", "kept", "allowed"),
    [
        ("approve-once", "approved", [], []),
        ("approve-for-session", "approved-for-session", [], ["shell(make)"]),
        ("approve-for-location", "approved-for-location", [False], ["shell(make)"]),
        ("approve-permanently", "approved-for-location", [True], ["shell(make)"]),
        ("reject", "denied-interactively-by-user", [], []),
        ("deny-by-hook", "denied-by-permission-request-hook", [], []),
        (
            "user-not-available",
            "denied-no-approval-rule-and-could-not-request-from-user",
            [],
            [],
        ),
    ],
)
def test_an_answer_is_remembered_as_long_as_it_says(
    kind: str, outcome: str, kept: list[bool], allowed: list[str]
) -> None:
    keeper = Keeper()
    permissions = Permissions(POLICY, keeper=keeper)
    result = permissions.settle(MAKE, Answer(kind=kind))
    assert result["kind"] == outcome
    assert "feedback" not in result
    assert keeper.kept == [(COMMANDS, always) for always in kept]
    assert [str(rule) for rule in permissions.policy.allow] == allowed
    assert result.get("locationKey") == ("/srv/project" if kept else None)
    assert result.get("approval") == (COMMANDS if allowed else None)


def test_without_a_keeper_an_answer_for_longer_holds_for_the_session() -> None:
    permissions = Permissions(POLICY)
    result = permissions.settle(MAKE, Answer(kind="approve-permanently", feedback="fine"))
    assert result == {"kind": "approved-for-session", "approval": COMMANDS, "feedback": "fine"}
    (rule,) = permissions.policy.allow
    assert rule.source == "permanently"


def test_an_answer_may_say_itself_what_it_approves() -> None:
    permissions = Permissions(POLICY)
    approval: JsonObject = {"kind": "commands", "commandIdentifiers": ["other"]}
    permissions.settle(MAKE, Answer(kind="approve-for-session", approval=approval))
    assert permissions.policy.allow[0].argument == "other"


def test_an_answer_about_what_no_rule_can_cover_counts_once() -> None:
    permissions = Permissions(POLICY)
    destructive = Access(kind="shell", target="$x")
    result = permissions.settle(destructive, Answer(kind="approve-for-session"))
    assert result == {"kind": "approved"}
    assert permissions.policy.allow == ()


def test_an_approval_for_reading_is_bound_to_the_path() -> None:
    keeper = Keeper()
    permissions = Permissions(POLICY, keeper=keeper)
    permissions.settle(Access(kind="read", target="/a"), Answer(kind="approve-for-location"))
    assert keeper.kept == [({"kind": "read", "path": "/a"}, False)]
    assert [str(rule) for rule in permissions.policy.allow] == ["read(/a)"]


async def test_a_denial_names_the_rule_or_the_exclusion() -> None:
    run: Run = make_run([])
    session: Any = run.session
    by_rule = change(deny=rules("custom-tool(deploy)"))
    await Permissions(by_rule).before_tool(run, make_call(TOOL))
    excluded = change(deny=(Rule("read", "*.key", "acme", root="/srv/project"),))
    secret = Access(kind="read", target="/srv/project/a.key", mutates=False)
    await Permissions(excluded).before_tool(run, make_call(secret))
    special = Access(kind="read", target="/proc/1/environ", mutates=False)
    await Permissions(POLICY).before_tool(run, make_call(special))
    first, second, third = (event.result for event in session.of("permission.completed"))
    rule = {"kind": "custom-tool", "argument": "deploy"}
    assert first == {"kind": "denied-by-rules", "rules": [rule]}
    assert second["kind"] == "denied-by-content-exclusion-policy"
    assert second["path"] == "/srv/project/a.key"
    assert second["message"] == "The content exclusion '*.key' of acme forbids it."
    assert third == {"kind": "denied-by-rules", "rules": []}


def test_a_rule_for_all_commands_says_nothing_about_a_tool_that_writes() -> None:
    decision = Permissions(change(deny=rules("shell"))).judge(WRITE, "edit")
    assert (decision.verdict, decision.reason) == (
        "ask",
        "No rule allows writing /srv/project/a.py.",
    )


class TrustingKeeper(Keeper):
    def find_checks(self) -> Sequence[str] | None:
        return ["make test"]


@pytest.mark.parametrize(
    ("access", "offered"), [(Access(kind="shell", target="touch a"), True), (WRITE, False)]
)
async def test_rules_that_belong_together_are_offered_with_a_command_only(
    access: Access, offered: bool
) -> None:
    asked: list[JsonObject] = []

    async def answer(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind="approve-once")

    permissions = Permissions(POLICY, answer, TrustingKeeper())
    await permissions.before_tool(make_run([]), make_call(access))
    (request,) = asked
    assert ("everyday" in request) is offered
    if offered:
        assert request["everyday"]["title"] == "everyday work on this project"
        assert "every change of files here" in request["everyday"]["parts"]
