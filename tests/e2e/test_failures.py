"""Injected failures, by output kind and stdin kind: valid output, the right code, no hang."""

import asyncio
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest

from clikit import TRIMTAB, Cli, Outcome, bash, serving

DONE = {"text": "Done."}
LIMIT_FILE_SIZE = """\
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""
SMALL_FILES = (sys.executable, "-c", LIMIT_FILE_SIZE, "3000")
SMALLEST_FILES = (sys.executable, "-c", LIMIT_FILE_SIZE, "1")
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python itself would write cut-off files into its cache, and fail on them in later tests."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a run can go wrong, and the exit code that says so."""

    code: int
    replies: Any = (DONE,)
    args: tuple[str, ...] = ("--allow-all",)
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    prompt: str = "go"
    wrap: tuple[str, ...] = ()


def error(status: int, **more: Any) -> dict[str, Any]:
    return {"error": {"status": status, **more}, "repeat": "forever"}


def tool(name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"tools": [{"name": name, "arguments": arguments}]}, DONE]


FAILURES = {
    "unknown flag": Failure(code=2, args=("--frobnicate",)),
    "unknown effort": Failure(code=2, args=("--effort", "huge")),
    "a number that is none": Failure(code=2, args=("--max-turns", "many")),
    "a negative number": Failure(code=2, args=("--max-turns=-1",)),
    "a duration that is none": Failure(code=2, args=("--deadline", "soon")),
    "a duration of nothing": Failure(code=2, args=("--deadline", "0s")),
    "a missing value": Failure(code=2, args=("--model",)),
    "a value that is not taken": Failure(code=2, args=("--allow-all=yes",)),
    "flags that contradict": Failure(code=2, args=("--plan", "--autopilot")),
    "a refused flag": Failure(code=2, args=("--share-gist",)),
    "a stray word": Failure(code=2, args=("--allow-all", "word")),
    "an empty prompt": Failure(code=2, prompt=""),
    "a prompt of blanks": Failure(code=2, prompt=" \n\t"),
    "no such directory": Failure(code=2, args=("-C", "nowhere")),
    "no such added directory": Failure(code=2, args=("--add-dir", "nowhere")),
    "a session id that is none": Failure(code=2, args=("--session-id", "me")),
    "a session that is not there": Failure(code=2, args=("--resume=01234567",)),
    "nothing to continue": Failure(code=2, args=("--continue",)),
    "no model service": Failure(code=7, unset=("COPILOT_PROVIDER_BASE_URL",)),
    "no model": Failure(code=2, unset=("COPILOT_MODEL",)),
    "an address that is none": Failure(code=2, env={"COPILOT_PROVIDER_BASE_URL": "nonsense"}),
    "an unknown kind of service": Failure(code=2, env={"COPILOT_PROVIDER_TYPE": "carrier-pigeon"}),
    "a home that cannot be written": Failure(code=2, env={"COPILOT_HOME": "/proc/nowhere"}),
    "a home that is a file": Failure(code=2, env={"COPILOT_HOME": "/etc/hostname"}),
    "nobody listens": Failure(code=8, env={"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:1/v1"}),
    "400": Failure(code=8, replies=[error(400, message="bad tool schema")]),
    "401": Failure(code=7, replies=[error(401)]),
    "402": Failure(code=8, replies=[error(402)]),
    "403": Failure(code=7, replies=[error(403)]),
    "404": Failure(code=8, replies=[error(404)]),
    "413": Failure(code=8, replies=[error(413)]),
    "429 for ever": Failure(code=8, replies=[error(429)]),
    "500 for ever": Failure(code=8, replies=[error(500)]),
    "503 for ever": Failure(code=8, replies=[error(503)]),
    "529 for ever": Failure(code=8, replies=[error(529)]),
    "an error page": Failure(code=8, replies=[error(502, body="<html>Bad gateway</html>")]),
    "reset before the answer": Failure(code=8, replies=[{"break": {"how": "reset"}, "repeat": "forever"}]),
    "closed before the answer": Failure(code=8, replies=[{"break": {"how": "close"}, "repeat": "forever"}]),
    "cut in the answer": Failure(code=8, replies=[{"text": "Long enough to be cut somewhere.", "break": {"after": 2}, "repeat": "forever"}]),
    "half-closed in the answer": Failure(code=8, replies=[{"text": "Long enough to be cut.", "break": {"how": "half", "after": 2}, "repeat": "forever"}]),
    "cut in a tool call": Failure(code=8, replies=[{"tools": [bash("touch half")], "break": {"after": 2}, "repeat": "forever"}]),
    "no JSON": Failure(code=8, replies=[{"raw": "data: not json at all\n\n", "repeat": "forever"}]),
    "an error in the stream": Failure(code=8, replies=[{"raw": 'data: {"error": {"message": "overloaded", "code": 503}}\n\n', "repeat": "forever"}]),
    "an empty stream": Failure(code=8, replies=[{"raw": "data: [DONE]\n\n", "repeat": "forever"}]),
    "silence": Failure(code=6, args=("--deadline", "1s"), replies=[{"break": {"how": "stall"}, "repeat": "forever"}]),
    "silence in the answer": Failure(code=6, args=("--deadline", "1s"), replies=[{"text": "Long enough to stop.", "break": {"how": "stall", "after": 1}, "repeat": "forever"}]),
    "a script that is over": Failure(code=8, replies=[{"tools": [bash("true")]}]),
    "an unknown tool": Failure(code=0, replies=tool("teleport", to="moon")),
    "arguments that do not fit": Failure(code=0, replies=tool("view")),
    "arguments that are no JSON": Failure(code=0, replies=[{"tools": [{"name": "view", "arguments": '{"path": '}]}, DONE]),
    "a file that is not there": Failure(code=0, replies=tool("view", path="nowhere.txt")),
    "a command that fails": Failure(code=0, replies=[{"tools": [bash("exit 3")]}, DONE]),
    "a command that is none": Failure(code=0, replies=[{"tools": [bash("no-such-command-here")]}, DONE]),
    "a denied write": Failure(code=4, args=(), replies=tool("create", path="x", file_text="x")),
    "a denied command": Failure(code=4, args=(), replies=[{"tools": [bash("touch x")]}, DONE]),
    "too many turns": Failure(code=6, args=("--allow-all", "--max-turns", "2"), replies={"replies": [], "otherwise": {"tools": [bash("true")]}}),
    "out of time in a command": Failure(code=6, args=("--allow-all", "--deadline", "1s"), replies=[{"tools": [bash("sleep 30")]}, DONE]),
    "never complete": Failure(code=3, args=("--autopilot", "--max-autopilot-continues", "2"), replies={"replies": [], "otherwise": DONE}),
    "blocked": Failure(code=3, args=("--autopilot",), replies=tool("task_complete", summary="No access.", outcome="blocked")),
    "a disk that is full": Failure(code=1, wrap=SMALL_FILES, env=NO_BYTECODE),
}  # fmt: skip


@contextmanager
def stdin_of(kind: str) -> Iterator[int]:
    with ExitStack() as stack:
        if kind == "terminal":
            master, slave = pty.openpty()
            stack.callback(os.close, master)
            stack.callback(os.close, slave)
            yield slave
        elif kind == "closed":
            yield asyncio.subprocess.DEVNULL
        else:
            read_end, write_end = os.pipe()
            if kind == "pipe":
                os.write(write_end, b"this is not the prompt\n")
                os.close(write_end)
            else:
                stack.callback(os.close, write_end)
            stack.callback(os.close, read_end)
            yield read_end


@pytest.mark.parametrize("stdin", ["terminal", "pipe", "closed", "open and silent"])
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_ends_with_valid_output_and_the_right_code(
    cli: Cli, name: str, form: str, stdin: str
) -> None:
    failure = FAILURES[name]
    async with serving(failure.replies) as server:
        cli.use(server)
        cli.env |= failure.env
        for variable in failure.unset:
            del cli.env[variable]
        args = ["-p", failure.prompt, "--output-format", form, *failure.args]
        outcome = await run(cli, args, failure, stdin)
    assert outcome.code == failure.code, outcome.notes
    assert b"Traceback" not in outcome.err
    assert not (cli.cwd / "half").exists(), "a half-received tool call was run"
    if form == "json":
        check_json(outcome)
    elif failure.code:
        check_text(outcome)


async def run(cli: Cli, args: list[str], failure: Failure, stdin: str) -> Outcome:
    with stdin_of(stdin) as descriptor:
        if not failure.wrap:
            return await cli.run(*args, stdin_fd=descriptor)
        program, *options = failure.wrap
        return await cli.run(*options, TRIMTAB, *args, stdin_fd=descriptor, program=program)


def check_json(outcome: Outcome) -> None:
    result = outcome.result
    assert (result["status"] == "success") == (outcome.code == 0)
    if outcome.code:
        assert result["error"]["message"].strip()
        assert outcome.notes.strip(), "a failure says on standard error what is wrong"
        assert outcome.notes.count("\n") == 1, outcome.notes


def check_text(outcome: Outcome) -> None:
    said = outcome.notes.strip()
    assert said, "a failure says what is wrong"
    assert "Internal error" not in said


@pytest.mark.parametrize("command", [("init",), ("mcp", "add", "echo", "--", "cat")])
async def test_a_full_disk_ends_a_command_with_code_1(cli: Cli, command: tuple[str, ...]) -> None:
    program, *options = SMALLEST_FILES
    outcome = await cli.run(*options, TRIMTAB, *command, program=program, env=NO_BYTECODE)
    assert outcome.code == 1, outcome.notes
    assert outcome.notes.startswith("Cannot write")
    assert outcome.notes.count("\n") == 1
