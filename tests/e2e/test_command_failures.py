"""Injected failures of every subcommand and of the interactive start: no traceback, ever."""

import asyncio
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from clikit import TRIMTAB, Cli, serving
from e2e.test_failures import FAILURES
from terminalkit import TRACES, Terminal, start
from trimtab.cli.command_parser import CommandParser
from trimtab.cli.command_table import COMMANDS, build_parser

WRONG: dict[str, list[list[str]]] = {
    "agents": [["add", "nowhere"], ["remove", "x"], ["enable", "x"], ["-C", "nowhere"], ["--bad"]],
    "blame": [[], ["nowhere"], ["."], ["--bad"]],
    "customizations": [["explain", "x"], ["--kind"], ["--kind", "x"], ["-C", "nowhere"], ["x"]],
    "demo": [["--scripted", "--bad"], ["--scripted", "word"], ["--scripted", "--model"]],
    "attach": [[], ["x"], ["--bad"]],
    "bridge": [["--port", "x"], ["--port", "99999"], ["--map", "x"], ["--bad"], ["--", "nowhere"]],
    "flags": [["x"], ["--bad"]],
    "fleet": [["a goal"], ["show", "x"], ["tail", "x"], ["resume", "x"], ["stop", "x"], ["undo", "x"], ["a goal", "--plan", "nowhere"], ["a goal", "--workers", "0"], ["list", "--bad"]],
    "lsp": [["x"], ["--bad"], ["-C", "nowhere"]],
    "doctor": [["--bad"]],
    "help": [["nosuch"], ["undo", "redo"]],
    "hooks": [["x"], ["test"], ["test", "x"], ["test", "preToolUse", "--input", "nowhere"]],
    "init": [["x"], ["-C", "nowhere"]],
    "instructions": [["x"], ["--bad"]],
    "mcp": [["get", "x"], ["add", "x"], ["add", "x", "--transport", "http", "x"], ["add", "x", "--timeout", "x", "--", "y"], ["test", "x"], ["remove", "x"], ["enable", "x"], ["disable", "x"]],
    "mock-model": [[], ["--script", "nowhere"], ["--script", "."], ["--port", "x"], ["--script", "bad.yaml"], ["--script", "good.yaml", "--port", "99999"], ["--script", "good.yaml", "--host", "256.1.1.1"]],
    "models": [["probe"], ["probe", "x"], ["pull"], ["pull", "x"], ["--bad"]],
    "net": [["--bad"]],
    "permissions": [[], ["explain"], ["explain", "ls", "--allow-tool", "shell("], ["x"]],
    "plugins": [["install", "nowhere"], ["install", "."], ["update", "x"], ["enable", "x"], ["uninstall", "x"], ["trust", "x"], ["marketplace", "add", "nowhere"], ["marketplace", "browse", "x"], ["marketplace", "x"]],
    "prompt": [[], ["diff"], ["diff", "a", "b"], ["show", "--agent", "x"], ["show", "--mode", "x"]],
    "redo": [["x"], ["--prompt", "x"], ["--bad"]],
    "rewind": [["x"], ["--prompt", "9"], ["--bad"]],
    "schema": [[], ["x"]],
    "runtimes": [["x"], ["probe"], ["probe", "x"], ["--bad"]],
    "sessions": [["show", "x"], ["show", "../../etc/passwd"], ["verify"], ["repair", "x"], ["export", "x"], ["fork", "x"], ["fork", "x", "--prompt", "0"], ["delete", "x"], ["restore", "x"]],
    "simulate": [[], ["nowhere"], ["."], ["--bad"]],
    "skills": [["add", "nowhere"], ["remove", "x"], ["enable", "x"], ["add", "."]],
    "tasks": [["x"], ["tail"], ["tail", "x"], ["send", "x"], ["send", "x", "y"], ["stop", "x"], ["--bad"]],
    "undo": [["x"], ["--prompt", "x"], ["--hunk", "1"], ["--file", "x"], ["--bad"]],
    "version": [["x"]],
    "worktrees": [["remove", "x"], ["remove"], ["x"]],
}  # fmt: skip
"""Arguments that must be refused, by subcommand."""

PLAIN: dict[str, list[str]] = {
    "attach": ["x"],
    "blame": ["good.yaml"],
    "bridge": ["--", "true"],
    "demo": ["--scripted"],
    "hooks": ["list"],
    "mock-model": ["--script", "nowhere"],
    "permissions": ["explain", "ls"],
    "prompt": ["show"],
    "schema": ["events"],
    "sessions": ["list"],
}
"""Arguments with which a subcommand has something to do; the others need none."""

FILES = (
    "settings.json", "config.json", "permissions-config.json", "providers.json", "mcp-config.json",
    "trusted.json", "plugins.json",
)  # fmt: skip


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (cli.cwd / "bad.yaml").write_text("replies: [[[")
    (cli.cwd / "good.yaml").write_text("- text: hi\n")
    return cli


def check(said: str, code: int, what: object) -> None:
    # What a command of the demo printed is shown indented, and may well be a traceback.
    said = "\n".join(line for line in said.split("\n") if not line.startswith("    "))
    assert not [trace for trace in TRACES if trace in said], f"{what}: {said}"
    assert 0 <= code <= 8 or code in (130, 141), f"{what}: exit code {code}\n{said}"


def test_every_subcommand_is_in_the_matrix() -> None:
    assert set(WRONG) == set(COMMANDS)


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_arguments_are_refused_with_a_sentence(cli: Cli, name: str) -> None:
    async def refused(args: list[str]) -> None:
        ran = await cli.run(name, *args)
        check(ran.text + ran.notes, ran.code, args)
        assert ran.code, f"{args} were accepted: {ran.text}"
        assert ran.notes.strip(), f"{args}: nothing was said"
        if ran.code == 2:
            assert ran.notes.count("\n") == 1, f"{args}: more than a sentence: {ran.notes}"

    for args in WRONG[name]:
        await refused(args)


@pytest.mark.parametrize("name", COMMANDS)
async def test_every_subcommand_explains_itself(cli: Cli, name: str) -> None:
    helps: dict[tuple[str, ...], str] = {}
    waiting: list[tuple[tuple[str, ...], CommandParser]] = [((name,), build_parser(name))]
    while waiting:
        words, parser = waiting.pop()
        helps[words] = parser.format_help()
        assert f"Usage: trimtab {' '.join(words)}" in helps[words]
        waiting += [((*words, action), child) for action, child in parser.actions.items()]
    longest = max(helps, key=len)
    asked = await cli.run(*longest, "--help")
    helped = await cli.run("help", *longest)
    assert (asked.code, asked.text, asked.notes) == (0, helps[longest], "")
    assert (helped.code, helped.text, helped.notes) == (0, helps[longest], "")


def broken_home(folder: Path, content: bytes) -> dict[str, str]:
    home = folder / "broken"
    home.mkdir()
    for file in FILES:
        (home / file).write_bytes(content)
    (home / "hooks").mkdir()
    (home / "hooks" / "all.json").write_bytes(content)
    return {"COPILOT_HOME": str(home)}


def folders_for_files(folder: Path) -> dict[str, str]:
    home = folder / "folders"
    for file in FILES:
        (home / file).mkdir(parents=True)
    (home / "session-state").write_text("a file where a folder should be")
    return {"COPILOT_HOME": str(home)}


def unreadable_home(folder: Path) -> dict[str, str]:
    home = folder / "unreadable"
    home.mkdir(mode=0)
    return {"COPILOT_HOME": str(home)}


HOMES: dict[str, Callable[[Path], dict[str, str]]] = {
    "a home that is a file": lambda _: {"COPILOT_HOME": "/etc/hostname"},
    "a home that cannot be made": lambda _: {"COPILOT_HOME": "/proc/nowhere"},
    "a home that cannot be read": unreadable_home,
    "files that are no JSON": lambda folder: broken_home(folder, b"{ this is \xff no JSON"),
    "files of the wrong kind": lambda folder: broken_home(folder, b"[1, 2, 3]"),
    "folders where files should be": folders_for_files,
    "ASCII only": lambda _: {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
}


@pytest.mark.parametrize("home", HOMES)
async def test_no_subcommand_fails_with_a_traceback_whatever_the_home_is(
    cli: Cli, home: str, tmp_path: Path
) -> None:
    cli.env |= HOMES[home](tmp_path)
    for name in COMMANDS:
        ran = await cli.run(name, *PLAIN.get(name, []))
        check(ran.text + ran.notes, ran.code, name)


@contextmanager
def closed(*descriptors: int) -> Iterator[dict[str, Any]]:
    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    yield {"preexec_fn": close}


@contextmanager
def full(descriptor: int) -> Iterator[dict[str, Any]]:
    with open("/dev/full", "wb") as device:
        yield {"stdout" if descriptor == 1 else "stderr": device}


@contextmanager
def unread() -> Iterator[dict[str, Any]]:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as device:
        yield {"stdout": device}


STREAMS = {
    "closed stdin": lambda: closed(0),
    "closed stdout": lambda: closed(1),
    "closed stderr": lambda: closed(2),
    "nothing open": lambda: closed(0, 1, 2),
    "a full stdout": lambda: full(1),
    "a full stderr": lambda: full(2),
    "a reader that went away": unread,
}


@pytest.mark.parametrize("streams", STREAMS)
def test_no_subcommand_fails_with_a_traceback_whatever_its_streams_are(
    cli: Cli, streams: str
) -> None:
    lines = [[name, *PLAIN.get(name, [])] for name in COMMANDS]
    lines += [["-p", "go"], ["-p", "go", "--output-format", "json"], ["--bad"]]
    for line in lines:
        with ExitStack() as stack:
            given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            given |= stack.enter_context(STREAMS[streams]())
            process = subprocess.Popen(
                [TRIMTAB, *line],
                cwd=cli.cwd,
                env=cli.env,
                stdin=subprocess.DEVNULL,
                **given,
            )
            out, err = process.communicate(timeout=60)
        check(((out or b"") + (err or b"")).decode(), process.returncode, line)
        if streams in ("a full stdout", "closed stdout", "a reader that went away"):
            assert process.returncode, f"{line}: lost output is no success"


def test_the_version_that_cannot_be_printed_is_an_error(cli: Cli) -> None:
    with open("/dev/full", "wb") as device:
        ran = subprocess.run(
            [TRIMTAB, "--version"], env=cli.env, stdout=device, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == 1
    assert ran.stderr.count(b"\n") == 1
    assert b"No space left on device" in ran.stderr


def test_no_subcommand_fails_with_a_traceback_in_a_folder_that_is_gone(cli: Cli) -> None:
    for name in COMMANDS:
        gone = cli.cwd / "gone"
        gone.mkdir()

        def leave(folder: Path = gone) -> None:
            os.chdir(folder)
            os.rmdir(folder)

        ran = subprocess.run(
            [TRIMTAB, name, *PLAIN.get(name, [])],
            env=cli.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=leave,
            check=False,
            timeout=60,
        )
        check((ran.stdout + ran.stderr).decode(), ran.returncode, name)


def test_names_that_are_not_utf8_cause_no_traceback(cli: Cli) -> None:
    folder = os.fsencode(cli.cwd) + b"/od\xffd"
    os.mkdir(folder)
    (cli.home / "hooks").mkdir()
    lines: list[list[bytes]] = [
        [name.encode(), *map(str.encode, PLAIN.get(name, []))] for name in COMMANDS
    ]
    lines += [
        [name, *rest, b"--json"]
        for name, *rest in (
            [b"doctor"], [b"customizations"], [b"net"], [b"models"], [b"prompt", b"show"],
            [b"hooks", b"list"], [b"sessions", b"list"], [b"undo"], [b"worktrees"], [b"mcp"],
        )
    ]  # fmt: skip
    lines += [
        [b"mcp", b"add", b"\xff", b"--", b"\xff"], [b"skills", b"add", b"\xff"], [b"\xff"],
        [b"--\xff"], [b"-p", b"h\xffi"], [b"-p", b"h\xffi", b"--output-format", b"json"],
        [b"--model", b"\xff", b"-p", b"x"], [b"-C", b"\xff", b"-p", b"x"],
        [b"sessions", b"show", b"\xff"], [b"permissions", b"explain", b"echo \xff"],
    ]  # fmt: skip
    for line in lines:
        ran = subprocess.run(
            [os.fsencode(TRIMTAB), *line],
            cwd=folder,
            env=cli.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        check((ran.stdout + ran.stderr).decode(), ran.returncode, line)


ADDRESS = {"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1/v1", "COPILOT_MODEL": "any"}
INTERACTIVE: dict[str, tuple[list[str], dict[str, str], int]] = {
    "no model": ([], {}, 7),
    "no model, with a first prompt": (["-i", "go"], {}, 7),
    "no model, with words": (["fix the test"], {}, 7),
    "a service without a model": ([], {**ADDRESS, "COPILOT_MODEL": ""}, 2),
    "an address that is none": ([], {"COPILOT_PROVIDER_BASE_URL": "nonsense"}, 2),
    "a home that is a file": ([], {"COPILOT_HOME": "/etc/hostname"}, 2),
    "a home that cannot be made": ([], {"COPILOT_HOME": "/proc/nowhere", **ADDRESS}, 2),
    "an unknown flag": (["--frobnicate"], {}, 2),
    "flags that contradict": (["--plan", "--autopilot"], {}, 2),
    "an unknown session": (["--resume=01234567"], {}, 2),
    "nothing to continue": (["--continue"], {}, 2),
    "an unknown agent": (["--agent", "nosuch"], {}, 2),
    "no such folder": (["-C", "nowhere"], {}, 2),
    "a rule that is none": (["--allow-tool", "shell("], {}, 2),
}


@pytest.mark.parametrize("name", INTERACTIVE)
async def test_an_interactive_start_that_fails_says_one_sentence(cli: Cli, name: str) -> None:
    args, env, code = INTERACTIVE[name]
    cli.env |= env
    process, terminal = await start(cli, *args)
    async with asyncio.timeout(50):
        ended = await process.wait()
    await terminal.shows(r"\n")
    check(terminal.seen, ended, name)
    assert ended == code, terminal.seen
    assert terminal.seen.rstrip("\r\n").count("\n") == 0, terminal.seen


async def test_broken_settings_do_not_keep_a_conversation_from_starting(
    cli: Cli, tmp_path: Path
) -> None:
    cli.env |= broken_home(tmp_path, b"{ this is no JSON")
    process, terminal = await start(cli)
    async with asyncio.timeout(50):
        ended = await process.wait()
    check(terminal.seen, ended, "broken settings")
    assert ended in (2, 7), terminal.seen


AT_THE_START = {
    name
    for name, failure in FAILURES.items()
    if failure.code in (2, 7) and not name.isdigit() and not failure.wrap
}
"""What keeps a conversation from starting; all else happens in it."""


@pytest.mark.parametrize("name", [name for name in FAILURES if " prompt" not in name])
async def test_a_failure_in_a_conversation_is_told_and_the_conversation_goes_on(
    cli: Cli, name: str
) -> None:
    failure = FAILURES[name]
    async with serving(failure.replies) as server:
        cli.use(server)
        cli.env |= failure.env
        for variable in failure.unset:
            del cli.env[variable]
        through = (*failure.wrap, TRIMTAB) if failure.wrap else ()
        process, terminal = await start(cli, "-i", "go", *failure.args, program=through)
        async with asyncio.timeout(50):
            if name in AT_THE_START:
                code = await process.wait()
                await terminal.shows(r"\n$")
                assert code == failure.code, terminal.seen
            else:
                await talk_to_the_end(process, terminal)
                assert process.returncode in (0, failure.code), terminal.seen
                answer = re.compile(r"(?:● |Done|  (?!✗))")
                said = plain(terminal.seen).partition("leaves.\n")[2].split("\n")
                told = [line for line in said if line.endswith(".") and not answer.match(line)]
                assert told or not failure.code, f"nothing was said: {terminal.seen}"
    check(plain(terminal.seen), process.returncode or 0, name)


def plain(seen: str) -> str:
    """What stands on the screen in the end: without escape sequences and what was cleared."""
    kept = re.sub(r"[^\n]*\r\x1b\[2K", "", seen)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", kept)


async def talk_to_the_end(process: asyncio.subprocess.Process, terminal: Terminal) -> None:
    """Refuse what is asked, and leave at the next prompt, if the program has not ended."""
    ended = asyncio.create_task(process.wait())
    while not ended.done():
        asked = asyncio.create_task(terminal.shows(r"(?:\n|\x1b\[2K)(?:> |\? )$"))
        await asyncio.wait((ended, asked), return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            await asked
            answer = "n\n" if terminal.news.endswith("? ") else "\x04"
            terminal.forget()
            terminal.type(answer)
            if answer == "\x04":
                break
        else:
            asked.cancel()
    await ended
