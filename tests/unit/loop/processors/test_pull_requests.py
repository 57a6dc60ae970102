"""Pull requests that calls open, by what they print."""

from typing import Any

import pytest

from loopkit import EchoTool, make_run
from trimtab.contracts.mcp import Origin
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import ShellEnd, ToolResult
from trimtab.loop.processors.pull_requests import PullRequests, find_address

ADDRESS = "https://github.com/o/r/pull/12"
PRINTED = f"Creating…\n{ADDRESS}\n"


async def opened(
    pending: PendingCall, text: str = PRINTED, kind: Any = "success", code: int | None = 0
) -> list[str]:
    run = make_run([])
    shell = None if code is None else ShellEnd(exit_code=code, duration_ms=1)
    result = ToolResult(text=text, kind=kind, shell=shell)
    assert await PullRequests().after_tool(run, pending, result) is result
    events = run.session.of("trimtab.pull_request_opened")  # type: ignore[attr-defined]
    assert all(event.tool_call_id == "c" for event in events)
    return [event.url for event in events]


def command(text: Any) -> PendingCall:
    return PendingCall(
        call=ToolCall(id="c", name="bash", arguments=""),
        tool=EchoTool("bash"),
        args={"command": text},
    )


def server_tool(name: str) -> PendingCall:
    tool = EchoTool("github-create")
    tool.origin = Origin(  # type: ignore[attr-defined]
        server="github", tool=name, transport="http", source="user", title=""
    )
    return PendingCall(call=ToolCall(id="c", name="x", arguments=""), tool=tool, args={})


@pytest.mark.parametrize(
    "text", ["gh pr create --fill", "cd r && gh  pr create", "glab mr create", "hub pull-request"]
)
async def test_commands_that_open_one_are_recorded(text: str) -> None:
    assert await opened(command(text)) == [ADDRESS]


@pytest.mark.parametrize("text", ["gh pr view 12", "echo hi", "mygh pr create", None, 7])
async def test_other_commands_that_print_an_address_are_not(text: Any) -> None:
    assert await opened(command(text)) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("create_pull_request", [ADDRESS]),
        ("create_merge_request", [ADDRESS]),
        ("get_pull_request", []),
    ],
)
async def test_tools_of_servers_are_known_by_their_names(name: str, found: list[str]) -> None:
    assert await opened(server_tool(name), code=None) == found


async def test_nothing_is_recorded_of_a_failure() -> None:
    create = command("gh pr create")
    assert await opened(create, kind="failure") == []
    assert await opened(create, code=1) == []
    assert await opened(create, text="no address") == []
    assert await opened(create, code=None) == [ADDRESS]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (f"see {ADDRESS}/files and {ADDRESS}9", ADDRESS),
        (
            "<https://gitlab.com/g/s/r/-/merge_requests/3>",
            "https://gitlab.com/g/s/r/-/merge_requests/3",
        ),
        ('"http://bb.local/p/r/pull-requests/4"', "http://bb.local/p/r/pull-requests/4"),
        ("https://github.com/o/r/issues/12", ""),
        ("https://github.com/o/r/pull/new", ""),
    ],
)
def test_the_first_address_in_a_text_is_found(text: str, address: str) -> None:
    assert find_address(text) == address
