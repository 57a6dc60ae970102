"""Failures of commands for which the sandbox seems to be the reason."""

from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.sandbox_bypass import NOTE, REFUSED, SIGNS, SandboxBypass, was_stopped

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
