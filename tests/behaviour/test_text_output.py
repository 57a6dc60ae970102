"""Runs as text for a person: what is said, how often, and in which number."""

import pytest

from clikit import Cli, bash, serving

DONE = {"text": "Done."}


@pytest.mark.parametrize(
    ("name", "replies", "flags", "said"),
    [
        ("deadline", [{"text": "x", "delay": 60}], ["--deadline", "0.5s"], "Stopped at the deadline"),
        ("turns", [{"tools": [bash("true")]}] * 3, ["--max-turns", "1"], "Stopped after 1 turn;"),
        ("tokens", [DONE], ["--max-tokens", "10"], "Stopped at the budget"),
        ("key", [{"error": {"status": 401}, "repeat": "forever"}], [], "status 401"),
        ("autopilot", {"replies": [], "otherwise": DONE}, ["--autopilot", "--max-autopilot-continues", "1"], "Autopilot stopped after 1 continuation "),
        ("command", [], ["-p", "/nosuch"], "Unknown command /nosuch"),
    ],
)  # fmt: skip
async def test_the_reason_to_stop_is_told_once(
    cli: Cli, name: str, replies: object, flags: list[str], said: str
) -> None:
    prompt = [] if "-p" in flags else ["-p", "go"]
    async with serving(replies) as server:
        ran = await cli.use(server).run(*prompt, "--allow-all", *flags)
    assert ran.code, name
    assert ran.notes.count(said) == 1, ran.notes
    sentences = [line for line in ran.notes.splitlines() if line and line[0] not in "●…"]
    assert len(sentences) == len(set(sentences))


async def test_one_of_a_thing_is_not_many(cli: Cli) -> None:
    create = {"name": "create", "arguments": {"path": "a", "file_text": "x\n"}}
    usage = {"input": 1, "output": 1}
    replies = [{"tools": [create], "usage": usage}, {**DONE, "usage": {"input": 0, "output": 0}}]
    async with serving(replies) as server:
        two = await cli.use(server).run("-p", "make it", "--allow-all")
    async with serving([{**DONE, "usage": usage}]) as server:
        one = await cli.use(server).run("-p", "hello")
    assert " · 2 model calls · 1 token in, 1 out · 1 file, +1 -0 · " in two.notes
    assert " · 1 model call · 1 token in, 1 out · " in one.notes


async def test_a_failing_command_does_not_look_like_a_passing_one(cli: Cli) -> None:
    failing = "echo nearly; until [ -e begun ]; do sleep 0.01; done; echo FAILED; exit 1"
    replies = [{"tools": [bash(failing), bash("touch begun; echo fine")]}, DONE]
    async with serving(replies) as server:
        ran = await cli.use(server).run("-p", "test it", "--allow-all")
    lines = ran.notes.splitlines()
    failed = [number for number, line in enumerate(lines) if "✗" in line]
    assert len(failed) == 1
    above, line = lines[failed[0] - 1 : failed[0] + 1]
    assert "exit code 1 after 0." in line
    # Either call may begin first; the one that failed is named unless its own line is above.
    assert ("echo nearly" in line) != ("● bash echo nearly" in above)
    assert "    FAILED\n" in ran.notes
    assert "    fine\n" not in ran.notes


async def test_an_error_is_shown_to_its_end(cli: Cli) -> None:
    """The end of a sentence says what to do; it was cut after 160 characters."""
    long = "The service does not like this request, " * 6 + "so send another one."
    replies = [{"error": {"status": 400, "message": long}, "repeat": "forever"}]
    async with serving(replies) as server:
        ran = await cli.use(server).run("-p", "hello")
    assert "so send another one); correct what it names." in ran.notes
