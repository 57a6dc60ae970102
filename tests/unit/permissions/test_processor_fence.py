"""Commands behind the fence: which run there, what it keeps from them, and what it stops."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopkit import EchoTool, make_run
from permissionkit import POLICY, rules
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.permission import Answer, Decision, Policy
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ShellEnd, ToolResult
from trimtab.permissions.processor import LEFT_OUT, Permissions

READS = msgspec.structs.replace(POLICY, allow=rules("shell(ls)", "shell(make)"))
SHIELDED = msgspec.structs.replace(POLICY, allow=rules("shell(make)"), deny=rules("read(.env)"))
LIMIT = "<stopped by the fence: 4 GB of memory>"


class Fence:
    """Works as it is told to, and notes what it is asked."""

    name = "Landlock"

    def __init__(self, problem: str = "", *, unprepared: str = "", trusted: bool = True) -> None:
        self.problem = problem
        self.unprepared = unprepared
        self.trusted = trusted
        self.prepared: list[Policy] = []
        self.shielded: list[Policy] = []
        self.followed: list[Policy] = []
        self.offers = 0

    def find_problem(self) -> str:
        return self.problem

    def prepare(self, policy: Policy) -> str:
        self.prepared.append(policy)
        return self.unprepared

    def shield(self, policy: Policy) -> str:
        self.shielded.append(policy)
        return self.unprepared

    def keeps_writes(self) -> bool:
        return self.trusted

    def trusts(self, programs: Iterable[str], policy: Policy) -> bool:
        return self.trusted

    def offer_sandbox(self) -> None:
        self.offers += 1

    def follow(self, policy: Policy) -> None:
        self.followed.append(policy)


class Shell(EchoTool):
    """Prints what a command would, the first time; then it is done."""

    def __init__(self, access: Access, text: str = "", code: int = 0) -> None:
        super().__init__()
        self._access, self._text, self._code = access, text, code

    def access(self, args: Any, ctx: Any) -> Any:
        return [self._access]

    async def run(self, args: Any, ctx: Any) -> ToolResult:
        self.runs.append(args)
        if len(self.runs) > 1:
            return ToolResult(text="done outside")
        return ToolResult(text=self._text, shell=ShellEnd(exit_code=self._code, duration_ms=1))


class Person:
    def __init__(self, kind: str = "approve-once") -> None:
        self._kind = kind
        self.asked: list[JsonObject] = []

    async def __call__(self, request_id: str, request: JsonObject) -> Answer:
        self.asked.append(request)
        return Answer(kind=self._kind)


def make_call(
    command: str, *, text: str = "", code: int = 0, detail: Any = None, **fields: Any
) -> PendingCall:
    access = Access(kind="shell", target=command, detail=detail or {})
    return PendingCall(
        call=ToolCall(id="c1", name="bash", arguments=""),
        tool=Shell(access, text, code),
        args=fields.pop("args", {}),
        **fields,
    )


async def run_fenced(
    permissions: Permissions, pending: PendingCall
) -> tuple[PendingCall | ToolResult, ToolResult | None]:
    """Return what becomes of a call, and the result if it runs."""
    run: Run = make_run([])
    judged = await permissions.before_tool(run, pending)
    if isinstance(judged, ToolResult):
        return judged, None
    return judged, await judged.tool.run(judged.args, run.tool_context("c1"))


@pytest.mark.parametrize(
    ("command", "fenced", "asked"),
    [("ls", True, 0), ("sort $x", True, 0), ("make", False, 1), ("touch a", False, 1)],
)
async def test_what_only_reads_runs_behind_the_fence_and_the_rest_is_asked_about(
    command: str, fenced: bool, asked: int
) -> None:
    fence, person = Fence(), Person()
    permissions = Permissions(POLICY, person, fence=fence)
    judged, _ = await run_fenced(permissions, make_call(command))
    assert isinstance(judged, PendingCall)
    assert permissions.fenced == ({"c1"} if fenced else set())
    assert len(person.asked) == asked
    assert len(fence.prepared) == fenced


@pytest.mark.parametrize(
    ("command", "fence", "asked", "reason"),
    [
        ("ls", Fence("too old"), False, ""),
        ("ls", Fence("too old", trusted=False), True, "too old"),
        ("ls *", Fence("too old"), True, "too old"),
        ("ls", Fence(unprepared="no room"), True, "no room"),
        ("ls", None, True, "no fence was set up"),
    ],
)
async def test_without_a_fence_that_works_only_what_is_harmless_as_written_runs_unasked(
    command: str, fence: Fence | None, asked: bool, reason: str
) -> None:
    person = Person()
    permissions = Permissions(POLICY, person, fence=fence)
    await run_fenced(permissions, make_call(command))
    assert permissions.fenced == set()
    told = f"It seems to only read, but nothing can hold it to that: {reason}."
    assert [request["reason"] for request in person.asked] == ([told] if asked else [])


async def test_a_rule_lets_a_reading_command_run_outside_where_no_fence_works() -> None:
    person = Person()
    for fence in (None, Fence("too old", trusted=False), Fence(unprepared="no room")):
        permissions = Permissions(READS, person, fence=fence)
        judged, _ = await run_fenced(permissions, make_call("ls *"))
        assert isinstance(judged, PendingCall)
        assert permissions.fenced == set()
    assert person.asked == []


@pytest.mark.parametrize(
    ("policy", "mode", "fenced"),
    [(READS, "async", False), (READS, "sync", True), (POLICY, "async", True)],
)
async def test_a_command_of_a_rule_that_nobody_waits_for_runs_outside(
    policy: Policy, mode: str, fenced: bool
) -> None:
    permissions = Permissions(policy, fence=Fence())
    await run_fenced(permissions, make_call("ls *", args={"mode": mode}))
    assert permissions.fenced == ({"c1"} if fenced else set())


async def test_a_command_that_outlives_the_session_is_asked_about_without_a_rule() -> None:
    person = Person()
    detached = {"detached": True}
    permissions = Permissions(POLICY, person, fence=Fence())
    await run_fenced(permissions, make_call("ls", detail=detached))
    (request,) = person.asked
    assert request["reason"] == "It would outlive the session, out of reach of the fence."
    by_rule = Permissions(READS, person, fence=Fence())
    await run_fenced(by_rule, make_call("ls", detail=detached))
    assert len(person.asked) == 1
    assert by_rule.fenced == permissions.fenced == set()


@pytest.mark.parametrize(
    ("kind", "text", "runs"),
    [("approve-once", "done outside", 2), ("reject", "The user rejected this tool call.", 1)],
)
async def test_a_person_is_asked_about_what_the_fence_stopped(
    kind: str, text: str, runs: int
) -> None:
    person, pending = Person(kind), make_call("ls", text=LIMIT, code=1)
    permissions = Permissions(POLICY, person, fence=Fence())
    _, result = await run_fenced(permissions, pending)
    assert result is not None
    assert result.text == text
    reason = "It would exceed a limit (4 GB of memory), which it may not do without a permission."
    assert [(asked["reason"], asked["warning"]) for asked in person.asked] == [(reason, reason)]
    assert isinstance(pending.tool, Shell)
    assert len(pending.tool.runs) == runs
    assert permissions.fenced == set()


async def test_what_the_fence_stopped_of_a_reading_agent_is_denied() -> None:
    person, pending = Person(), make_call("ls", text=LIMIT, code=1, only_reads=True)
    _, result = await run_fenced(Permissions(POLICY, person, fence=Fence()), pending)
    assert result is not None
    assert (result.kind, result.text[:34]) == ("denied", "Permission denied: It would exceed")
    assert person.asked == []


async def test_what_the_fence_stopped_of_a_rule_runs_again_outside_unasked() -> None:
    person, pending = Person(), make_call("ls", text=LIMIT, code=1)
    permissions = Permissions(READS, person, fence=Fence())
    _, result = await run_fenced(permissions, pending)
    assert result is not None
    assert result.text == "done outside"
    assert person.asked == []
    assert permissions.fenced == set()


@pytest.mark.parametrize(
    ("policy", "command", "only_reads", "fenced"),
    [
        (READS, "ls", True, True),
        (msgspec.structs.replace(POLICY, allow_all_tools=True), "ls", True, True),
        (msgspec.structs.replace(POLICY, allow_all_tools=True), "ls", False, False),
        (READS, "make", True, False),
    ],
)
async def test_a_reading_agents_commands_run_behind_the_fence_whatever_allows_them(
    policy: Policy, command: str, only_reads: bool, fenced: bool
) -> None:
    permissions = Permissions(policy, fence=Fence())
    judged, _ = await run_fenced(permissions, make_call(command, only_reads=only_reads))
    assert isinstance(judged, PendingCall)
    assert permissions.fenced == ({"c1"} if fenced else set())


@pytest.mark.parametrize(
    ("policy", "fence", "asked"),
    [
        (READS, Fence(unprepared="no room"), []),
        (SHIELDED, Fence(), []),
        (SHIELDED, Fence(unprepared="no room"), ["No room."]),
        (SHIELDED, None, ["No shield was set up."]),
        (
            msgspec.structs.replace(POLICY, deny=rules("read(.env)")),
            Fence(unprepared="no room"),
            ["No rule allows make."],
        ),
    ],
)
async def test_what_may_not_be_read_is_kept_from_commands_outside_the_fence(
    policy: Policy, fence: Fence | None, asked: list[str]
) -> None:
    person = Person()
    await run_fenced(Permissions(policy, person, fence=fence), make_call("make"))
    assert [request["reason"] for request in person.asked] == asked
    if fence is not None:
        # Again after an answer: files may have come meanwhile.
        assert fence.shielded == ([policy] * (1 + len(asked)) if policy.deny else [])


async def test_a_denied_command_needs_no_shield() -> None:
    fence = Fence()
    policy = msgspec.structs.replace(POLICY, deny=rules("shell(make)", "read(.env)"))
    await run_fenced(Permissions(policy, fence=fence), make_call("make"))
    assert fence.shielded == []


async def test_the_fence_lets_folders_be_read_that_a_rule_allows_until_the_call_ends(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path)
    fence = Fence()
    policy = msgspec.structs.replace(
        POLICY, roots=("/srv/project",), allow=rules(f"read({folder}/)")
    )
    permissions = Permissions(policy, fence=fence)
    pending = make_call(f"cat {folder}/a")
    await run_fenced(permissions, pending)
    assert [policy.granted for policy in fence.prepared] == [(folder,)]
    await permissions.after_tool(make_run([]), pending, ToolResult(text=""))
    assert permissions.fenced == set()
    await run_fenced(permissions, make_call("ls"))
    assert fence.prepared[-1].granted == ()


@pytest.mark.parametrize(("answers", "offers"), [(4, 0), (5, 1), (6, 1)])
async def test_after_many_answers_about_commands_the_sandbox_is_offered_once(
    answers: int, offers: int
) -> None:
    fence = Fence()
    permissions = Permissions(POLICY, Person(), fence=fence)
    for _ in range(answers):
        await run_fenced(permissions, make_call("make"))
    assert fence.offers == offers


async def test_questions_that_a_hook_answers_do_not_count() -> None:
    async def answer(pending: PendingCall, request: JsonObject) -> Answer | None:
        return Answer(kind="approve-once")

    fence = Fence()
    permissions = Permissions(POLICY, Person(), hook=answer, fence=fence)
    for _ in range(6):
        await run_fenced(permissions, make_call("make"))
    assert fence.offers == 0


@pytest.mark.parametrize(
    ("decision", "fence", "writable", "told"),
    [
        (Decision(verdict="ask", reason="x"), Fence(), None, "none: it would not run unasked"),
        (Decision(verdict="allow", reason="By a rule."), Fence(), None, "none: by a rule"),
        (Decision(verdict="allow", reason="It is."), Fence(), ("/w",), "the sandbox: it is"),
        (
            Decision(verdict="allow", reason="x", harmless=True),
            Fence(),
            None,
            "Landlock: nobody approved it, so it may change nothing",
        ),
        (
            Decision(verdict="allow", reason="x", harmless=True),
            None,
            None,
            "none: it is harmless as it is written",
        ),
        (
            Decision(verdict="allow", reason="x", harmless=True, plain=frozenset(("ls",))),
            Fence(),
            None,
            "none: it is harmless as it is written",
        ),
        (
            Decision(verdict="allow", reason="x", harmless=True, rule=rules("shell(ls)")[0]),
            Fence(),
            None,
            "Landlock: it only reads; what that stops, shell(ls) allows outside",
        ),
    ],
)
def test_a_person_is_told_in_which_fence_a_command_would_run(
    decision: Decision, fence: Fence | None, writable: tuple[str, ...] | None, told: str
) -> None:
    policy = msgspec.structs.replace(POLICY, writable=writable)
    assert Permissions(policy, fence=fence).describe_fence(decision) == told


@pytest.mark.parametrize(
    ("name", "kind", "deny", "left_out"),
    [
        ("grep", "success", "read(.env)", True),
        ("glob", "success", "read(.env)", True),
        ("view", "success", "read(.env)", False),
        ("grep", "denied", "read(.env)", False),
        ("grep", "success", "shell(rm)", False),
    ],
)
async def test_a_search_says_that_denied_files_are_left_out(
    name: str, kind: Any, deny: str, left_out: bool
) -> None:
    policy = msgspec.structs.replace(POLICY, deny=rules(deny))
    pending = PendingCall(
        call=ToolCall(id="c1", name=name, arguments=""), tool=EchoTool(name), args={}
    )
    result = ToolResult(text="found", kind=kind)
    given = await Permissions(policy).after_tool(make_run([]), pending, result)
    assert given.text == ("found" + LEFT_OUT if left_out else "found")


@pytest.mark.parametrize(
    ("line", "code", "all_paths", "asked"),
    [
        ("ls: cannot access '{}': No such file or directory", 2, False, 1),
        ("ls: cannot access '{}': No such file or directory", 2, True, 0),
        ("ls: cannot open directory '{}': Permission denied", 0, False, 1),
        ("cat: cannot open directory '{}': Permission denied", 0, False, 0),
    ],
)
async def test_what_a_command_may_read_and_what_others_print_is_not_taken_for_a_stop(
    tmp_path: Path, line: str, code: int, all_paths: bool, asked: int
) -> None:
    person = Person()
    policy = msgspec.structs.replace(POLICY, roots=("/srv/project",), allow_all_paths=all_paths)
    permissions = Permissions(policy, person, fence=Fence())
    await run_fenced(permissions, make_call("ls a", text=line.format(tmp_path), code=code))
    assert len(person.asked) == asked
