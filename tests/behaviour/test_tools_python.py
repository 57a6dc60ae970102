"""Tools people write in Python: found, trusted, reloaded, and never a reason to crash."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from clikit import Cli, bash, serving
from livekit import opened
from rpckit import Raw

TOOL = '''import trimtab

@trimtab.tool(access="none")
def weather(city: str) -> str:
    """Says what the weather is."""
    return f"{city}: {WORD}"

WORD = "sunny"
'''
CALL = {"name": "weather", "arguments": {"city": "Rome"}}


def write(path: Path, text: str = TOOL) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def results(outcome: Any) -> list[str]:
    return [
        one["result"]["content"] for one in outcome.of("tool.execution_complete") if one["success"]
    ]


def tool_names(body: bytes) -> set[str]:
    return {tool[tool["type"]]["name"] for tool in json.loads(body)["tools"]}


async def test_a_file_in_the_persons_folder_is_a_tool(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.home / "tools" / "weather.py")
    async with serving([{"tools": [CALL]}, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go")
    assert results(outcome) == ["Rome: sunny"]


async def test_a_file_of_a_project_needs_trust(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.cwd / ".github" / "tools" / "weather.py")
    replies = [{"tools": [CALL]}, {"text": "done"}]
    async with serving([*replies, *replies]) as server:
        untrusted = await cli.use(server).ask("go")
        trusted = await cli.ask("go", "--trust-folder")
    assert results(untrusted) == []
    assert "tools" in str(untrusted.lines)
    assert "Tool 'weather' does not exist." in str(untrusted.of("tool.execution_complete"))
    assert results(trusted) == ["Rome: sunny"]


async def test_an_installed_package_brings_tools_by_entry_point(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    site = tmp_path / "site"
    write(site / "skies" / "__init__.py", TOOL)
    info = site / "skies-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: skies\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[trimtab.tools]\nskies = skies\n")
    cli.env["PYTHONPATH"] = str(site)
    async with serving([{"tools": [CALL]}, {"text": "done"}] * 2) as server:
        outcome = await cli.use(server).ask("go")
        excluded = await cli.ask("go", "--excluded-tools", "custom:*")
        sent = tool_names(server.requests[0].body)
    assert "weather" in sent
    assert results(outcome) == ["Rome: sunny"]
    assert results(excluded) == []


async def test_clients_are_told_where_a_tool_comes_from(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    file = cli.home / "tools" / "weather.py"
    write(file)
    async with serving([{"text": "done"}]) as server:
        raw = await Raw.start(cli.use(server))
        await raw.call("connect")
        made = await raw.call("session.create", 2, workingDirectory=str(cli.cwd))
        session = made["result"]["sessionId"]
        await raw.call("session.send", 3, sessionId=session, prompt="go")
        listed = await raw.call("session.tools.getCurrentMetadata", 4, sessionId=session)
        await raw.end()
    tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
    assert (tools["weather"]["source"], tools["weather"]["namespacedName"]) == (
        str(file),
        "custom:weather",
    )
    assert "source" not in tools["bash"]
    assert tools["bash"]["namespacedName"] == "builtin:bash"


async def test_a_broken_file_is_told_and_the_others_work(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.home / "tools" / "a.py", "import sys\nsys.exit(3)\n")
    write(cli.home / "tools" / "b.py", "def broken(:\n")
    write(cli.home / "tools" / "bash.py", TOOL.replace("def weather", "def bash"))
    write(cli.home / "tools" / "weather.py")
    async with serving([{"tools": [CALL, bash("echo real")]}, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0
    assert results(outcome)[0] == "Rome: sunny"
    assert "real" in results(outcome)[1]
    told = [one["message"] for one in outcome.of("session.warning")]
    assert [message.split("/")[-1].split(" ")[0] for message in told] == ["a.py", "b.py", "bash.py"]


async def test_other_tools_of_the_same_kind_go_by_family(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    text = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch"
    call = {"name": "apply_patch", "arguments": text}
    async with serving([{"tools": [call]}, {"text": "done"}, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go", "--model", "gpt-5")
        await cli.ask("go", "--offline")
        first, last = server.requests[0], server.requests[-1]
    assert (cli.cwd / "a.txt").read_text() == "hi\n", outcome.of("tool.execution_complete")
    names, usual = map(tool_names, (first.body, last.body))
    assert {"apply_patch", "rg", "web_fetch", "sql"} <= names
    assert not names & {"edit", "create", "grep"}
    assert {"edit", "create", "grep", "sql"} <= usual
    assert not usual & {"apply_patch", "rg", "web_fetch"}


async def test_a_changed_file_is_used_with_the_next_prompt(tmp_path: Path) -> None:
    file = tmp_path / "home" / "tools" / "weather.py"
    write(file)
    reply = [{"tools": [CALL]}, {"text": "done"}]
    async with opened(tmp_path, [*reply, *reply, *reply]) as (live, watch, _):
        await live.ask("one")
        write(file, TOOL.replace("sunny", "stormy"))
        await live.ask("two")
        file.unlink()
        await live.ask("three")
        ended = watch.of("tool.execution_complete")
    assert [one.result["content"] for one in ended[:2]] == ["Rome: sunny", "Rome: stormy"]
    assert ended[2].error["message"] == "Tool 'weather' does not exist."


async def test_a_patch_can_be_undone_whole(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.cwd / "a.sh", "one\ntwo\n")
    (cli.cwd / "a.sh").chmod(0o755)
    write(cli.cwd / "gone.txt", "gone\n")
    text = (
        "*** Begin Patch\n*** Update File: a.sh\n*** Move to: b.sh\n@@\n one\n-two\n+2\n"
        "*** Delete File: gone.txt\n*** Add File: new.txt\n+new\n*** End Patch"
    )
    call = {"name": "apply_patch", "arguments": text}
    async with serving([{"tools": [call]}, {"text": "done"}]) as server:
        await cli.use(server).ask("go", "--model", "gpt-5")
    assert {path.name for path in cli.cwd.iterdir()} == {"b.sh", "new.txt"}
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert {path.name for path in cli.cwd.iterdir()} == {"a.sh", "gone.txt"}
    assert (cli.cwd / "a.sh").read_text() == "one\ntwo\n"
    assert (cli.cwd / "a.sh").stat().st_mode & 0o777 == 0o755


async def test_the_example_of_the_guide_works(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    guide = Path(__file__).parents[2] / "docs" / "guides" / "tools.md"
    write(
        cli.home / "tools" / "words.py", guide.read_text().split("```python\n")[1].split("```")[0]
    )
    call = {"name": "count_words", "arguments": {"text": "a b a", "longest": "5"}}
    async with serving([{"tools": [call]}, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go")
    assert results(outcome) == ['{"words":3,"different":2}']


async def test_the_intent_is_told_when_the_flag_is_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    call = {"name": "report_intent", "arguments": {"intent": "Reading tests"}}
    reply = [{"tools": [call]}, {"text": "done"}]
    async with serving([*reply, *reply]) as server:
        off = await cli.use(server).ask("go")
        on = await cli.ask("go", env={"COPILOT_CLI_ENABLED_FEATURE_FLAGS": "REPORT_INTENT"})
    assert off.of("assistant.intent") == []
    assert on.of("assistant.intent") == [{"intent": "Reading tests"}]


async def test_facts_outlive_the_session_when_memory_is_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / ".git").mkdir()
    store = {"name": "store_memory", "arguments": {"subject": "tests", "fact": "Run make test."}}
    read = {"name": "read_memories", "arguments": {}}
    replies = [{"tools": [read]}, {"text": "a"}, {"tools": [store]}, {"text": "b"}]
    async with serving([*replies, {"tools": [read]}, {"text": "c"}]) as server:
        off = await cli.use(server).ask("go")
        (cli.home / "settings.json").write_text('{"memory": true}')
        stored, again = await cli.ask("go"), await cli.ask("go")
    assert results(off) == []
    assert results(stored) == ["Memory stored."]
    assert results(again) == ["About this repository:\n- tests: Run make test."]


HOSTILE = """import asyncio, os, sys, threading
import trimtab

print("while it is loaded")

@trimtab.tool(access="none")
def noisy() -> str:
    print("printed")
    os.system("echo from a child")
    return "quiet"

@trimtab.tool(access="none")
def leave() -> str:
    sys.exit(7)

@trimtab.tool(access="none")
def interrupt() -> str:
    raise KeyboardInterrupt

@trimtab.tool(access="none")
def stop() -> str:
    raise StopIteration

@trimtab.tool(access="none")
async def cancel() -> str:
    raise asyncio.CancelledError

@trimtab.tool(access="none")
async def leave_too() -> str:
    sys.exit(7)

@trimtab.tool(access="none")
def wait() -> str:
    threading.Event().wait()
    return ""
"""


async def test_what_a_tool_prints_or_raises_ends_nothing_but_the_call(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.home / "tools" / "hostile.py", HOSTILE)
    names = ("leave", "interrupt", "stop", "cancel", "leave_too", "noisy")
    calls = [{"tools": [{"name": name, "arguments": {}}]} for name in names]
    async with serving([*calls, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.result["exitCode"] == 0
    *ended, last = outcome.of("tool.execution_complete")
    said = [one["error"]["message"] for one in ended]
    kinds = ("SystemExit 7", "KeyboardInterrupt", "StopIteration", "CancelledError", "SystemExit 7")
    assert said == [f"The function ended with {kind}." for kind in kinds]
    assert last["result"]["content"] == "quiet"
    printed = ["from a child", "printed", "while it is loaded"]
    assert sorted(outcome.notes.split("\n")[:-1]) == printed


async def test_a_tool_that_never_ends_does_not_hold_up_the_end(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    write(cli.home / "tools" / "hostile.py", HOSTILE)
    async with serving([{"tools": [{"name": "wait", "arguments": {}}]}]) as server:
        flags = ("--allow-all", "--output-format=json")
        running = await cli.use(server).start("-p", "go", *flags)
        assert running.stdout is not None
        async for line in running.stdout:
            if b'"tool.execution_start"' in line:
                break
        running.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            await running.communicate()
    assert running.returncode == 130
