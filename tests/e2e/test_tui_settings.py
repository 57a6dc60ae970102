"""Settings of the inline interface, damaged files and small windows: one remark, never a crash."""

import json
import os
import re
from typing import Any

import pytest

from clikit import Cli, bash, serving
from gitkit import git
from tuikit import conversing, open_terminal


def set_up(cli: Cli, **settings: Any) -> None:
    (cli.home / "settings.json").write_text(json.dumps(settings))


async def test_a_status_command_reads_json_and_prints_the_status_line(cli: Cli) -> None:
    command = "python3 -c \"import json,sys; print('I am', json.load(sys.stdin)['model']['id'])\""
    set_up(cli, statusLine={"command": command})
    async with serving([]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        await terminal.sees(r"I am scripted|took more than 300 ms")


async def test_a_status_command_that_hangs_is_named_once(cli: Cli) -> None:
    set_up(cli, statusLine={"command": "sleep 60"})
    async with (
        serving([{"text": "One."}, {"text": "Two."}]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        await terminal.shows("statusLine failed: it took more than 300 ms")
        for prompt, answer in (("a", "One"), ("b", "Two")):
            terminal.type(f"{prompt}\r")
            await terminal.shows(answer)
        await terminal.sees("scripted · interactive")
    assert terminal.text.count("statusLine failed") == 1


async def test_a_damaged_history_and_an_unknown_theme_are_no_obstacle(cli: Cli) -> None:
    set_up(cli, theme="no such theme", editorMode="vi")
    good = json.dumps({"text": "good words", "cwd": "/", "time": 1.0})
    (cli.home / "prompt-history.jsonl").write_bytes(b"\xff\xfe{not json\n" + good.encode() + b"\n{")
    async with serving([{"text": "Fine."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("go")
        await terminal.sees("› go")
        terminal.type("\x1b[A")
        await terminal.sees("› good words")
        terminal.type("\r")
        await terminal.shows(r"Fine\.")


async def test_enter_can_queue_and_control_q_steer(cli: Cli) -> None:
    set_up(cli, enterQueues=True)
    script = [{"delay": 2, "text": "First."}, {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go") as terminal,
    ):
        await terminal.sees("Working")
        terminal.type("later\r")
        await terminal.sees("queued: later")
        await terminal.shows(r"Second\.")


async def test_without_colour_nothing_is_coloured(cli: Cli) -> None:
    cli.env["NO_COLOR"] = "1"
    async with (
        serving([{"text": "# Title\n**bold** `code`"}]) as server,
        conversing(cli.use(server), "-i", "go") as terminal,
    ):
        await terminal.shows("bold code")
    assert set(re.findall(rb"\x1b\[[\d;]*m", terminal.bytes)) <= {b"\x1b[0m"}


async def test_a_tiny_window_gets_plain_lines(cli: Cli) -> None:
    async with serving([]) as server, open_terminal(cli.use(server), size=(19, 5)) as terminal:
        await terminal.shows("Enter sends")
        terminal.type("\x04")
        assert await terminal.ends() == 0


async def test_a_window_that_becomes_tiny_keeps_the_draft(cli: Cli) -> None:
    async with serving([{"text": "Heard."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("a draft")
        await terminal.sees("› a draft")
        terminal.resize(30, 5)
        terminal.type("!")
        await terminal.sees("a draft!")
        terminal.resize(80, 24)
        terminal.type("\r")
        await terminal.shows(r"Heard\.")


async def test_a_folder_whose_name_is_not_utf_8_keeps_history_and_status(cli: Cli) -> None:
    cli.cwd = cli.cwd / os.fsdecode(b"caf\xe9")
    cli.cwd.mkdir()
    program = "import json,sys; json.load(sys.stdin); print('the status was read')"
    set_up(cli, statusLine={"command": f'python3 -S -c "{program}"'})
    async with serving([{"text": "One."}]) as server:
        async with conversing(cli.use(server)) as terminal:
            await terminal.ready()
            terminal.type("remember this\r")
            await terminal.shows(r"One\.")
            await terminal.sees(r"the status was read|took more than 300 ms")
        async with conversing(cli) as terminal:
            await terminal.ready()
            terminal.type("\x12remember\t")
            await terminal.sees("▸ remember this")
            terminal.type("\x1b")
            await terminal.ready()
    assert "Internal error" not in terminal.text
    assert "damaged" not in terminal.text


@pytest.mark.needs("git")
async def test_the_first_lines_count_what_was_loaded_and_mark_a_changed_branch(cli: Cli) -> None:
    git(cli.cwd, "init", "-q", "-b", "trunk")
    (cli.cwd / "AGENTS.md").write_text("Be brief.\n")
    git(cli.cwd, "add", "AGENTS.md")
    git(cli.cwd, "commit", "-qm", "first")
    (cli.cwd / "AGENTS.md").write_text("Be very brief.\n")
    async with serving([]) as server, conversing(cli.use(server), "--trust-folder") as terminal:
        await terminal.ready()
    first = terminal.text.split("\n")
    assert "· trunk* · trusted folder" in first[1], terminal.text
    assert first[2].startswith("1 instruction file · Tip: ")
    assert len(first) == 3


async def test_only_the_first_five_sessions_have_a_tip(cli: Cli) -> None:
    tips = []
    async with serving([]) as server:
        for _ in range(6):
            async with conversing(cli.use(server)) as terminal:
                await terminal.ready()
            tips += re.findall("Tip: .*", terminal.text)
    assert len(tips) == len(set(tips)) == 5


async def test_the_row_of_work_says_what_is_done_how_long_and_for_how_many_tokens(
    cli: Cli,
) -> None:
    usage = {"input": 1000, "output": 204}
    script = [{"tools": [bash("sleep 60")], "usage": usage, "delay": 0.5}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--allow-all", "-i", "wait") as terminal,
    ):
        await terminal.sees(r"Working \(waiting for the model\) · \d s · Esc stops")
        await terminal.sees(r"Working \(bash\) · \d s · 1,204 tokens · Esc stops")
        terminal.type("\x1b")
        await terminal.hides("Working")


async def test_a_locale_without_utf_8_gets_ascii_only(cli: Cli) -> None:
    cli.env["LANG"] = "C"
    text = "Caf\u00e9 \u2192 \u6f22 \u2022 done."
    async with (
        serving([{"tools": [bash("echo \u00fc")]}, {"text": text}]) as server,
        conversing(cli.use(server), "--allow-all", "-i", "go") as terminal,
    ):
        await terminal.shows(r"Cafe > \?\? \* done\.")
        await terminal.shows(r"\* bash echo u")
        terminal.type("m\u00fcde\r")
        await terminal.shows("> mude")
    assert terminal.bytes.isascii()


async def test_no_color_sends_no_colours_at_all(cli: Cli) -> None:
    cli.env["NO_COLOR"] = "1"
    text = "# Title\n\n**bold** and `code`\n\n```python\ndef f(): return 1\n```\n\nThe end."
    async with (
        serving([{"tools": [bash("touch made")]}, {"text": text}]) as server,
        conversing(cli.use(server), "-i", "go") as terminal,
    ):
        await terminal.sees(r"Run this command\?")
        terminal.type("\x03")
        await terminal.hides(r"1/y")
        terminal.type("again\r")
        await terminal.shows("The end")
        terminal.type("/mo")
        await terminal.sees("/model")
        terminal.type("\x1b")
        await terminal.hides("/model")
        terminal.type("\x03")
        await terminal.ready()
    assert re.findall(rb"\x1b\[[0-9;]*m", terminal.bytes) == []
