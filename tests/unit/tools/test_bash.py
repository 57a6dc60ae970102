"""The shell tools."""

import asyncio
import os
import re

import pytest

from toolkit import Bench, processes_with, saved_text, until


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo hello && echo world", "hello\nworld\n<exited with exit code 0>"),
        ("echo out; echo err >&2; exit 3", "out\nerr\n<exited with exit code 3>"),
        ("true", "\n<exited with exit code 0>"),
        ("printf 'no newline'", "no newline\n<exited with exit code 0>"),
        ("kill -9 $$", "\n<exited with exit code 137>"),
        ("printf '\\xff'", "\ufffd\n<exited with exit code 0>"),
    ],
)
async def test_output_and_exit_code(bench: Bench, command: str, text: str) -> None:
    assert await bench.bash(command) == text


async def test_output_is_shown_while_the_command_runs(bench: Bench) -> None:
    await bench.bash("echo one; echo zwei | iconv -t utf-8")
    assert "".join(bench.shown) == "one\nzwei\n"


async def test_a_character_cut_in_two_is_shown_whole(bench: Bench) -> None:
    await bench.bash("printf '\\xe6\\x97'; sleep 0.05; printf '\\xa5'")
    assert bench.shown == ["日"]


async def test_the_end_of_much_output_is_shown_while_the_command_runs(bench: Bench) -> None:
    running = asyncio.ensure_future(
        bench.bash("seq 100000 | sed s/^/row-/ ; until [ -e go ]; do sleep 0.01; done")
    )
    await until(lambda: "row-100000\n" in "".join(bench.shown))
    (bench.root / "go").touch()
    await running
    shown = "".join(bench.shown)
    assert shown.startswith("row-1\nrow-2\n")
    assert len(shown) < 200_000  # of 1.2 MB
    end = shown.rpartition("\n…\n")[2].split()
    assert end[-1] == "row-100000"
    assert all(row.startswith("row-") for row in end)  # whole lines


async def test_a_slow_command_goes_on_in_the_background(bench: Bench) -> None:
    text = await bench.bash("echo early; read -t 1 <> <(:); echo late", initial_wait=0.1)
    assert text == (
        "early\n<command with shellId: 0 is still running after 0.1 seconds. The command is still "
        "running. Check the output above - if it looks like the command is waiting for input, use "
        "write_bash to provide it. Otherwise, use read_bash to continue waiting for output, or "
        "stop_bash to stop it.>"
    )
    listed = await bench.text("list_bash")
    assert re.match(
        r"Active shell sessions:\n  shellId: 0, pid: \d+, mode: sync, status: running, "
        r"elapsed: 0s, commands: 1, unread output: no\n    current command: echo early",
        listed,
    )
    text = await bench.text("read_bash", shellId="0", delay=10)
    assert text == "late\n<command with id: 0 exited with exit code 0>"
    again = await bench.text("read_bash", shellId="0", delay=10)
    assert again == "\n<command with id: 0 exited with exit code 0>"


async def test_a_silent_command_is_said_to_be_silent(bench: Bench) -> None:
    text = await bench.bash("sleep 20", initial_wait=0.05)
    assert text.startswith(
        "<command with shellId: 0 is still running after 0.05 seconds. The command is still running"
        " but hasn't produced output yet."
    )
    assert await bench.text("stop_bash", shellId="0") == "<command with id: 0 stopped>"
    assert await bench.text("list_bash") == "<no active shell sessions>"
    assert processes_with(bench.session_id) == []


async def test_a_dialogue_with_a_program(bench: Bench) -> None:
    program = "read name; echo hello $name; read more; echo $more; cat; echo over"
    started = await bench.bash(program, mode="async", shellId="talk")
    assert started == "<command started in background with shellId: talk>"
    text = await bench.text("write_bash", shellId="talk", input="you{enter}", delay=5)
    assert text == (
        "hello you\n<command with shellId: talk is waiting for input. Choose: answer it with "
        "write_bash, wait longer with read_bash, or stop it with stop_bash.>"
    )
    text = await bench.text("write_bash", shellId="talk", input="so\nthis{ctrl-d}", delay=5)
    assert text == "so\nthisover\n<command with id: talk exited with exit code 0>"


async def test_a_terminal_on_request(bench: Bench) -> None:
    text = await bench.bash(
        "test -t 0 && test -t 1 && echo $TERM; printf 'Name: '; read x", pty=True
    )
    assert text.startswith("xterm\nName:")
    assert "is waiting for input" in text
    text = await bench.text("write_bash", shellId="0", input="me{enter}", delay=5)
    assert text.endswith("<command with id: 0 exited with exit code 0>")
    interrupted = await bench.bash("exec cat", pty=True, shellId="cat")
    assert "waiting for input" in interrupted
    text = await bench.text("write_bash", shellId="cat", input="{ctrl-c}", delay=5)
    assert "exit code 130" in text


async def test_an_interrupt_reaches_a_program_without_terminal(bench: Bench) -> None:
    await bench.bash("exec sleep 50", mode="async", shellId="s")
    text = await bench.text("write_bash", shellId="s", input="{ctrl-c}", delay=5)
    assert "exit code 130" in text


async def test_wrong_shell_ids_are_answered_with_those_there_are(bench: Bench) -> None:
    result = await bench.call("read_bash", shellId="7", delay=1)
    assert (result.kind, result.text) == (
        "failure",
        (
            "Invalid shell ID: 7. Please supply a valid shell ID to read output from.\n\n"
            "<no active shell sessions>"
        ),
    )
    await bench.bash("sleep 30", mode="async", shellId="mine")
    assert "shellId: mine" in await bench.text("stop_bash", shellId="yours")
    taken = await bench.call("bash", command="true", description="", shellId="mine")
    assert taken.kind == "failure"
    assert taken.text.startswith("<command with id: mine is already running")


async def test_input_for_a_command_without_any_is_refused(bench: Bench) -> None:
    await bench.bash("sleep 30", initial_wait=0)
    result = await bench.call("write_bash", shellId="0", input="x", delay=0)
    assert result.kind == "failure"
    assert "mode async" in result.text


async def test_a_detached_command_outlives_the_workspace(bench: Bench) -> None:
    marker, go = bench.path("alive"), bench.path("go")
    command = f"echo up; until test -e {go}; do sleep 0.02; done; touch {marker}"
    text = await bench.bash(command, mode="async", detach=True)
    assert text == "<command started in detached background with shellId: 0>"
    async with asyncio.timeout(60):
        while not (text := await bench.text("read_bash", shellId="0", delay=0.1)).startswith(
            "up\n"
        ):
            assert "is still running" in text
    assert text.startswith("up\n<command with shellId: 0 is still running")
    await bench.workspace.aclose()
    go.touch()
    await until(marker.exists)


async def test_large_output_goes_to_a_file(bench: Bench) -> None:
    text = await bench.bash("seq 1 10000; exit 4")
    assert text.startswith("Output too large to read at once (47.7 KB). Saved to: ")
    assert text.endswith("\n<exited with exit code 4>")
    assert saved_text(text) == "".join(f"{i}\n" for i in range(1, 10001))
    assert "\n\nPreview (first 500 chars):\n1\n2\n3\n" in text


async def test_the_threshold_is_a_setting(bench: Bench) -> None:
    bench.output_limit = 100
    assert (await bench.bash("seq 1 100")).startswith("Output too large")
    bench.output_limit = 1000000
    assert not (await bench.bash("seq 1 100000")).startswith("Output too large")


async def test_commands_longer_than_an_argument_run(bench: Bench) -> None:
    text = "x" * 300_000
    assert await bench.bash(f"cat > big <<'EOF'\n{text}\nEOF") == "\n<exited with exit code 0>"
    assert bench.path("big").read_text() == text + "\n"


async def test_what_cannot_be_started_is_said(bench: Bench) -> None:
    assert (await bench.call("bash", command="a\0b", description="")).kind == "failure"
    bench.root.rmdir()
    result = await bench.call("bash", command="true", description="")
    assert result.kind == "failure"
    assert "no such file or directory" in result.text
    bench.root.mkdir()


async def test_processes_left_running_are_stopped_and_named(bench: Bench) -> None:
    text = await bench.bash("sleep 100 & setsid -f sleep 101; env -i setsid -f sleep 102; echo x")
    assert text == (
        "x\n<stopped because the command left them running: sleep. To keep a process running, "
        "start it with mode async>\n<exited with exit code 0>"
    )
    assert processes_with(bench.session_id) == []
    assert processes_with("sleep\x00102") == []


async def test_output_of_what_ends_by_itself_is_waited_for(bench: Bench) -> None:
    text = await bench.bash("(sleep 0.1; echo late) & echo early")
    assert text == "early\nlate\n<exited with exit code 0>"


async def test_cancelling_kills_the_tree_at_once(bench: Bench) -> None:
    call = asyncio.ensure_future(
        bench.bash("trap '' TERM; setsid sleep 100 & (sleep 100 &) ; touch ready; sleep 100")
    )
    await until(bench.path("ready").exists)
    call.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await call
    assert processes_with(bench.session_id) == []
    assert await bench.text("list_bash") == "<no active shell sessions>"


async def test_the_environment_waits_for_nobody_and_has_no_keys(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await bench.bash("env")
    assert f"COPILOT_AGENT_SESSION_ID={bench.session_id}" in text
    for setting in ("GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "EDITOR=false", "TERM=dumb"):
        assert setting in text.split("\n")
    assert "CI=" not in text.split("\n")


async def test_a_command_that_had_to_be_killed_says_so(bench: Bench) -> None:
    await bench.bash("trap '' TERM; while :; do sleep 1; done", mode="async", shellId="tough")
    reading = asyncio.ensure_future(bench.text("read_bash", shellId="tough", delay=20))
    await asyncio.sleep(0)
    await until(lambda: len(processes_with(bench.session_id)) > 1)
    await bench.call("stop_bash", shellId="tough")
    assert await reading == "\n<command with id: tough exited with exit code 137>"


async def test_access_is_the_exact_command(bench: Bench) -> None:
    access = bench.access("bash", command="rm -rf x", description="Clean up")
    assert (access.kind, access.target, access.intention) == ("shell", "rm -rf x", "Clean up")
    assert access.mutates
    typed = bench.access("write_bash", shellId="0", input="rm -rf x{enter}")
    assert (typed.kind, typed.target) == ("shell", "rm -rf x{enter}")
    assert bench.tools["read_bash"].access({"shellId": "0"}, bench) == ()
    assert bench.tools["list_bash"].access({}, bench) == ()


async def test_memory_and_descriptors_stay_flat(bench: Bench) -> None:
    await bench.bash("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        await bench.bash("echo x")
    assert len(os.listdir("/proc/self/fd")) == before
    assert bench.workspace.shells.list() == []
