"""Attachments in runs of the real program."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, serving
from customizekit import write

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_files_directories_and_images_reach_the_model(cli: Cli) -> None:
    write(cli.cwd / "a.py", "one\ntwo\n")
    write(cli.cwd / "docs/x.md", "x")
    write(cli.cwd / "pixel.png", PIXEL)
    flags = ("--attachment", "docs", "--attachment", "pixel.png")
    async with serving([{"text": "ok"}]) as server:
        outcome = await cli.use(server).ask("compare @a.py", *flags)
        parts = server.requests[0].json["messages"][1]["content"]
    (told,) = outcome.of("user.message")
    assert told["content"] == "compare @a.py"
    assert [one["type"] for one in told["attachments"]] == ["directory", "blob", "file"]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    assert texts[0] == told["transformedContent"]
    assert texts[0].endswith(
        f"\n\ncompare @a.py\n\n<tagged_files>\n* {cli.cwd}/docs (1 items)\n"
        f"* {cli.cwd}/a.py (3 lines)\n</tagged_files>"
    )
    images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    assert images == ["data:image/png;base64," + base64.b64encode(PIXEL).decode()]


async def test_an_attachment_that_is_not_there_is_a_usage_error(cli: Cli) -> None:
    async with serving(["never"]) as server:
        outcome = await cli.use(server).ask("x", "--attachment", "nothing.txt")
        assert not server.requests
    assert outcome.result["exitCode"] == 2
    assert "--attachment nothing.txt" in json.dumps(outcome.result)


@pytest.mark.proves("AMPROMPT-04", "SYS-25")
async def test_what_the_model_saw_of_a_prompt_never_changes(cli: Cli) -> None:
    write(cli.cwd / "a.py", "one\n")
    async with serving([{"text": "first"}, {"text": "second"}]) as server:
        await cli.use(server).ask("look at @a.py")
        before = server.requests[0].json["messages"][1]
        write(cli.cwd / "a.py", "one\ntwo\nthree\n")
        await cli.ask("again @a.py", "--continue")
        messages = server.requests[1].json["messages"]
    assert messages[1] == before
    assert "a.py (2 lines)" in before["content"]
    assert "a.py (4 lines)" in messages[3]["content"]


async def test_without_the_extra_an_image_that_must_be_shrunk_is_refused(cli: Cli) -> None:
    large = PIXEL + b"\0" * 6 * 1024 * 1024
    write(cli.cwd / "big.png", large)
    blocked = write(cli.cwd / "without/PIL/__init__.py", "raise ImportError('not installed')")
    env = {"PYTHONPATH": os.fspath(blocked.parent.parent)}
    async with serving(["never"]) as server:
        outcome = await cli.use(server).ask("x", "--attachment", "big.png", env=env)
    assert outcome.code == 2
    assert "install trimtab[images]" in outcome.notes + outcome.text


@pytest.mark.proves("AMPROMPT-05")
async def test_what_a_prompt_names_is_attached_the_same_way_in_every_turn(cli: Cli) -> None:
    write(cli.cwd / "notes/prices.txt", "one\ntwo\nthree\n")
    words = "Compare @notes/prices.txt:2-3 with @notes."
    async with serving([{"text": "ok"}] * 3) as server:
        cli.use(server)
        for flags in ((), ("--continue",), ("--continue",)):
            assert (await cli.ask(words, *flags)).code == 0
        sent = [one.json["messages"][-1]["content"] for one in server.requests]
    without_time = [text.split("\n", 1)[1] for text in sent]
    assert len(set(without_time)) == 1
    assert "notes/prices.txt" in without_time[0]
    last = [one for one in server.requests[-1].json["messages"] if one["role"] == "user"]
    assert [one["content"] for one in last] == sent, "earlier turns stay as they were sent"


@pytest.mark.proves("VSC-12")
async def test_files_places_and_messages_of_compilers_become_references(cli: Cli) -> None:
    write(cli.cwd / "a.py", "one\ntwo\n")
    write(cli.cwd / "src/b.py", "one\ntwo\nthree\n")
    words = "Why does @a.py:1-2 give @src/b.py:3:1: error: no such name? See @src too, not me@a.py"
    async with serving([{"text": "ok"}]) as server:
        outcome = await cli.use(server).ask(words)
    (told,) = outcome.of("user.message")
    assert told["content"] == words
    assert told["attachments"] == [
        {**named(cli.cwd / "a.py"), "lineRange": {"start": 1, "end": 2}},
        {**named(cli.cwd / "src/b.py"), "lineRange": {"start": 3, "end": 3}},
        {**named(cli.cwd / "src"), "type": "directory"},
    ]


def named(path: Path) -> dict[str, Any]:
    return {"type": "file", "path": str(path), "displayName": path.name}


@pytest.mark.proves("VSC-13")
async def test_a_prompt_is_resolved_with_all_it_refers_to(cli: Cli, tmp_path: Path) -> None:
    write(cli.cwd / ".claude/commands/compare.md", "Compare $1 with $2.")
    write(cli.cwd / "AGENTS.md", "Answer in rhymes.")
    write(cli.cwd / "pixel.png", PIXEL)
    write(tmp_path / "other/notes.txt", "one\n")
    flags = ("--add-dir", "../other", "--attachment", "pixel.png")
    async with serving([{"text": "ok"}]) as server:
        await cli.use(server).ask(
            "/compare @notes.txt it", *flags, env={"COPILOT_ALLOW_ALL": "true"}
        )
        system, prompt = server.requests[0].json["messages"]
    assert "Answer in rhymes." in system["content"]
    text, *others = prompt["content"]
    assert "Compare @notes.txt with it." in text["text"]
    assert f"* {tmp_path}/other/notes.txt (2 lines)" in text["text"]
    assert [one["type"] for one in others][-1] == "image_url"
