"""Tools that fetch addresses themselves are held to the sandbox's hosts."""

import pytest

from loopkit import TouchingTool, make_run
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.firewall import Firewall

URL = Access(kind="url", target="https://evil.example/x", mutates=False)
FINE = Access(kind="url", target="https://fine.example", mutates=False)
FILE = Access(kind="read", target="https://evil.example/x", mutates=False)


@pytest.mark.parametrize(
    ("accesses", "refused"),
    [((URL,), True), ((FINE, URL), True), ((FINE,), False), ((FILE,), False)],
)
async def test_an_address_that_may_not_be_reached_is_refused(
    accesses: tuple[Access, ...], refused: bool
) -> None:
    firewall = Firewall(lambda address: "it is not listed" if "evil" in address else "")
    pending = PendingCall(
        call=ToolCall(id="c", name="x", arguments=""), tool=TouchingTool(*accesses), args={}
    )
    verdict = await firewall.before_tool(make_run([]), pending)
    if not refused:
        assert verdict is pending
        return
    assert isinstance(verdict, ToolResult)
    assert verdict.kind == "denied"
    assert verdict.text == (
        "The sandbox does not let https://evil.example/x be reached: it is not listed."
    )
