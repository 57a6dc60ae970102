"""Plan mode and read-only agents: what is refused, and in which words."""

import pytest

from loopkit import TouchingTool, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access, ToolResult
from trimtab.loop.processors.plan_mode import PlanMode

READ = Access(kind="read", target="a.py", mutates=False)
WRITE = Access(kind="write", target="b.py")
NAMELESS = Access(kind="shell", target="")


async def judge(mode: str, *accesses: Access, read_only: bool = False) -> PendingCall | ToolResult:
    pending = PendingCall(
        call=ToolCall(id="c", name="echo", arguments=""), tool=TouchingTool(*accesses), args={}
    )
    processor = PlanMode(lambda access: access.mutates, lambda: read_only)
    return await processor.before_tool(make_run([], mode=mode), pending)


@pytest.mark.parametrize(
    ("mode", "read_only", "kind", "words"),
    [
        ("plan", False, "denied", "Plan mode: write 'b.py' is refused"),
        ("plan", True, "denied", "Plan mode: write 'b.py' is refused"),
        ("interactive", True, "failure", "This agent is read-only: write 'b.py' is refused"),
        ("autopilot", True, "failure", "This agent is read-only: write 'b.py' is refused"),
    ],
)
async def test_a_call_that_may_change_something_is_refused(
    mode: str, read_only: bool, kind: str, words: str
) -> None:
    refused = await judge(mode, READ, WRITE, read_only=read_only)
    assert isinstance(refused, ToolResult)
    assert refused.kind == kind
    assert refused.text.startswith(words)


async def test_an_access_without_a_target_is_named_by_its_kind() -> None:
    refused = await judge("plan", NAMELESS)
    assert isinstance(refused, ToolResult)
    assert refused.text.startswith("Plan mode: shell is refused")


@pytest.mark.parametrize(
    ("mode", "read_only", "only_reads"),
    [("plan", False, True), ("interactive", True, True), ("interactive", False, False)],
)
async def test_a_call_that_reads_goes_on_and_is_held_to_that(
    mode: str, read_only: bool, only_reads: bool
) -> None:
    allowed = await judge(mode, READ, read_only=read_only)
    assert isinstance(allowed, PendingCall)
    assert allowed.only_reads is only_reads


async def test_in_other_modes_nothing_is_refused() -> None:
    assert isinstance(await judge("interactive", WRITE), PendingCall)
