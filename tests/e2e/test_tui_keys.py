"""Keys of the inline interface in a real terminal: editing, steering, stopping, leaving."""

import asyncio
import os
import shutil
import signal
import termios
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from gitkit import git
from tuikit import conversing, open_terminal, prompts


async def test_several_lines_are_one_prompt(cli: Cli) -> None:
    async with serving([{"text": "Read."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("one\x1b\rtwo\nthree\x1b[13;2ufour\\\rfive")
        await terminal.sees("five")
        terminal.type("\r")
        await terminal.shows(r"Read\.")
    assert prompts(server) == ["one\ntwo\nthree\nfour\nfive"]


async def test_enter_steers_control_q_queues_and_up_takes_back(cli: Cli) -> None:
    script = [{"tools": [bash("sleep 2")]}, {"text": "Steered."}, {"text": "Queued."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.sees("○ bash sleep 2")
        terminal.type("to be queued\x11")
        await terminal.sees("queued: to be queued")
        terminal.type("taken back\x11")
        await terminal.sees("queued: taken back")
        terminal.type("\x1b[A")
        await terminal.sees("› taken back")
        await terminal.hides("queued: taken back")
        terminal.type("\x15to steer\r")
        await terminal.sees("steers: to steer")
        await terminal.shows(r"Steered\.")
        await terminal.shows(r"Queued\.")
    assert prompts(server) == ["go", "to steer", "to be queued"]


async def test_escape_stops_the_turn_and_control_c_twice_leaves(cli: Cli) -> None:
    async with (
        serving([{"tools": [bash("sleep 60")]}, {"text": "On."}]) as server,
        open_terminal(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.sees("○ bash sleep 60")
        terminal.type("a draft")
        await terminal.sees("› a draft")
        terminal.type("\x1b")
        await terminal.shows("Stopped by the user")
        await terminal.hides("Working")
        await terminal.sees("› a draft")
        terminal.type("\x03")
        await terminal.sees("draft is in the history")
        terminal.type("\x03")
        await terminal.sees("again to leave")
        terminal.type("\x1b[A")
        await terminal.sees("› a draft")
        terminal.type("\x03")
        await terminal.hides("› a draft")
        terminal.type("\x03")
        await terminal.sees("again to leave")
        terminal.type("\x03")
        assert await terminal.ends() == 0


async def test_a_large_paste_is_folded_and_sent_in_full(cli: Cli) -> None:
    pasted = "\n".join(f"row {number} of the paste" for number in range(300))
    async with serving([{"text": "Read."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("look: ")
        await terminal.send(f"\x1b[200~{pasted}\x1b[201~")
        await terminal.sees(r"\[paste 1: 300 lines\]")
        terminal.type("\x7f")
        await terminal.hides(r"\[paste")
        await terminal.send(f"\x1b[200~{pasted}\x1b[201~")
        await terminal.sees(r"\[paste 1: 300 lines\]|\[paste 2: 300 lines\]")
        terminal.type("\r")
        await terminal.shows(r"Read\.")
    assert prompts(server) == [f"look: {pasted}"]


async def test_commands_and_files_are_completed(cli: Cli) -> None:
    (cli.cwd / "src").mkdir()
    (cli.cwd / "src" / "parser.py").write_text("x = 1\n")
    async with serving([{"text": "Seen."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("/usa")
        await terminal.sees("▸ /usage")
        terminal.type("\r")
        await terminal.sees("› /usage")
        terminal.type("\r")
        await terminal.shows("No model calls yet")
        terminal.type("explain @pars")
        await terminal.sees("▸ src/parser.py")
        terminal.type("\t")
        await terminal.sees("› explain @src/parser.py")
        terminal.type("\r")
        await terminal.shows(r"Seen\.")
        terminal.type("/modle\r")
        await terminal.shows(r"did you mean /mode or /model\?|did you mean /model or /mode\?")
        await terminal.ready()
        terminal.type("\x1b[A")  # Up
        await terminal.sees("› /modle")
        terminal.type("\x15")
        await terminal.ready()
    assert "src/parser.py" in str(server.requests[-1].json["messages"])
    assert server.usage.requests == 1


async def test_earlier_prompts_of_all_sessions_are_recalled_and_searched(cli: Cli) -> None:
    async with serving([{"text": "A."}, {"text": "B."}]) as server:
        async with conversing(cli.use(server)) as terminal:
            await terminal.ready()
            terminal.type("explain the parser\r")
            await terminal.shows(r"A\.")
        async with conversing(cli.use(server)) as terminal:
            await terminal.ready()
            terminal.type("ex\x1b[A")
            await terminal.sees("› explain the parser")
            terminal.type("\x15")
            await terminal.ready()
            terminal.type("\x12")
            await terminal.sees("Prompts of all sessions")
            terminal.type("pars")
            await terminal.sees("▸ explain the parser")
            terminal.type("\r")
            await terminal.sees("› explain the parser")
            terminal.type("\x15")
            await terminal.ready()


async def test_unknown_sequences_and_broken_bytes_type_nothing(cli: Cli) -> None:
    async with serving([]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        os.write(terminal.master, b"ab\x1b[99;5~\x1b]11;rgb:0/0/0\x07\xff\xfe\x1b[?62;4ccd")
        await terminal.sees("› ab.*cd")
        assert "99" not in terminal.visible
        assert "rgb" not in terminal.visible
        terminal.type("\x15")
        await terminal.ready()


@pytest.mark.needs("git")
async def test_leaving_does_not_wait_for_the_list_of_files(cli: Cli, tmp_path: Path) -> None:
    real, go = shutil.which("git"), tmp_path / "go"
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *ls-files*--others*) until [ -e {go} ]; do sleep 0.05; done;; esac\n'
        f'exec {real} "$@"\n'
    )
    slow.chmod(0o755)
    git(cli.cwd, "init", "-q")
    cli.env["PATH"] = f"{slow.parent}:{cli.env['PATH']}"
    try:
        async with serving([]) as server, open_terminal(cli.use(server)) as terminal:
            await terminal.ready()
            terminal.type("@")
            await terminal.sees("› @")
            terminal.type("\x7f\x04")
            assert await terminal.ends() == 0
    finally:
        go.touch()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_leaves_the_terminal_as_it_was(cli: Cli, number: signal.Signals) -> None:
    async with (
        serving([{"tools": [bash("sleep 60")]}]) as server,
        open_terminal(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.sees("○ bash sleep 60")
        assert not termios.tcgetattr(terminal.master)[3] & termios.ECHO
        terminal.process.send_signal(number)
        assert await terminal.ends() == 128 + number
        after = termios.tcgetattr(terminal.master)
        assert after[3] & termios.ECHO
        assert after[3] & termios.ICANON
        assert after[0] & termios.ICRNL
        assert "\x1b[?2004l" in terminal.bytes.decode()


async def test_what_is_typed_during_start_up_is_kept(cli: Cli) -> None:
    async with (
        serving([{"text": "Heard."}]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        async with asyncio.timeout(50):
            while termios.tcgetattr(terminal.master)[3] & termios.ECHO:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert b"\x1b[?2026h" not in terminal.bytes  # long before the first frame
        terminal.type("early words")
        await terminal.sees("› early words")
        assert terminal.text.count("early words") == 1
        terminal.type("\r")
        await terminal.shows(r"Heard\.")
    assert prompts(server) == ["early words"]


async def test_a_terminal_that_takes_nothing_does_not_hold_the_agent_up(cli: Cli) -> None:
    long = "\n".join(f"line {number} {'x' * 60}" for number in range(2000))
    async with (
        serving(
            [{"text": long, "chunk": 400}, {"tools": [bash("touch made")]}, {"text": "End."}]
        ) as server,
        conversing(cli.use(server), "--allow-all") as terminal,
    ):
        await terminal.ready()
        terminal.stop_reading()
        terminal.type("write\r")
        terminal.type("then make it\r")
        for _ in range(600):
            if (cli.cwd / "made").exists():
                break
            await asyncio.sleep(0.05)
        assert (cli.cwd / "made").exists()
        terminal.go_on_reading()
        await terminal.shows(r"End\.")
        await terminal.ready()
    shown = terminal.text
    for number in range(2000):
        assert shown.count(f"line {number} x") == 1


async def test_a_narrow_window_shows_the_whole_conversation(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "Made " + "it " * 40 + "well."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it", size=(40, 12)) as terminal,
    ):
        await terminal.shows(r"Run this command\?")
        await terminal.sees(r"touch made[\s\S]*1/y  yes, once")
        await terminal.may_answer()
        terminal.type("1")
        await terminal.shows(r"well\.")
        await terminal.sees("Ask anything")
    assert terminal.text.count("it it it") > 2


async def test_an_idle_conversation_sends_nothing(cli: Cli) -> None:
    async with serving([{"text": "Hello."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("hello\r")
        await terminal.shows(r"Hello\.")
        await terminal.sees("Ask anything")
        await asyncio.sleep(0.5)  # the last frame of the turn
        sent = len(terminal.bytes)
        await asyncio.sleep(1.5)
        assert len(terminal.bytes) == sent


async def test_control_b_sends_the_running_command_to_the_background(cli: Cli) -> None:
    waiting = "echo began; while [ ! -e go ]; do sleep 0.05; done; echo ended > done"
    script = [
        {
            "tools": [
                {**bash(waiting), "arguments": {**bash(waiting)["arguments"], "initial_wait": 500}}
            ]
        },
        {"text": "I go on."},
        {"tools": [{"name": "read_bash", "arguments": {"shellId": "0", "delay": 20}}]},
        {"text": "It has ended."},
    ]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all", "-i", "begin") as terminal,
    ):
        await terminal.sees("│ began")
        terminal.type("\x02")
        await terminal.shows(r"I go on\.")
        told = str(server.requests[1].json["messages"][-1])
        assert "was sent to the background by the user" in told
        assert not (cli.cwd / "done").exists()
        (cli.cwd / "go").touch()
        terminal.type("is it done?\r")
        await terminal.shows(r"It has ended\.")
    assert (cli.cwd / "done").exists()
