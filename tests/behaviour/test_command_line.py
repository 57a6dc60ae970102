"""The command line as a person types it: prompts without flags, help, wrong words."""

import os
from pathlib import Path

import pytest

from clikit import Cli, serving
from terminalkit import talking
from trimtab.cli.flags import FLAGS


async def test_a_sentence_without_a_flag_is_the_prompt(cli: Cli) -> None:
    async with serving([{"text": "Fixed."}]) as server:
        ran = await cli.use(server).run("fix it, please", "--output-format", "json")
    assert ran.of("user.message")[0]["content"] == "fix it, please"
    assert ran.code == 0


async def test_a_sentence_without_a_flag_begins_a_conversation_in_a_terminal(cli: Cli) -> None:
    async with serving([{"text": "Fixed."}]) as server, talking(cli.use(server), "fix it") as seen:
        await seen.shows(r"Fixed\.\s+> $")
        assert server.usage.requests == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fix", "it", "--allow-all"], "trimtab -p 'fix it'"),
        (["hello"], "trimtab -p hello"),
        (["undoo"], "did you mean `trimtab undo`?"),
        (["-p", "fix", "it"], "put the whole prompt in quotes: -p 'fix it'"),
        (["fix it", "now"], "put the whole prompt in quotes: 'fix it now'"),
        (["--allow-all", "hello"], "give the prompt with -p 'hello'"),
        (["-C", "x", "mcp", "list"], "Flags come after the command; begin with: trimtab mcp"),
    ],
)
async def test_words_that_are_no_command_say_how_a_prompt_is_given(
    cli: Cli, args: list[str], said: str
) -> None:
    ran = await cli.run(*args)
    assert ran.code == 2
    assert said in ran.notes
    assert ran.notes.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        *(["--help"], ["-h"], ["--model", "x", "--help"], ["help"]),
        *(["--server", "--help"], ["--headless", "--stdio", "-h"], ["--acp", "--help"]),
    ],
)
async def test_help_is_shown_wherever_it_is_asked_for(cli: Cli, args: list[str]) -> None:
    ran = await cli.run(*args)
    assert ran.code == 0
    assert ran.text.startswith("Usage: trimtab")


def test_a_flag_is_described_once_and_what_is_refused_is_not_in_the_help() -> None:
    names = [name for flag in FLAGS for name in flag.names]
    assert sorted(names) == sorted(set(names))
    assert all(flag.hidden for flag in FLAGS if flag.refused)


async def test_a_limit_in_ai_credits_is_accepted_and_holds(cli: Cli) -> None:
    replies = [{"text": "x", "usage": {"input": 9, "output": 9}}] * 2
    async with serving(replies) as server:
        cli.use(server).env["COPILOT_MODEL"] = "gpt-5-mini"
        enough = await cli.ask("go", "--max-ai-credits", "100")
        too_little = await cli.ask("go", "--max-ai-credits", "0.001")
    assert enough.code == 0, enough.notes
    assert too_little.code == 5, too_little.notes


@pytest.mark.parametrize(("flags", "kept"), [([], False), (["--keep"], True)])
async def test_the_demo_leaves_its_folder_only_when_asked_to(
    cli: Cli, tmp_path: Path, flags: list[str], kept: bool
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    ran = await cli.run("demo", "--scripted", *flags, env={"TMPDIR": str(folder)})
    assert ran.code == 0
    assert "+    return" in ran.notes, "the change is shown"
    left = [name for name in os.listdir(folder) if name.startswith("trimtab-demo-")]
    assert bool(left) is kept
