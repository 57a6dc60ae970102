"""MCP servers in runs of the installed program: their tools are tools, and every rule holds."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import mcp_fixtures
from clikit import Cli, Outcome, serving
from customizekit import write
from hookkit import keeping, kept, saying, tool_errors, write_hooks
from livekit import opened
from mcpkit import FOREIGN, configure, entry, heard, methods, serving_http
from trimtab.contracts.options import CustomizationOptions, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.mcp.sampling import METHOD
from trimtab.testing.playing import play, texts

DONE = {"text": "Done."}
SLOW: dict[str, Any] = {"slowConnectionThresholdMs": 30_000}


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": tool, "arguments": arguments}]}


async def run(cli: Cli, *calls: dict[str, Any], flags: tuple[str, ...] = ("--allow-all",)) -> Any:
    """One prompt with these calls; gives the outcome and the requests the model got."""
    async with serving([*calls, DONE, DONE]) as server:
        words = ("-p", "go", "--output-format", "json", *flags)
        outcome = await cli.use(server).run(*words)
        return outcome, [one.json for one in server.requests]


def offered(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def served(request: Any) -> list[str]:
    return [name for name in offered(request) if name.startswith("small-")]


def states(outcome: Outcome, name: str = "small") -> list[str]:
    changes = outcome.of("session.mcp_server_status_changed")
    return [one["status"] for one in changes if one["serverName"] == name]


def results(outcome: Outcome) -> list[str]:
    ends = outcome.of("tool.execution_complete")
    return [end["result"]["content"] for end in ends if end["success"]]


@pytest.fixture
def small(cli: Cli) -> Cli:
    """A person with our server."""
    configure(cli.home / "mcp-config.json", small=entry(**SLOW))
    return cli


@pytest.mark.proves("SYS-18", "MCP-09")
async def test_tools_and_instructions_of_a_server_reach_the_model(small: Cli) -> None:
    outcome, (first, second, *_) = await run(small, use("small-echo", text="hello"))
    assert {"small-echo", "small-make", "small-peek"} <= set(offered(first))
    system = first["messages"][0]["content"]
    places = [
        system.index(text) for text in ("<tools>", '<server name="small">', "Call echo before")
    ]
    assert places == sorted(places)
    assert "Call echo before anything else." in system
    assert second["messages"][-1]["content"] == "hello"
    (start,) = outcome.of("tool.execution_start")
    named = ("toolName", "mcpServerName", "mcpToolName", "mcpTransport", "mcpConfigSource")
    assert [start[name] for name in named] == ["small-echo", "small", "echo", "stdio", "user"]


@pytest.mark.proves("PERM-12")
async def test_a_question_about_a_servers_tool_is_of_its_own_kind(small: Cli) -> None:
    outcome, _ = await run(small, use("small-make", path="made"), flags=())
    (log,) = small.logs()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (asked,) = [one["data"] for one in events if one["type"] == "permission.requested"]
    request = asked["permissionRequest"]
    assert (request["kind"], request["serverName"], request["toolName"]) == (
        "mcp",
        "small",
        "make",
    )
    assert outcome.result["permissionDenials"] == 1


@pytest.mark.proves("MCP-06", "EVT-03")
async def test_every_state_of_a_server_is_told_and_all_of_them_at_the_end(small: Cli) -> None:
    configure(
        small.home / "mcp-config.json",
        small=entry(**SLOW),
        off=entry(disabled=True),
        bad={"command": "no-such-program"},
    )
    outcome, _ = await run(small)
    assert states(outcome) == ["pending", "connected"]
    assert states(outcome, "off") == ["disabled"]
    assert states(outcome, "bad") == ["pending", "failed"]
    listed = outcome.of("session.mcp_servers_loaded")[-1]["servers"]
    assert {one["name"]: one["status"] for one in listed} == {
        "small": "connected",
        "off": "disabled",
        "bad": "failed",
    }
    assert "no-such-program could not be started" in listed[-1]["error"]
    types = outcome.types()
    snapshot = types.index("session.mcp_servers_loaded")
    assert types.index("session.mcp_server_tools_loaded") < snapshot < types.index("user.message")


async def test_a_run_without_servers_starts_nothing_of_this(cli: Cli) -> None:
    outcome, (first,) = await run(cli)
    assert outcome.of("session.mcp_servers_loaded")[-1] == {"servers": []}
    assert not [name for name in offered(first) if "-" in name]


@asynccontextmanager
async def foreign(cli: Cli, transport: str) -> AsyncIterator[dict[str, Any]]:
    """A server of the official package, as an entry of a configuration."""
    script = write(cli.home.parent / "foreign.py", FOREIGN)
    if transport == "stdio":
        yield {"command": sys.executable, "args": [str(script), "stdio"], **SLOW}
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), "http", str(port)), stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while b"running on" not in await process.stderr.readline():
                pass
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", **SLOW}
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_of_the_official_package_works(cli: Cli, transport: str) -> None:
    async with foreign(cli, transport) as config:
        configure(cli.home / "mcp-config.json", sums=config)
        outcome, (first, *_) = await run(cli, use("sums-add", a=2, b=3), use("sums-boom"))
    assert results(outcome) == ["5"]
    assert len(tool_errors(outcome)) == 1
    assert "Use add for sums." in first["messages"][0]["content"]
    assert outcome.of("tool.execution_start")[0]["mcpTransport"] == transport


def given(cli: Cli) -> dict[str, Any]:
    """Where a session in this process works, with the servers of the command's person."""
    return {"cwd": str(cli.cwd), "home": str(cli.home)}


@pytest.mark.parametrize(
    ("allow", "deny", "allowed"),
    [
        ("", "", False),
        ("small", "", True),
        ("small(make)", "", True),
        ("small-make", "", True),
        ("small(echo)", "", False),
        ("write shell", "", False),
        ("*", "small", False),
        ("*", "small(make)", False),
        ("*", "small-make", False),
        ("*", "mcp__small__make", False),
        ("*", "small(echo)", True),
        ("small(make)", "small", False),
    ],
)
async def test_rules_hold_for_the_tools_of_servers(
    small: Cli, allow: str, deny: str, allowed: bool
) -> None:
    made = small.cwd / "made"
    rules = tuple(allow.split()) if allow != "*" else ()
    permissions = PermissionOptions(
        allow_all_tools=allow == "*", allow=rules, deny=tuple(deny.split())
    )
    script = [use("small-make", path=str(made)), DONE]
    played = await play(script, "go", permissions=permissions, **given(small))
    assert made.exists() is allowed
    assert ("denied" in texts(played.requests)[-1]) is not allowed


@pytest.mark.parametrize("name", ["write", "shell", "memory", "bash", "url"])
async def test_a_server_that_is_called_like_a_kind_of_rule_gains_nothing_by_it(
    cli: Cli, name: str
) -> None:
    configure(cli.home / "mcp-config.json", **{name: entry(**SLOW)})
    made = cli.cwd / "made"
    outcome, _ = await run(cli, use(f"{name}-make", path=str(made)), flags=("--allow-tool", name))
    assert not made.exists()
    assert "No rule allows the tool" in json.dumps(outcome.lines)


@pytest.mark.parametrize(
    ("flags", "allowed"),
    [
        (("--allow-all",), False),
        (("--allow-tool", "small"), False),
        (("--allow-tool", "small(peek)"), True),
    ],
)
async def test_in_plan_mode_a_claim_to_only_read_needs_the_word_of_the_person(
    small: Cli, flags: tuple[str, ...], allowed: bool
) -> None:
    """The server lies: what it says about this tool is not true."""
    peeked, made = small.cwd / "peeked", small.cwd / "made"
    calls = use("small-peek", path=str(peeked)), use("small-make", path=str(made))
    _, requests = await run(small, *calls, flags=("--plan", *flags))
    assert peeked.exists() is allowed
    assert not made.exists()
    assert "Plan mode" in requests[2]["messages"][-1]["content"]


async def test_a_repository_cannot_vouch_for_its_own_server_in_plan_mode(small: Cli) -> None:
    rules = {"permissions": {"allow": ["small(peek)"]}}
    write(small.cwd / ".github/copilot/settings.json", json.dumps(rules))
    peeked = small.cwd / "peeked"
    await run(small, use("small-peek", path=str(peeked)), flags=("--plan", "--trust-folder"))
    assert not peeked.exists()


@pytest.mark.parametrize("event", ["preToolUse", "PreToolUse"])
@pytest.mark.parametrize("matcher", ["small-make", "mcp__small__make", "mcp__.*"])
async def test_hooks_are_asked_about_the_tools_of_servers(
    small: Cli, event: str, matcher: str
) -> None:
    no = {"permissionDecision": "deny", "permissionDecisionReason": "not that one"}
    said = {"hookSpecificOutput": no} if event == "PreToolUse" else no
    write_hooks(small, {event: [{**saying(said), "matcher": matcher}]}, "user")
    made = small.cwd / "made"
    outcome, _ = await run(small, use("small-make", path=str(made)))
    assert not made.exists()
    assert tool_errors(outcome) == ["Denied by preToolUse hook: not that one"]


async def test_hooks_hear_what_a_tool_of_a_server_came_to(small: Cli) -> None:
    hooks = {"postToolUse": [keeping("ours")], "PostToolUse": [keeping("theirs")]}
    write_hooks(small, hooks, "user")
    await run(small, use("small-echo", text="hello"))
    ours, theirs = kept(small, "ours"), kept(small, "theirs")
    assert (ours["toolName"], ours["mcpServerName"], ours["mcpToolName"]) == (
        *("small-echo", "small"),
        "echo",
    )
    assert ours["toolResult"]["textResultForLlm"] == "hello"
    assert theirs["tool_name"] == "mcp__small__echo"


@pytest.mark.parametrize(
    ("available", "excluded", "expected"),
    [
        ("view mcp:*", "", 12),
        ("view mcp:small", "", 12),
        ("view small-echo", "", 1),
        ("view small/echo", "", 1),
        ("view mcp__small__echo", "", 1),
        ("view", "", 0),
        ("", "mcp:*", 0),
        ("", "small-echo mcp:small/make", 10),
    ],
)
async def test_lists_of_tools_know_those_of_servers(
    small: Cli, available: str, excluded: str, expected: int
) -> None:
    lists: dict[str, Any] = {"excluded_tools": tuple(excluded.split())}
    if available:
        lists["available_tools"] = tuple(available.split())
    played = await play([DONE], "go", **lists, **given(small))
    offered = [tool.name for tool in played.requests[0].tools]
    assert len([name for name in offered if name.startswith("small-")]) == expected


async def test_an_agent_has_the_tools_of_servers_it_names(small: Cli) -> None:
    text = "---\nname: a\ndescription: x\ntools: [view, small/echo]\n---\nx\n"
    write(small.home / "agents/a.agent.md", text)
    task = {"description": "x", "prompt": "x", "agent_type": "a"}
    _, requests = await run(small, use("task", **task), use("small-echo", text="below"))
    assert served(requests[1]) == ["small-echo"]
    _, (first,) = await run(small, flags=("--allow-all", "--agent", "a"))
    assert served(first) == ["small-echo"]


async def test_agents_of_a_session_share_its_servers(cli: Cli) -> None:
    log = cli.home / "server.log"
    configure(cli.home / "mcp-config.json", small=entry(log=log, **SLOW))
    task = {"description": "x", "prompt": "x", "agent_type": "general-purpose"}
    outcome, _ = await run(cli, use("task", **task), use("small-echo", text="below"))
    assert "below" in results(outcome)
    assert methods(log).count("initialize") == 1


async def test_a_server_of_a_folder_is_not_started_before_the_folder_is_trusted(cli: Cli) -> None:
    log = cli.home / "server.log"
    configure(cli.cwd / ".mcp.json", small=entry(log=log, **SLOW))
    outcome, (first,) = await run(cli)
    assert not log.exists()
    assert served(first) == []
    outcome, (first,) = await run(cli, flags=("--allow-all", "--trust-folder"))
    assert len(served(first)) == 12
    assert outcome.of("session.mcp_servers_loaded")[-1]["servers"][0]["source"] == "workspace"
    cli.env["GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP"] = "true"
    _, (first,) = await run(cli)
    assert len(served(first)) == 12


async def test_an_entry_that_changed_since_its_folder_was_trusted_is_not_started(cli: Cli) -> None:
    log, script = cli.home / "server.log", cli.cwd / "server.py"
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    configure(cli.cwd / ".mcp.json", small=entry(log=log, env={"A": "1"}, **SLOW))
    _, (first,) = await run(cli)
    assert len(served(first)) == 12
    log.unlink()
    configure(cli.cwd / ".mcp.json", small=entry(log=log, env={"A": "2"}, **SLOW))
    outcome, (first,) = await run(cli)
    assert served(first) == []
    assert not log.exists()
    (left,) = outcome.of("trimtab.left_out")
    assert left["items"] == [{"kind": "mcp", "path": ".mcp.json small"}]
    assert outcome.of("session.mcp_servers_loaded")[-1]["servers"][0]["status"] == "stopped"
    assert not script.exists()


async def test_an_entry_that_was_added_after_its_folder_was_trusted_is_not_started(
    cli: Cli,
) -> None:
    log = cli.home / "server.log"
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    await run(cli)
    configure(cli.cwd / ".mcp.json", small=entry(log=log, **SLOW))
    outcome, _ = await run(cli)
    assert not log.exists()
    assert len(outcome.of("trimtab.left_out")) == 1
    await run(cli, flags=("--allow-all", "--trust-folder"))
    assert log.exists()


async def test_a_script_of_the_folder_that_changed_is_not_started(cli: Cli) -> None:
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))
    script = write(cli.cwd / "server.py", "import sys; sys.exit('first')\n")
    config = {"command": sys.executable, "args": ["server.py"]}
    configure(cli.cwd / ".mcp.json", small=config)
    outcome, _ = await run(cli)
    assert states(outcome) == ["pending", "failed"]
    script.write_text("open('ran', 'w')\n")
    outcome, _ = await run(cli)
    assert states(outcome) == []
    assert not (cli.cwd / "ran").exists()


async def test_a_slow_server_is_named_and_its_tools_join_a_later_request(cli: Cli) -> None:
    slow = entry(slowConnectionThresholdMs=100)
    slow |= {"command": "/bin/sh", "args": ["-c", f"sleep 0.5; exec {' '.join(slow_words())}"]}
    configure(cli.home / "mcp-config.json", small=slow)
    wait = {"command": "sleep 1.5", "description": "wait", "initial_wait": 5}
    outcome, (first, second, *_) = await run(cli, use("bash", **wait))
    assert served(first) == []
    assert len(served(second)) == 12
    (warning,) = outcome.of("session.warning")
    assert "small" in warning["message"]
    types = outcome.types()
    after = types[types.index("session.mcp_server_tools_loaded") :]
    assert "session.tools_updated" in after


@asynccontextmanager
async def silent_port() -> AsyncIterator[int]:
    """A port where somebody listens, takes everything and answers nothing."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_ten_servers_that_hang_hold_up_no_prompt(cli: Cli) -> None:
    """The first request left after 5 seconds."""
    async with silent_port() as port, serving(["First.", "Second."]) as model:
        url = f"http://127.0.0.1:{port}/mcp"
        hanging: dict[str, Any] = {
            **{f"program{n}": {"command": "sleep", "args": ["600"]} for n in range(4)},
            **{f"web{n}": {"type": "http", "url": url} for n in range(3)},
            **{f"events{n}": {"type": "sse", "url": url} for n in range(3)},
        }
        configure(cli.home / "mcp-config.json", **hanging)
        outcome = await cli.use(model).ask("go")
    assert outcome.code == 0, outcome.notes
    moments = {line["type"]: line["timestamp"] for line in reversed(outcome.lines)}
    began = datetime.fromisoformat(moments["session.mcp_server_status_changed"])
    left = datetime.fromisoformat(moments["assistant.turn_start"])
    assert (left - began).total_seconds() < 4
    (warning,) = outcome.of("session.warning")
    assert warning["warningType"] == "mcp_servers_pending"
    assert all(name in warning["message"] for name in hanging)


async def test_a_later_prompt_does_not_wait_for_them_again_and_hears_of_new_tools(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    words = " ".join(slow_words())
    script = f"until [ -e {gate} ]; do sleep 0.05; done; exec {words}"
    late = {"command": "/bin/sh", "args": ["-c", script]}
    silent = {"command": "sleep", "args": ["600"]}
    configure(tmp_path / "home" / "mcp-config.json", small=late, silent=silent)
    async with opened(tmp_path, ["one", "two", "three"]) as (live, watch, provider):
        await live.ask("a")
        waiting = [live.controls.servers.find(name).wait_left for name in ("small", "silent")]
        assert waiting == [0.0, 0.0], "the next prompt would wait again"
        await live.ask("b")
        gate.touch()
        await watch.saw("session.mcp_server_tools_loaded")
        await live.ask("c")
        first, second, third = provider.requests
    for request in (first, second):
        assert not [spec.name for spec in request.tools if spec.name.startswith("small-")]
    assert len([spec.name for spec in third.tools if spec.name.startswith("small-")]) == 12
    told = str(third.messages[-1])
    assert "These tools are available from now on: " in told
    assert "small-echo" in told


def slow_words() -> list[str]:
    given = entry()
    return [given["command"], *(one for one in given["args"] if one)]


async def test_values_of_a_configuration_are_shown_to_nobody(cli: Cli) -> None:
    secret, header = "s3cr3t-of-the-server", "s3cr3t-in-a-header"
    env = {"API_TOKEN": secret, "PLAIN": "visible"}
    web = {
        "type": "http",
        "url": "http://127.0.0.1:9/mcp",
        "headers": {"Authorization": f"Bearer {header}"},
    }
    configure(cli.home / "mcp-config.json", small=entry(env=env, **SLOW), web=web)
    outcome, requests = await run(cli, use("small-where"), use("small-echo", text=header))
    everything = outcome.out + outcome.err + cli.logs()[0].read_bytes()
    assert secret.encode() not in everything
    assert header.encode() not in everything.replace(b'{"text":"' + header.encode(), b"")
    assert "visible" in requests[1]["messages"][-1]["content"]


async def test_a_server_gets_no_key_of_ours_and_is_told_the_session(small: Cli) -> None:
    small.env |= {"GH_TOKEN": "gh-0123456789", "MINE": "yes"}
    flags = ("--allow-all", "--secret-env-vars", "MINE")
    outcome, _ = await run(small, use("small-where"), flags=flags)
    (text,) = results(outcome)
    env = json.loads(text)["env"]
    assert not {"GH_TOKEN", "COPILOT_PROVIDER_API_KEY", "MINE"} & set(env)
    assert env["COPILOT_AGENT_SESSION_ID"] == outcome.result["sessionId"]


async def test_what_a_tool_of_a_server_changed_can_be_undone(small: Cli) -> None:
    made = small.cwd / "made"
    outcome, _ = await run(small, use("small-make", path=str(made)))
    assert made.exists()
    (change,) = outcome.of("trimtab.workspace_changed")
    assert change["count"] == 1
    undone = await small.run("undo")
    assert undone.code == 0
    assert not made.exists()


async def test_output_that_is_too_large_goes_to_a_file(small: Cli) -> None:
    outcome, _ = await run(small, use("small-echo", text="word " * 10_000))
    (text,) = results(outcome)
    assert text.startswith("Output too large to read at once")
    assert len(text) < 2000


async def test_arguments_a_schema_forbids_do_not_reach_the_server(cli: Cli) -> None:
    log = cli.home / "server.log"
    configure(cli.home / "mcp-config.json", small=entry(log=log, **SLOW))
    outcome, _ = await run(cli, use("small-echo", words=["x"]))
    assert "text" in tool_errors(outcome)[0]
    assert "tools/call" not in methods(log)


async def test_a_resumed_session_has_its_servers_again(small: Cli) -> None:
    await run(small)
    outcome, _ = await run(
        small, use("small-echo", text="again"), flags=("--allow-all", "--continue")
    )
    assert results(outcome) == ["again"]


async def test_offline_a_server_elsewhere_is_not_contacted(cli: Cli) -> None:
    web = {"type": "http", "url": "https://mcp.example.com/mcp"}
    configure(cli.home / "mcp-config.json", small=entry(**SLOW), web=web)
    outcome, (first,) = await run(cli, flags=("--allow-all", "--offline"))
    assert states(outcome, "web") == ["pending", "failed"]
    assert len(served(first)) == 12
    listed = {one["name"]: one for one in outcome.of("session.mcp_servers_loaded")[-1]["servers"]}
    assert "may not be contacted offline" in listed["web"]["error"]


async def test_nothing_of_a_server_outlives_a_run_that_is_killed(cli: Cli) -> None:
    log = cli.home / "server.log"
    stubborn = entry("stubborn", log=log, **SLOW)
    configure(cli.home / "mcp-config.json", small=stubborn)
    async with serving([use("small-hang"), DONE]) as server:
        process = await cli.use(server).start("-p", "go", "--output-format", "json", "--allow-all")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b'"tool.execution_start"' not in await process.stdout.readline():
                pass
        process.kill()
        await process.communicate()
    async with asyncio.timeout(60):
        await asyncio.to_thread(wait_until_gone, str(log))


def wait_until_gone(mark: str) -> None:
    """Wait until no process has this on its command line; a process tells nobody when it ends."""
    import select

    while any(mark.encode() in command for command in command_lines()):
        select.select([], [], [], 0.02)


def command_lines() -> list[bytes]:
    found = []
    for name in os.listdir("/proc"):
        try:
            found.append(Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b"")
        except OSError:
            continue
    return found


async def test_an_end_of_a_run_ends_its_servers_in_time(cli: Cli) -> None:
    log = cli.home / "server.log"
    configure(cli.home / "mcp-config.json", small=entry("stubborn", log=log, **SLOW))
    await run(cli, use("small-echo", text="x"))
    assert not [one for one in command_lines() if str(log).encode() in one]
    assert heard(log)


@pytest.mark.parametrize("for_now", [True, False])
async def test_a_server_the_agent_configured_itself_is_not_started(
    tmp_path: Path, for_now: bool
) -> None:
    """Also where the folder is trusted, for this run or for good, and everything is allowed."""
    log, cwd, home = tmp_path / "server.log", tmp_path / "work", tmp_path / "home"
    cwd.mkdir()
    write(home / "config.json", json.dumps({"trusted_folders": [] if for_now else [str(cwd)]}))
    servers = json.dumps({"mcpServers": {"small": entry(log=log)}})
    script = [use("create", path=".mcp.json", file_text=servers), DONE, DONE]
    places: dict[str, Any] = {"cwd": str(cwd), "home": str(home), "trust_folder": for_now}
    played = await play(script, "one", "two", **places)
    assert (cwd / ".mcp.json").exists()
    (warning,) = played.of("session.warning")
    assert warning.warning_type == "mcp_changed"
    if not for_now:
        await play([DONE], "three", resume=played.session_id, **places)
    assert not log.exists()


async def test_a_server_of_the_folder_stays_as_it_was_while_a_session_lives(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    configure(tmp_path / ".mcp.json", small=entry(log=first, **SLOW))
    script = [DONE, use("small-echo", text="as before"), DONE]
    async with opened(tmp_path, script, trust_folder=True) as (live, watch, _):
        await live.ask("one")
        configure(tmp_path / ".mcp.json", small=entry(log=second, **SLOW))
        await live.ask("two")
        (end,) = watch.of("tool.execution_complete")
        assert end.result["content"] == "as before"
    assert methods(first).count("initialize") == 1
    assert not second.exists()


async def test_a_server_the_person_adds_is_used_from_the_next_prompt_on(tmp_path: Path) -> None:
    async with opened(tmp_path, [DONE, use("small-echo", text="new"), DONE]) as (live, watch, _):
        await live.ask("one")
        configure(tmp_path / "home" / "mcp-config.json", small=entry(**SLOW))
        await live.ask("two")
        (end,) = watch.of("tool.execution_complete")
        assert end.result["content"] == "new"


async def test_an_aborted_run_cancels_its_call_and_ends_in_time(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    configure(tmp_path / "home" / "mcp-config.json", small=entry(log=log, **SLOW))
    async with opened(tmp_path, [use("small-steps"), DONE]) as (live, watch, _):
        live.send("go")
        await watch.saw("tool.execution_partial_result")
        await live.abort()
        (end,) = watch.of("tool.execution_complete")
        assert end.error["code"] == "interrupted"
    assert methods(log)[-1] == "notifications/cancelled"


async def test_a_server_can_be_tried_without_a_session(small: Cli) -> None:
    outcome = await small.run("mcp", "test", "small")
    assert outcome.code == 0
    assert outcome.text.startswith("small: connected\n")
    assert "small-echo    Says it again." in outcome.text
    assert "Instructions: Call echo before anything else." in outcome.text
    configure(small.home / "mcp-config.json", small={"command": "no-such-program"})
    outcome = await small.run("mcp", "test", "small", "--json")
    assert outcome.code == 1
    assert json.loads(outcome.text)["status"] == "failed"


async def test_the_address_of_a_server_is_among_those_that_may_be_contacted(cli: Cli) -> None:
    web = {"type": "http", "url": "https://mcp.example.com/mcp?key=s3cr3t"}
    configure(cli.home / "mcp-config.json", web=web, wrong={"type": "http", "url": "nonsense"})
    outcome = await cli.run("net")
    assert "https://mcp.example.com\n    MCP server web, configured in" in outcome.text
    assert "s3cr3t" not in outcome.text


async def test_a_server_that_cannot_be_used_is_told_to_the_person(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry("exits"))
    async with serving([DONE]) as server:
        outcome = await cli.use(server).run("-p", "go")
    assert outcome.code == 0
    assert "The MCP server small cannot be used: its program exited" in outcome.notes


async def test_with_the_sandbox_it_is_said_that_servers_are_outside(small: Cli) -> None:
    outcome, _ = await run(small, flags=("--allow-all", "--sandbox"))
    kinds = [one["warningType"] for one in outcome.of("session.warning")]
    assert "mcp_servers_unconfined" in kinds


async def test_the_next_session_has_the_tools_at_once_and_only_a_call_waits(
    cli: Cli, tmp_path: Path
) -> None:
    """The second time the server needs long to start, and the first request has its tools."""
    gate = tmp_path / "gate"
    configure(cli.home / "mcp-config.json", small=entry("gated", gate))
    gate.touch()
    await run(cli)
    gate.unlink()
    async with serving([use("small-echo", text="late"), DONE]) as model:
        process = await cli.use(model).start("-p", "go", "--output-format", "json", "--allow-all")
        async with asyncio.timeout(50):
            assert process.stdout is not None
            lines = []
            while b"tool.execution_start" not in (line := await process.stdout.readline()):
                lines.append(line)
            assert "small-echo" in offered(model.requests[0].json)
            gate.touch()
            rest, _ = await process.communicate()
    (end,) = Outcome(process.returncode or 0, b"".join((*lines, rest)), b"").of(
        "tool.execution_complete"
    )
    assert end["result"]["content"] == "late"


async def test_a_list_that_is_not_to_be_kept_is_read_anew(cli: Cli) -> None:
    configure(cli.home / "mcp-config.json", small=entry(disableToolCache=True, **SLOW))
    await run(cli)
    assert not list(cli.home.glob("mcp-tool-cache/*"))
    configure(cli.home / "mcp-config.json", small=entry(**SLOW))
    await run(cli)
    assert len(list(cli.home.glob("mcp-tool-cache/*"))) == 1


async def test_a_damaged_cache_is_as_good_as_none(small: Cli) -> None:
    await run(small)
    (file,) = small.home.glob("mcp-tool-cache/*")
    file.write_text("{")
    _, (first, *_) = await run(small)
    assert served(first)


GITHUB = "github-mcp-server"
CLASSIC = {"COPILOT_GITHUB_TOKEN": "ghp_0123456789abcdef0123"}


@pytest.mark.proves("MCP-07", "MCP-08")
@pytest.mark.parametrize(
    ("flags", "headers"),
    [
        ([], {"x-mcp-readonly": "true"}),
        (["--add-github-mcp-tool", "create_issue"], {"x-mcp-tools": "create_issue"}),
        (["--add-github-mcp-toolset", "gists"], {"x-mcp-toolsets": "default,gists"}),
        (["--enable-all-github-mcp-tools"], {"x-mcp-toolsets": "all"}),
    ],
)
async def test_the_server_of_github_is_used_when_there_is_a_token(
    cli: Cli, flags: list[str], headers: dict[str, str]
) -> None:
    async with serving_http() as peer:
        cli.env |= CLASSIC | {"COPILOT_API_URL": peer.url.removesuffix("/mcp")}
        outcome, _ = await run(cli, flags=("--allow-all", *flags))
    (listed,) = outcome.of("session.mcp_servers_loaded")[-1]["servers"]
    assert (listed["name"], listed["source"]) == (GITHUB, "builtin")
    sent = peer.requests[0][1]
    assert sent["authorization"] == f"Bearer {CLASSIC['COPILOT_GITHUB_TOKEN']}"
    assert {name: value for name, value in sent.items() if name.startswith("x-mcp-")} == headers
    assert CLASSIC["COPILOT_GITHUB_TOKEN"] not in outcome.text


@pytest.mark.proves("MCP-07", "HEAD-08")
@pytest.mark.parametrize("flags", [["--disable-builtin-mcps"], ["--disable-mcp-server", GITHUB]])
async def test_a_built_in_server_that_is_switched_off_is_listed_and_not_contacted(
    cli: Cli, flags: list[str]
) -> None:
    async with serving_http() as peer:
        cli.env |= CLASSIC | {"COPILOT_API_URL": peer.url.removesuffix("/mcp")}
        outcome, (first, *_) = await run(cli, flags=("--allow-all", *flags))
    (listed,) = outcome.of("session.mcp_servers_loaded")[-1]["servers"]
    assert (listed["name"], listed["status"]) == (GITHUB, "disabled")
    assert not peer.requests
    assert not [name for name in offered(first) if name.startswith("github")]


async def test_without_a_token_there_is_no_built_in_server(cli: Cli) -> None:
    outcome, _ = await run(cli)
    assert outcome.of("session.mcp_servers_loaded")[-1]["servers"] == []


@pytest.fixture
def rich(cli: Cli) -> Cli:
    """A person with a server that has resources and prompts."""
    given = {"command": sys.executable, "args": [mcp_fixtures.__file__], **SLOW}
    configure(cli.home / "mcp-config.json", rich=given)
    return cli


@pytest.mark.parametrize(("level", "lines"), [("info", 3), ("debug", 3), (None, 0), ("off", 0)])
async def test_lines_of_a_servers_log_are_shown_from_a_level_on(
    rich: Cli, level: str | None, lines: int
) -> None:
    given = {"command": sys.executable, "args": [mcp_fixtures.__file__], **SLOW}
    if level is not None:
        given["logLevel"] = level
    configure(rich.home / "mcp-config.json", rich=given)
    outcome, _ = await run(rich, use("rich-test_tool_with_logging"))
    told = [one["message"] for one in outcome.of("session.info") if one["infoType"] == "mcp_log"]
    words = ("started", "processing data", "completed")
    assert told == [f"rich: info: Tool execution {word}" for word in words][:lines]


async def test_the_model_is_told_of_a_resource_that_changed_after_it_was_read(
    tmp_path: Path,
) -> None:
    given = {"command": sys.executable, "args": [mcp_fixtures.__file__], **SLOW}
    servers = CustomizationOptions(servers={"rich": given})
    script = [
        use("read_mcp_resource", server="rich", uri="test://static-text"),
        use("rich-test_tool_with_progress"),
        DONE,
        DONE,
    ]
    async with opened(tmp_path, script, customize=servers) as (live, watch, provider):
        await live.ask("go")
        await live.ask("again")
        (event,) = watch.of("trimtab.mcp_resource_updated")
        assert (event.server_name, event.uri) == ("rich", "test://static-text")
        told = str(provider.requests[-1].messages[-1])
    assert "The resource test://static-text of the MCP server rich has changed" in told


async def test_the_model_lists_and_reads_resources(rich: Cli) -> None:
    reads = [
        use("list_mcp_resources", server="rich"),
        use("read_mcp_resource", server="rich", uri="test://static-text"),
        use("read_mcp_resource", server="rich", uri="test://nowhere"),
        use("read_mcp_resource", server="nobody", uri="x:y"),
    ]
    outcome, _ = await run(rich, *reads)
    listed, read, missing, nobody = outcome.of("tool.execution_complete")
    assert "test://static-text" in listed["result"]["content"]
    assert "test://template/{id}/data" in listed["result"]["content"]
    assert read["result"]["content"] == "This is the content of the static text resource."
    assert "not found" in missing["error"]["message"]
    assert "use one of rich" in nobody["error"]["message"]


async def test_a_prompt_of_a_server_is_a_slash_command(rich: Cli) -> None:
    async with serving([DONE]) as model:
        outcome = await rich.use(model).ask("/rich:test_prompt_with_arguments one arg2=two")
        assert outcome.code == 0, outcome.text
        (request,) = model.requests
    shown = request.json["messages"][-1]["content"]
    assert "Prompt with arguments: arg1='one', arg2='two'" in json.dumps(shown)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/rich:nothing", "There is no prompt 'nothing'"),
        ("/rich:test_prompt_with_arguments one", "The prompt needs arg2"),
    ],
)
async def test_a_prompt_that_is_wrong_says_what_is_missing(
    rich: Cli, text: str, reason: str
) -> None:
    async with serving([DONE]) as model:
        outcome = await rich.use(model).ask(text)
        assert not model.requests
    assert outcome.code == 2
    assert reason in outcome.notes + outcome.text


SAMPLE = {"tools": [{"name": "rich-test_sampling", "arguments": {"prompt": "Say hi"}}]}


@pytest.mark.parametrize(
    ("flags", "told", "requests"),
    [
        (("--allow-all",), "LLM response: hi from the model", 3),
        (("--allow-tool", "rich"), "LLM response: hi from the model", 3),
        (("--allow-tool", "rich(test_sampling)"), "User rejected sampling request", 2),
        (
            ("--allow-all", "--deny-tool", "rich(sampling/createMessage)"),
            "User rejected sampling request",
            2,
        ),
    ],
)
async def test_a_server_uses_the_model_only_as_far_as_rules_allow(
    rich: Cli, flags: tuple[str, ...], told: str, requests: int
) -> None:
    async with serving([SAMPLE, *(["hi from the model"] if requests == 3 else []), DONE]) as server:
        words = ("-p", "go", "--output-format", "json", *flags)
        ran = await rich.use(server).run(*words)
        sent = [request.json for request in server.requests]
    assert len(sent) == requests
    assert told in str(sent[-1]["messages"][-1])
    if requests == 3:
        assert sent[1]["messages"][-1]["content"] == "Say hi"
        assert "tools" not in sent[1]
        assert (sent[1].get("max_completion_tokens") or sent[1]["max_tokens"]) == 100
        assert '"purpose":"sampling"' in rich.logs()[0].read_text()
    assert ran.code == 0


async def test_a_model_call_of_a_server_counts_against_the_budget(rich: Cli) -> None:
    first = {**SAMPLE, "usage": {"input": 900, "output": 50}}
    async with serving([first, "never", DONE]) as server:
        words = ("-p", "go", "--output-format", "json", "--allow-all", "--max-tokens", "1000")
        await rich.use(server).run(*words)
        assert not [one for one in server.requests if "tools" not in one.json]


@pytest.mark.parametrize("answer", ["approve-once", "reject"])
async def test_a_person_is_asked_before_a_server_uses_the_model(
    tmp_path: Path, answer: str
) -> None:
    asked: list[Any] = []

    async def decide(_: str, request: Any) -> Answer:
        asked.append(request)
        return Answer(kind=answer if request["toolName"] == METHOD else "approve-once")

    given = {"command": sys.executable, "args": [mcp_fixtures.__file__], **SLOW}
    played = await play(
        [SAMPLE, *(["hi"] if answer != "reject" else []), "done"],
        "go",
        cwd=str(tmp_path),
        ask=decide,
        permissions=PermissionOptions(),
        customize=CustomizationOptions(servers={"rich": given}),
    )
    [question] = [request for request in asked if request["toolName"] == METHOD]
    assert "Say hi" in question["args"]["messages"]
    assert question["suggestedRules"] == [f"rich({METHOD})"]
    [done] = played.of("tool.execution_complete")
    told = str(done.result or done.error)
    expected = "LLM response: hi" if answer == "approve-once" else "User rejected"
    assert expected in told
