"""Panels over work and set-up in a real terminal: tasks, undo, permissions, skills, servers."""

import json
import sys

import pytest

from clikit import Cli, bash, serving
from gitkit import git
from tuikit import conversing

AGENT = {
    "name": "task",
    "arguments": {
        "agent_type": "general-purpose",
        "description": "watch the build",
        "prompt": "count slowly",
        "mode": "background",
    },
}
CREATE = {"name": "create", "arguments": {"path": "made.txt", "file_text": "one\ntwo\n"}}
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tools = [{"name": "weigh", "description": "Weighs it.", "inputSchema": {"type": "object"}}]
    answers = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scales", "version": "1"},
        },
        "tools/list": {"tools": tools},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
"""


async def test_tasks_are_shown_with_their_state_read_written_to_and_stopped(cli: Cli) -> None:
    counting = bash("echo counted one; sleep 60")
    script = [
        {"when": "count slowly", "tools": [counting]},
        {"tools": [AGENT]},
        {"text": "Started.", "repeat": "forever"},
    ]
    cli.env["PAGER"] = "cat"
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.sees("◆ General purpose bash echo counted one")
        await terminal.sees(r"Working \(1 agent\) · .* · /tasks stops it")
        terminal.type("/tasks\r")
        await terminal.sees("▸ General purpose: watch the build +running · ")
        await terminal.sees(r"\$ echo counted one; sleep 60 +running")
        terminal.type("\x1b[B")
        await terminal.sees("  counted one")
        terminal.type("\r")
        await terminal.shows("counted one\n")
        await terminal.ready()
        terminal.type("/tasks\r")
        await terminal.sees("▸ General purpose")
        terminal.type("s")
        await terminal.sees("› /tasks send ")
        terminal.type("hurry up\r")
        await terminal.shows("Sent to ")
        terminal.type("/tasks\r")
        await terminal.sees("▸ General purpose")
        terminal.type("x")
        await terminal.shows("General purpose · cancelled")
        terminal.type("\x1b")
        await terminal.hides("▸ General purpose")
        await terminal.shows("◆ General purpose · cancelled")
        assert "system_notification" not in terminal.text
        await terminal.hides("Working")


async def test_leaving_names_what_works_in_the_background(cli: Cli) -> None:
    serve = bash("sleep 60")
    serve["arguments"] |= {"mode": "async", "shellId": "server"}
    script = [{"tools": [serve]}, {"text": "It runs."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.shows(r"It runs\.")
        await terminal.sees("1 task")
        terminal.type("\x04")
        await terminal.sees("sleep 60 still runs; Ctrl-D again stops it and leaves")


async def test_undo_offers_the_prompts_that_changed_files(cli: Cli) -> None:
    script = [{"tools": [CREATE]}, {"text": "Made."}, {"text": "Nothing."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it", "--allow-all") as terminal,
    ):
        await terminal.shows(r"Made\.")
        terminal.type("and now\r")
        await terminal.shows(r"Nothing\.")
        terminal.type("/undo\r")
        await terminal.sees(r"▸ make it +\d\d:\d\d, 1 file \+2 -0")
        terminal.type("p")
        await terminal.shows("-one")
        assert (cli.cwd / "made.txt").exists()
        terminal.type("/undo\r")
        await terminal.sees("▸ make it")
        terminal.type("\r")
        await terminal.shows("Reverse this with /redo")
        assert not (cli.cwd / "made.txt").exists()


async def test_permissions_skills_and_servers_are_panels(cli: Cli) -> None:
    skill = cli.home / "skills" / "weighing" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: weighing\ndescription: Weighs things.\n---\nWeigh.\n")
    code = cli.home / "server.py"
    code.write_text(SERVER)
    entry = {"type": "local", "command": sys.executable, "args": [str(code)], "tools": ["*"]}
    (cli.home / "mcp-config.json").write_text(json.dumps({"mcpServers": {"scales": entry}}))
    async with (
        serving([]) as server,
        conversing(cli.use(server), "--allow-tool", "shell(ls)") as terminal,
    ):
        await terminal.ready()
        terminal.type("/permissions\r")
        await terminal.sees(r"▸ allow +shell\(ls\)")
        terminal.type("a")
        await terminal.shows("Everything is allowed in this session")
        terminal.type("/skills\r")
        await terminal.sees("▸ /weighing  Weighs things")
        terminal.type("\r")
        await terminal.sees("› /weighing")
        terminal.type("\x03")
        await terminal.hides("› /weighing")
        terminal.type("/mcp\r")
        await terminal.sees("▸ scales +connected · stdio")
        terminal.type("d")
        await terminal.shows("scales is disabled for this session")
        await terminal.sees("▸ scales +disabled")
        terminal.type("e")
        await terminal.sees("▸ scales +connected")
        terminal.type("\r")
        await terminal.shows("weigh +Weighs it")


async def test_a_resumed_session_shows_the_answers_that_were_given(cli: Cli) -> None:
    ask = {"name": "ask_user", "arguments": {"question": "Colour?", "choices": ["red", "green"]}}
    script = [{"tools": [ask]}, {"tools": [bash("touch a"), bash("touch b")]}, {"text": "Done."}]
    async with serving(script) as server:
        async with conversing(cli.use(server), "-i", "paint") as terminal:
            await terminal.may_answer()
            terminal.type("2")
            await terminal.sees("touch a")
            await terminal.may_answer()
            terminal.type("y")
            await terminal.sees("touch b")
            await terminal.may_answer()
            terminal.type("2")
            await terminal.shows(r"Done\.")
        first = terminal.text.split("\n")
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
    told = [line for line in first if line.startswith(("  Colour", "  Run", "● "))]
    assert told == [
        "  Colour? — green",
        "  Run this command? — yes, once",
        "● bash touch a",
        "  Run this command? — yes, in this session",
        "● bash touch b",
    ]
    shown = terminal.text.split("\n")
    assert [line for line in shown if line.startswith(("  Colour", "  Run", "● "))] == told


async def test_a_resumed_session_shows_long_questions_and_what_was_decided_about_a_plan(
    cli: Cli,
) -> None:
    plan = {"name": "exit_plan_mode", "arguments": {"summary": "1. Look.\n2. Change it."}}
    long = "echo " + " ".join(f"word{number}" for number in range(60)) + "; touch made"
    script = [{"tools": [plan]}, {"tools": [bash(long)]}, {"text": "Done."}]
    async with serving(script) as server:
        async with conversing(cli.use(server), "--plan", "-i", "paint") as terminal:
            await terminal.sees(r"2 +carry it out in autopilot \(recommended\)")
            await terminal.may_answer()
            terminal.type("1")
            await terminal.sees(r"Run this command\?")
            await terminal.may_answer()
            terminal.type("y")
            await terminal.shows(r"Done\.")
        first = terminal.text.split("\n")
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
    marks = ("Run", "  why", "  2 and 3", "  Run", "  Carry", "Done")
    told = [line for line in first if line.startswith(marks)]
    assert told[0] == "  Carry out this plan? — accept it and carry it out; ask before changes"
    assert [line[:7] for line in told[1:4]] == ["Run thi", "  why: ", "  2 and"]
    assert told[4:] == ["  Run this command? — yes, once", "Done."]
    assert [line for line in terminal.text.split("\n") if line.startswith(marks)] == told


@pytest.mark.needs("git")
async def test_the_branch_is_marked_when_files_are_changed_and_no_filter_is_started(
    cli: Cli,
) -> None:
    git(cli.cwd, "init", "-q", "-b", "trunk")
    (cli.cwd / "a.txt").write_text("one\n")
    git(cli.cwd, "add", "a.txt")
    git(cli.cwd, "commit", "-qm", "first")
    (cli.cwd / "a.txt").write_text("two\n")
    async with serving([]) as server:
        async with conversing(cli.use(server)) as terminal:
            await terminal.sees(r"scripted · interactive · trunk\*")
        git(cli.cwd, "config", "filter.bad.clean", f"touch '{cli.home}/started'; cat")
        (cli.cwd / ".gitattributes").write_text("* filter=bad\n")
        (cli.cwd / "a.txt").write_text("three\n")
        async with conversing(cli) as terminal:
            await terminal.ready()
            terminal.type("@a")
            await terminal.sees("▸ a.txt")
            terminal.type("\x03")
            await terminal.ready()
    assert not (cli.home / "started").exists()
