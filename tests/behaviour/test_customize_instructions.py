"""Instruction files reach the model, wrapped, in order, once; as the real program sends them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from customizekit import write
from gitkit import make_repository

HELLO = [{"text": "Hello."}]


async def system_prompt(cli: Cli, *args: str, **options: Any) -> str:
    """The system message of the first request of a run."""
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", *args, **options)
        assert outcome.code == 0, outcome.notes
        return system_of(server.requests[0])


def system_of(request: Any) -> str:
    message = request.json["messages"][0]
    assert message["role"] in ("system", "developer")
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.proves("INST-01", "INST-11", "SYS-19")
@pytest.mark.parametrize(
    "name",
    [
        ".github/copilot-instructions.md",
        "AGENTS.md",
        "CLAUDE.md",
        ".claude/CLAUDE.md",
        "GEMINI.md",
    ],
)
async def test_a_repository_file_is_in_the_prompt_wrapped_and_attributed(
    cli: Cli, name: str
) -> None:
    make_repository(cli.cwd)
    write(cli.cwd / name, "Always write haiku.\n")
    prompt = await system_prompt(cli)
    assert (
        f"<custom_instruction>\nFrom {name}:\n\nAlways write haiku.\n</custom_instruction>"
        in prompt
    )


@pytest.mark.proves("INST-10", "INST-02", "INST-03", "INST-04", "INST-05")
async def test_files_are_merged_in_the_documented_order(cli: Cli) -> None:
    make_repository(cli.cwd)
    sub = cli.cwd / "packages" / "one"
    places = [
        cli.home / "copilot-instructions.md",
        cli.cwd / ".github" / "copilot-instructions.md",
        cli.cwd / "AGENTS.md",
        cli.cwd / "CLAUDE.md",
        cli.cwd / "GEMINI.md",
        cli.cwd / ".github" / "instructions" / "deep" / "a.instructions.md",
        cli.home / "instructions" / "b.instructions.md",
        sub / "AGENTS.md",
    ]
    for number, path in enumerate(places):
        write(path, f"rule number {number}\n")
    prompt = await system_prompt(cli, cwd=sub)
    found = [prompt.index(f"rule number {number}") for number in range(len(places))]
    assert found == sorted(found)


@pytest.mark.proves("INST-12", "INST-13")
async def test_the_same_text_under_several_names_is_one_block_that_names_them_all(
    cli: Cli,
) -> None:
    make_repository(cli.cwd)
    write(cli.cwd / "AGENTS.md", "Only once.\n")
    (cli.cwd / "CLAUDE.md").symlink_to("AGENTS.md")
    write(cli.cwd / "GEMINI.md", "Only once.\n")
    prompt = await system_prompt(cli)
    assert prompt.count("Only once.") == 1
    assert "From AGENTS.md, CLAUDE.md, GEMINI.md:" in prompt


@pytest.mark.proves("INST-08")
async def test_a_variable_names_more_folders(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "one" / "AGENTS.md", "from one\n")
    write(tmp_path / "two" / "x.instructions.md", "from two\n")
    named = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    prompt = await system_prompt(cli, env={"COPILOT_CUSTOM_INSTRUCTIONS_DIRS": named})
    assert "from one" in prompt
    assert "from two" in prompt


@pytest.mark.proves("INST-14", "HEAD-08")
async def test_no_custom_instructions_leaves_out_instructions_and_nothing_else(cli: Cli) -> None:
    write(cli.cwd / "AGENTS.md", "not wanted\n")
    write(cli.home / "copilot-instructions.md", "not wanted either\n")
    write(cli.home / "skills" / "s" / "SKILL.md", "---\ndescription: kept\n---\nx\n")
    prompt = await system_prompt(cli, "--no-custom-instructions")
    assert "not wanted" not in prompt
    assert "<custom_instruction" not in prompt
    assert "- s: kept" in prompt


async def test_instructions_of_an_untrusted_folder_cannot_bring_in_files_from_elsewhere(
    cli: Cli, tmp_path: Path
) -> None:
    make_repository(cli.cwd)
    secret = write(tmp_path / "secret.md", "the secret\n")
    write(cli.cwd / "AGENTS.md", f"Hello.\n\n@{secret}\n@../secret.md\n@docs/fine.md\n")
    write(cli.cwd / "docs" / "fine.md", "imported text\n")
    (cli.cwd / "CLAUDE.md").symlink_to(secret)
    prompt = await system_prompt(cli)
    assert "the secret" not in prompt
    assert '<imported path="docs/fine.md">\nimported text\n</imported>' in prompt


@pytest.mark.proves("INST-06", "INST-07")
async def test_child_folders_are_read_from_the_start_when_a_setting_says_so(cli: Cli) -> None:
    make_repository(cli.cwd)
    write(cli.cwd / ".gitignore", "generated/\n")
    write(cli.cwd / "a" / "AGENTS.md", "child a.\n")
    write(cli.home / "settings.json", "{}")
    assert "child a." not in await system_prompt(cli)
    write(cli.home / "settings.json", '{"enableChildInstructions": true, // both levels\n}')
    ignored = ("node_modules", "vendor", "dist", "build", ".next", ".nuxt", "out", "coverage")
    left_out = ("a/b/c", ".git/x", "generated", "vendor/x", *ignored)
    for name in ("a", "a/b", *left_out):
        write(cli.cwd / name / "AGENTS.md", f"child {name}.\n")
    prompt = await system_prompt(cli)
    assert "child a." in prompt
    assert "child a/b." in prompt
    for name in left_out:
        assert f"child {name}." not in prompt


@pytest.mark.proves("INST-03")
async def test_a_nested_file_and_a_scoped_file_arrive_when_something_they_are_for_is_touched(
    cli: Cli,
) -> None:
    make_repository(cli.cwd)
    write(cli.cwd / "src" / "AGENTS.md", "nested rule\n")
    write(cli.cwd / "src" / "a.py", "x = 1\n")
    scoped = "---\napplyTo: '**/*.py'\ndescription: Python\n---\nscoped rule\n"
    write(cli.cwd / ".github" / "instructions" / "py.instructions.md", scoped)
    look = {"name": "view", "arguments": {"path": "src/a.py"}}
    async with serving([{"tools": [look]}, {"tools": [look]}, {"text": "Done."}]) as server:
        outcome = await cli.use(server).ask("look")
        first, second, third = server.requests
    assert "nested rule" not in system_of(first)
    assert "scoped rule" not in json.dumps(first.json)
    messages = second.json["messages"]
    assert [message["role"] for message in messages[-3:]] == ["tool", "user", "user"]
    assert "nested rule" in messages[-2]["content"]
    assert "scoped rule" in messages[-1]["content"]
    assert json.dumps(third.json).count("nested rule") == 1
    log = [json.loads(line) for line in cli.logs()[0].read_bytes().splitlines()]
    kinds = [line["data"]["kind"] for line in log if line["type"] == "system.notification"]
    assert [kind["type"] for kind in kinds] == ["instruction_discovered"] * 2
    assert [kind.get("description") for kind in kinds] == [None, "Python"]
    assert kinds[0]["triggerFile"] == os.path.join(os.path.realpath(cli.cwd), "src/a.py")
    assert outcome.code == 0


async def test_broken_files_are_one_warning_and_the_rest_loads(cli: Cli) -> None:
    make_repository(cli.cwd)
    (cli.cwd / "AGENTS.md").write_bytes(b"\0\1\2 binary")
    write(cli.cwd / "CLAUDE.md", "still here\n")
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi")
        prompt = system_of(server.requests[0])
    assert "still here" in prompt
    warnings = [
        one for one in outcome.of("session.warning") if one["warningType"] == "customization"
    ]
    assert len(warnings) == 1
    assert "AGENTS.md: it is a binary file" in warnings[0]["message"]
