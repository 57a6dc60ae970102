"""Servers that are programs: the protocol with a good one, and bad ones that harm nobody else."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpkit import heard, hosting, methods, server
from trimtab.contracts.customization import McpServer
from trimtab.mcp.messages import STATELESS, VERSIONS
from trimtab.workspace import process_tracking


async def test_a_server_is_greeted_listed_and_called(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(log=log)) as hosted:
        result = await hosted.call("small-echo", text="hi")
        assert (result.text, result.kind) == ("hi", "success")
        assert hosted.states() == ["pending", "connected"]
        assert hosted.host.servers["small"].instructions == "Call echo before anything else."
    hello = heard(log)[1]["params"]
    assert hello["protocolVersion"] == VERSIONS[0]
    assert hello["capabilities"] == {"roots": {"listChanged": False}}
    order = ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert methods(log) == ["server/discover", *order]


@pytest.mark.parametrize("mode", ["text-ids", "float-ids"])
async def test_a_server_that_returns_ids_as_text_is_understood(tmp_path: Path, mode: str) -> None:
    async with hosting(tmp_path, server(mode=mode)) as hosted:
        assert (await hosted.call("small-echo", text="hi")).text == "hi"


async def test_a_stateless_server_is_told_everything_with_each_request(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(mode="stateless", log=log)) as hosted:
        assert (await hosted.call("small-echo", text="hi")).text == "hi"
        assert hosted.host.servers["small"].instructions == "Call echo before anything else."
    assert set(methods(log)) == {
        *("server/discover", "tools/list", "tools/call", "subscriptions/listen")
    }
    for message in heard(log):
        meta = message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == STATELESS
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "trimtab"
        assert "roots" in meta["io.modelcontextprotocol/clientCapabilities"]


async def test_a_program_that_only_knows_the_older_greeting_is_started_again(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(mode="strict", log=log)) as hosted:
        assert hosted.states() == ["pending", "connected"]
    assert methods(log)[:2] == ["server/discover", "initialize"]


async def test_a_server_that_ignores_unknown_requests_is_greeted_the_older_way(
    tmp_path: Path,
) -> None:
    async with hosting(tmp_path, server(mode="deaf")) as hosted:
        assert hosted.states() == ["pending", "connected"]


@pytest.mark.parametrize("mode", ["asks", "stateless"])
async def test_a_form_is_answered_in_both_versions(tmp_path: Path, mode: str) -> None:
    asked: list[Any] = []

    async def answer(name: str, params: Any, _: str | int) -> Any:
        asked.append((name, params["message"]))
        return {"action": "accept", "content": {"count": 3}}

    answers = {"elicitation/create": answer}
    async with hosting(tmp_path, server(mode=mode), answers=answers) as hosted:
        given = json.loads((await hosted.call("small-ask")).text)
    assert asked == [("small", "Which colour?")]
    form = given if mode == "asks" else given["inputResponses"]["form"]
    assert form == {"action": "accept", "content": {"count": 3}}
    assert mode == "asks" or given["requestState"] == "s-1"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_server_may_speak_an_older_version(tmp_path: Path, version: str) -> None:
    async with hosting(tmp_path, server(mode=f"version={version}")) as hosted:
        assert hosted.states()[-1] == "connected"


async def test_a_server_with_another_protocol_is_not_used(tmp_path: Path) -> None:
    async with hosting(tmp_path, server(mode="version=1999-01-01")) as hosted:
        assert hosted.states()[-1] == "failed"
        assert "it uses version '1999-01-01' of the protocol" in hosted.error()


async def test_all_pages_of_a_list_are_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(mode="pages", log=log)) as hosted:
        assert len(hosted.host.tools) == 12
    assert methods(log).count("tools/list") == 3


@pytest.mark.parametrize(
    ("tool", "text", "kind"),
    [
        ("fail", "it did not work", "failure"),
        ("refuse", "The MCP server small rejected the call: bad arguments", "failure"),
        ("data", '{"answer":42}', "success"),
        ("die", "The MCP server small cannot be used: its program exited.", "failure"),
    ],
)
async def test_every_end_of_a_call_is_told_to_the_model(
    tmp_path: Path, tool: str, text: str, kind: str
) -> None:
    async with hosting(tmp_path, server()) as hosted:
        result = await hosted.call(f"small-{tool}")
        assert (result.text, result.kind) == (text, kind)


async def test_a_server_may_ask_for_the_working_directory_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    async with hosting(tmp_path, server()) as hosted:
        roots = json.loads((await hosted.call("small-roots")).text)["roots"]
        assert roots == [{"uri": f"file://{tmp_path}", "name": tmp_path.name}]


async def test_a_thousand_requests_for_what_is_not_offered_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(mode="requests", log=log)) as hosted:
        assert (await hosted.call("small-echo", text="x")).text == "x"
    refused = [message["error"]["code"] for message in heard(log) if "error" in message]
    assert set(refused) == {-32601}


async def test_progress_gives_a_call_more_time(tmp_path: Path) -> None:
    async with hosting(tmp_path, server(timeout=400)) as hosted:
        assert (await hosted.call("small-steps")).text == "all steps"
        assert hosted.said[0] == "step 0\n"


async def test_a_call_without_progress_is_given_up_and_cancelled_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(log=log, timeout=300)) as hosted:
        result = await hosted.call("small-hang")
        assert "did not answer in time" in result.text
        assert (await hosted.call("small-echo", text="still there")).text == "still there"
    call, cancelled, _ = heard(log)[-3:]
    assert cancelled["params"]["requestId"] == call["id"]


async def test_an_aborted_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(log=log)) as hosted:
        calling = asyncio.ensure_future(hosted.call("small-steps"))
        await hosted.until(lambda: bool(hosted.said))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert methods(log)[-1] == "notifications/cancelled"


async def test_a_server_that_died_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    async with hosting(tmp_path, server()) as hosted:
        await hosted.call("small-die")
        assert hosted.states()[-1] == "failed"
        assert len(hosted.host.tools) == 12
        assert (await hosted.call("small-echo", text="again")).text == "again"
        assert hosted.states() == ["pending", "connected", "failed", "pending", "connected"]


async def test_a_list_that_changes_is_read_again(tmp_path: Path) -> None:
    async with hosting(tmp_path, server(mode="growing", log=tmp_path / "log")) as hosted:
        await hosted.call("small-echo", text="x")
        await hosted.until(
            lambda: [tool.spec.name for tool in hosted.host.tools] == ["small-grown"]
        )
        assert "mcp.tools.list_changed" in [event.wire_name for event in hosted.told]
        assert (await hosted.call("small-grown")).text == "grown"


async def test_a_storm_of_changes_is_one_look_a_second(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with hosting(tmp_path, server(mode="storm", log=log)) as hosted:
        assert (await hosted.call("small-echo", text="x")).text == "x"
    assert methods(log).count("tools/list") <= 3


async def test_its_program_gets_its_own_variables_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    config = server(env={"KEY": "value"}, cwd=str(tmp_path / "there"))
    async with hosting(tmp_path, config) as hosted:
        said = json.loads((await hosted.call("small-where")).text)
    assert said["cwd"] == str(tmp_path / "there")
    assert said["env"]["KEY"] == "value"
    assert said["env"]["COPILOT_AGENT_SESSION_ID"] == "s"


@pytest.mark.parametrize("mode", ["garbage", "stderr", "many", "strange"])
async def test_noise_does_not_keep_a_server_from_working(tmp_path: Path, mode: str) -> None:
    async with hosting(tmp_path, server(mode=mode)) as hosted:
        assert hosted.states()[-1] == "connected"
        assert 0 < len(hosted.host.tools) <= 200
        assert all(len(tool.spec.name) <= 64 for tool in hosted.host.tools)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("exits", "its program exited: no key was given: ******"),
        ("huge", "it sent a line of more than 16 MB"),
        ("closed", "its program exited"),
        ("wrong-ids", "it did not answer within 0.5 s"),
        ("silent", "it did not answer within 0.5 s"),
    ],
)
async def test_a_server_that_does_not_speak_is_a_failed_one(
    tmp_path: Path, mode: str, reason: str
) -> None:
    timeout = 500 if "0.5" in reason else None
    config = server(mode=mode, env={"KEY": "s3cr3t-value"}, timeout=timeout)
    async with hosting(tmp_path, config) as hosted:
        assert hosted.states() == ["pending", "failed"]
        assert hosted.error().startswith(reason)
        assert "s3cr3t" not in str(hosted.told)


@pytest.mark.parametrize(
    "config",
    [
        McpServer(name="small", type="local", source="user", command="no-such-program"),
        server(cwd="/no/such/folder"),
        server(command="\0"),
        server(command=os.devnull),
    ],
)
async def test_a_program_that_cannot_be_started_is_a_failed_server(
    tmp_path: Path, config: McpServer
) -> None:
    async with hosting(tmp_path, config) as hosted:
        assert hosted.states() == ["pending", "failed"]
        assert "start" in hosted.error()


async def test_nothing_is_left_of_a_server_that_will_not_end(tmp_path: Path) -> None:
    async with hosting(tmp_path, server(mode="stubborn")) as hosted:
        assert hosted.states()[-1] == "connected"
    assert left_over() == []


def left_over() -> list[int]:
    """Processes that live and carry a tag of this one."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if process_tracking.is_alive(pid) and is_ours(pid)]


def is_ours(pid: int) -> bool:
    try:
        limits = Path(f"/proc/{pid}/limits").read_text()
    except OSError:
        return False
    return any(
        process_tracking.PREFIX in line for line in limits.split("\n") if "realtime timeout" in line
    )


async def test_twenty_bad_servers_take_no_longer_than_one(tmp_path: Path) -> None:
    modes = ["silent", "exits", "huge", "closed", "wrong-ids"] * 4
    patience = {"slowConnectionThresholdMs": 2000}
    bad = [server(f"bad{count}", mode=mode, extra=patience) for count, mode in enumerate(modes)]
    began = asyncio.get_running_loop().time()
    async with hosting(tmp_path, *bad, server(extra=patience)) as hosted:
        waited = asyncio.get_running_loop().time() - began
        assert waited < 20  # one after another the silent ones alone would take longer
        assert hosted.states()[-1] == "connected"
        assert (await hosted.call("small-echo", text="works")).text == "works"
    assert asyncio.get_running_loop().time() - began - waited < 20
    assert left_over() == []


async def test_other_servers_are_used_and_changed_ones_start_again(tmp_path: Path) -> None:
    first, second = server("one"), server("two")
    async with hosting(tmp_path, first, second) as hosted:
        kept = hosted.host.servers["two"]
        changed = server("one", env={"A": "b"})
        await hosted.host.use({"one": changed, "two": second})
        await hosted.host.settled()
        assert hosted.host.servers["two"] is kept
        assert hosted.states("one") == ["pending", "connected", "stopped", "pending", "connected"]
        await hosted.host.use({"two": second})
        assert hosted.told[-1].wire_name == "session.mcp_server_removed"
        assert {tool.origin.server for tool in hosted.host.tools} == {"two"}


async def test_more_tools_than_a_service_may_take_are_told_of_once(tmp_path: Path) -> None:
    many = [server(name, mode="many") for name in ("one", "two")]
    async with hosting(tmp_path, *many) as hosted:
        assert len(hosted.host.tools) == 400
        said = [event.message for event in hosted.told if event.wire_name == "session.warning"]
        assert len([warning for warning in said if "more than 100 tools together" in warning]) == 1


async def test_a_server_that_is_switched_off_has_no_tools_until_it_is_on_again(
    tmp_path: Path,
) -> None:
    off = McpServer(name="off", type="local", source="user", command="x", enabled=False)
    async with hosting(tmp_path, server(), off) as hosted:
        assert hosted.states("off") == ["disabled"]
        tool = hosted.host.tools[0]
        await hosted.host.switch("small", enabled=False)
        assert hosted.host.tools == []
        result = await hosted.run(tool, text="x")
        assert result.text == "The MCP server small cannot be used: it is disabled."
        before = hosted.offers
        await hosted.host.switch("small", enabled=True)
        await hosted.host.settled()
        assert hosted.offers > before
        assert (await hosted.call("small-echo", text="on")).text == "on"


async def test_a_server_that_writes_something_else_is_told_what(tmp_path: Path) -> None:
    async with hosting(tmp_path, server(mode="framed", timeout=2000)) as hosted:
        assert hosted.error() == (
            "it did not answer within 2 s and wrote 'Content-Length: 17', which is not a message "
            "of MCP; check it, or its timeout"
        )
