"""Drafts in a real terminal: what is typed or pasted survives questions, stops and refusals."""

import json
import os
import signal

from clikit import Cli, bash, serving
from tuikit import conversing, open_terminal, prompts

PASTED = "\n".join(f"row {number} of the paste" for number in range(300))


async def test_a_pasted_draft_survives_the_words_of_a_refusal(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "Not made."}, {"text": "Read."}]
    async with serving(script) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("go\r")
        await terminal.sees("Run this command")
        await terminal.send(f"\x1b[200~{PASTED}\x1b[201~")
        await terminal.sees(r"› \[paste 1: 300 lines\]")
        await terminal.may_answer()
        terminal.type("5")
        await terminal.sees("your words:")
        terminal.type("use another name\r")
        await terminal.shows("— no: use another name")
        await terminal.sees(r"› \[paste 1: 300 lines\]")
        terminal.type("\r")
        await terminal.shows(r"made\.|Read\.")
        await server.wait_for_requests(2)
    assert prompts(server)[-1] == PASTED


async def test_stopping_the_turn_while_words_are_typed_keeps_words_and_draft(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "On."}]
    async with serving(script) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("go\r")
        await terminal.sees("Run this command")
        terminal.type("my draft")
        await terminal.sees("› my draft")
        await terminal.may_answer()
        terminal.type("5")
        await terminal.sees("your words:")
        terminal.type("half a reason")
        await terminal.sees("your words: half a reason")
        terminal.type("\x03")
        await terminal.sees("› my draft")
        terminal.type("\x03")
        await terminal.hides("› my draft")
        terminal.type("\x1b[A\x1b[A")
        await terminal.sees("› half a reason")
        terminal.type("\x03")
        await terminal.hides("› half a reason")


async def test_broken_bytes_in_a_draft_are_shown_kept_and_sent(cli: Cli) -> None:
    async with serving([{"text": "Read."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        os.write(terminal.master, b"\x1b[200~a \xff\xfe b\x1b[201~ and \x9b typed \xc3")
        await terminal.sees("› a �� b and")
        terminal.type("\x03")
        await terminal.sees("draft is in the history")
        terminal.type("\x1b[A")
        await terminal.sees("› a �� b and")
        terminal.type("\r")
        await terminal.shows(r"Read\.")
    assert prompts(server)[0].startswith("a �� b and � typed")


async def test_a_key_whose_action_fails_does_not_end_the_program(cli: Cli) -> None:
    (cli.home / "settings.json").mkdir()
    async with serving([{"text": "On."}]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("/theme\r")
        await terminal.sees("Use which colours")
        terminal.type("\r")
        await terminal.shows("not a regular file")
        terminal.type("go\r")
        await terminal.shows(r"On\.")


async def test_commands_of_the_person_with_a_space_stopped_and_a_shell(cli: Cli) -> None:
    cli.env |= {"SHELL": "/bin/sh", "PS1": "own shell: "}
    async with serving([]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("! echo spaced\r")
        await terminal.shows("! echo spaced\nspaced")
        terminal.type("!trap '' TERM; echo started; while :; do sleep 1; done\r")
        await terminal.sees("│ started")
        terminal.type("!sleep 60\r")
        await terminal.sees("○ ! sleep 60")
        terminal.type("\x1b")
        await terminal.shows("ended by SIGTERM")
        await terminal.hides("once more kills it")
        terminal.type("\x1b")
        await terminal.sees("once more kills it")
        terminal.type("\x1b")
        await terminal.shows("ended by SIGKILL")
        terminal.type("$\r")
        await terminal.sees("own shell:")
        terminal.type("echo in $((20 + 22))\r")
        await terminal.shows("in 42")
        terminal.type("exit\r")
        await terminal.ready()


async def test_files_are_completed_as_they_come_and_in_another_folder(cli: Cli) -> None:
    made = {"name": "create", "arguments": {"path": "later.txt", "file_text": "one\n"}}
    (cli.cwd / "sub").mkdir()
    (cli.cwd / "sub" / "inner.txt").write_text("the inner text\n")
    script = [{"tools": [made]}, {"text": "Made."}, {"text": "Read."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.shows(r"Made\.")
        terminal.type("@late")
        await terminal.sees("▸ later.txt")
        terminal.type("\x03")
        await terminal.ready()
        terminal.type("/cwd sub\r")
        await terminal.shows(r"The working directory is[^›]*sub\.")
        terminal.type("read @inn")
        await terminal.sees("▸ inner.txt")
        terminal.type("\t\r")
        await terminal.shows("attached inner.txt")
        await terminal.shows(r"Read\.")


async def test_a_signal_keeps_what_was_typed_and_damaged_settings_are_told(cli: Cli) -> None:
    """The draft, and the one that a command stood beside, were lost with the process."""
    (cli.home / "settings.json").write_text('{"theme": "pur')
    async with serving([]) as server, open_terminal(cli.use(server)) as terminal:
        await terminal.ready()
        note = "settings.json:1: Input data was truncated"  # wrapped after a long path
        await terminal.until(lambda: note in "".join(terminal.text.split("\n  ")), note)
        terminal.type("my draft")
        await terminal.sees("› my draft")
        terminal.type("\x18")
        await terminal.sees("Ctrl-X: e editor")
        terminal.type("/")
        await terminal.sees("› /\n")
        terminal.type("mod")
        await terminal.sees("› /mod")
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.ends() == 143
        await terminal.shows("Your draft is in the history")
    lines = (cli.home / "prompt-history.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["my draft", "/mod"]
