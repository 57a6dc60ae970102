"""A conversation in the inline interface: answers, tools, questions, in a real terminal."""

import json

import pytest

from clikit import Cli, bash, serving
from gitkit import git
from tuikit import conversing, open_terminal

ANSWER = """# Title

Some **bold** prose that is long enough to be wrapped at the end of the row of a window, twice.

```python
def hello() -> str:
    return "a line of code that is much longer than eighty columns, and is left to the terminal"
```

| name | value |
|---|---|
| one | 1 |

The end."""


async def test_an_answer_is_written_once_and_stays_in_the_scrollback(cli: Cli) -> None:
    long = "\n".join(f"line {number}" for number in range(100))
    async with (
        serving([{"text": ANSWER, "chunk": 5}, {"text": long, "chunk": 7}]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        await terminal.ready()
        terminal.type("hello\r")
        await terminal.shows("The end")
        assert "> hello" in terminal.text
        terminal.type("more\r")
        await terminal.shows("line 99")
        await terminal.sees("Ask anything")
    shown = terminal.text.split("\n")
    for number in range(100):
        assert shown.count(f"line {number}") == 1
    assert terminal.text.count('return "a line of code') == 1
    assert "**" not in terminal.text
    assert "one   1" in terminal.text


async def test_a_call_is_asked_about_runs_and_leaves_one_line(cli: Cli) -> None:
    script = [{"tools": [bash("echo first; touch made")]}, {"text": "Made it."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it") as terminal,
    ):
        await terminal.sees(r"Run this command\?")
        await terminal.sees(r"\$ echo first; touch made")
        await terminal.sees(r"why: ")
        await terminal.may_answer()
        assert not (cli.cwd / "made").exists()
        terminal.type("y")
        await terminal.shows(r"Made it\.")
        assert (cli.cwd / "made").exists()
    assert terminal.text.count("● bash echo first; touch made") == 1


async def test_keys_typed_before_a_question_can_be_read_belong_to_the_draft(cli: Cli) -> None:
    script = [{"delay": 0.5, "tools": [bash("touch made")]}, {"text": "Next."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it") as terminal,
    ):
        await terminal.sees("Working")
        terminal.type("y")
        await terminal.sees(r"Run this command\?")
        terminal.type("y")
        await terminal.sees("› yy")
        assert not (cli.cwd / "made").exists()
        await terminal.may_answer()
        terminal.type("n")
        await terminal.shows("rejected")
        await terminal.sees("› yy")  # nothing typed is lost, and nothing of it was sent
        assert not (cli.cwd / "made").exists()
        terminal.type("\x15")
        await terminal.sees("Ask anything")


@pytest.mark.parametrize("mode", ["emacs", "vi"])
async def test_escape_answers_a_question_with_no(cli: Cli, mode: str) -> None:
    (cli.home / "settings.json").write_text(json.dumps({"editorMode": mode}))
    script = [{"tools": [bash("touch made")]}, {"text": "Next."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it") as terminal,
    ):
        await terminal.sees(r"Run this command\?")
        await terminal.may_answer()
        terminal.type("\x1b")
        await terminal.shows("rejected")
        await terminal.ready()
    assert not (cli.cwd / "made").exists()


async def test_a_question_never_hides_a_part_of_the_command(cli: Cli) -> None:
    command = f"echo {'harmless ' * 12}; touch made"
    async with (
        serving([{"tools": [bash(command)]}]) as server,
        conversing(cli.use(server), "-i", "make it", size=(60, 24)) as terminal,
    ):
        await terminal.sees("1/y")
        shown = terminal.text.replace("\n", "")
        assert f"$ {command}" in shown
        assert shown.count("harmless; touch made") + shown.count("harmless ; touch made") >= 1
        await terminal.may_answer()
        terminal.type("n")
        await terminal.ready()
    assert not (cli.cwd / "made").exists()


async def test_the_prose_of_a_question_wraps_at_words_and_its_choices_are_whole(cli: Cli) -> None:
    command = "python3 -m pytest tests/unit -q && git fetch --all && npm publish --tag next"
    async with (
        serving([{"tools": [bash(command)]}]) as server,
        conversing(cli.use(server), "-i", "test it", size=(50, 30)) as terminal,
    ):
        await terminal.may_answer()
        shown = terminal.text
        assert "  2/!  yes, in this session\n" in shown
        assert "  3    yes, always in this folder\n" in shown
        notes = shown[shown.index("  why: ") : shown.rindex("Run this command?")]
        rows = notes.rstrip().split("\n")
        assert all(row.startswith(("  why", "  2 and 3", "  c allows", "    ")) for row in rows), (
            notes
        )
        assert "shell(python3 -m pytest), shell(git fetch), shell(npm publish): every `python3" in (
            " ".join(notes.split())
        )
        assert "…" not in notes
        terminal.type("n")
        await terminal.ready()


async def test_a_long_choice_can_be_read_to_its_end(cli: Cli) -> None:
    choices = ["red", f"green {'and more ' * 10}to the end"]
    ask = {"name": "ask_user", "arguments": {"question": "Colour?", "choices": choices}}
    async with (
        serving([{"tools": [ask]}, {"text": "Thanks."}]) as server,
        conversing(cli.use(server), "-i", "paint", size=(60, 24)) as terminal,
    ):
        await terminal.sees(r"Colour\?")
        await terminal.shows("to the end")
        await terminal.may_answer()
        terminal.type("2")
        await terminal.shows(r"Thanks\.")


async def test_a_link_of_an_answer_is_a_link_of_the_terminal(cli: Cli) -> None:
    answer = "Read [the guide](https://example.com/guide) or https://example.com/other."
    async with (
        serving([{"text": answer, "chunk": 6}]) as server,
        conversing(cli.use(server), "-i", "where?") as terminal,
    ):
        await terminal.shows(r"the guide \(https://example\.com/guide\)")
        await terminal.shows(r"other\.")
    sent = terminal.bytes.decode()
    assert "\x1b]8;;https://example.com/guide\x1b\\" in sent
    assert "\x1b]8;;https://example.com/other\x1b\\" in sent


async def test_a_long_diff_that_was_asked_about_is_not_written_again(cli: Cli) -> None:
    (cli.cwd / "many.txt").write_text("".join(f"old {number}\n" for number in range(30)))
    new = "".join(f"new {number}\n" for number in range(30))
    arguments = {
        "path": str(cli.cwd / "many.txt"),
        "old_str": (cli.cwd / "many.txt").read_text(),
        "new_str": new,
    }
    script = [{"tools": [{"name": "edit", "arguments": arguments}]}, {"text": "Changed."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "change it") as terminal,
    ):
        await terminal.may_answer()
        terminal.type("y")
        await terminal.shows(r"Changed\.")
        await terminal.shows(r"· \+30 -30")
    assert (cli.cwd / "many.txt").read_text() == new
    assert terminal.text.count("new 17") == 1


async def test_the_rule_of_a_question_can_be_edited(cli: Cli) -> None:
    script = [
        {"tools": [bash("git tag one")]},
        {"tools": [bash("git branch two")]},
        {"text": "Both."},
    ]
    git(cli.cwd, "init", "-q")
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "first")
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "tag and branch") as terminal,
    ):
        await terminal.may_answer()
        await terminal.sees(r"e +edit the rule")
        terminal.type("e")
        await terminal.sees(r"rule: shell\(git tag")
        terminal.type("\x15shel(git)\r")
        await terminal.sees("did you mean shell")
        terminal.type("\x15shell(git:*)\r")
        await terminal.sees(r"yes, allow shell\(git:\*\) in this session")
        await terminal.may_answer()
        terminal.type("2")
        await terminal.shows(r"Both\.")
    assert "two" in git(cli.cwd, "branch")


async def test_the_history_on_disk_has_no_secrets_and_can_be_searched(cli: Cli) -> None:
    cli.env["DEPLOY_TOKEN"] = "s3cr3t-value-of-mine"
    async with (
        serving(["One.", "Two."]) as server,
        conversing(cli.use(server)) as terminal,
    ):
        await terminal.ready()
        terminal.type("use s3cr3t-value-of-mine here\r")
        await terminal.shows(r"One\.")
        terminal.type("something else\r")
        await terminal.shows(r"Two\.")
        terminal.type("/history use\r")
        await terminal.sees("Prompts of all sessions")
        terminal.type("\r")
        await terminal.sees("› use s3cr3t-value-of-mine here")
        terminal.type("\x15")
        await terminal.sees("Ask anything")
    stored = (cli.home / "prompt-history.jsonl").read_text()
    assert "s3cr3t" not in stored
    assert "use ****** here" in stored


async def test_a_running_command_is_named_with_its_time_above_the_end_of_its_output(
    cli: Cli,
) -> None:
    command = (
        "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done; until [ -e stop ]; do sleep 0.02; done"
    )
    async with (
        serving([{"tools": [bash(command)]}, {"text": "Over."}]) as server,
        open_terminal(cli.use(server), "--allow-all", "-i", "go") as terminal,
    ):
        await terminal.sees(
            r"○ bash for i in 1 2 3 4 5 [^\n]*… · \d s\n  │ line 6\n(  │ line \d\n){3}"
        )
        (cli.cwd / "stop").touch()
        await terminal.sees(r"Over\.")
        await terminal.shows(r"\n● bash for i [^●]* · 9\s+lines\n")
        terminal.type("\x04")
        assert await terminal.ends() == 0


async def test_reasoning_is_one_line_above_the_answer(cli: Cli) -> None:
    reply = {"reasoning": "First this, then that.", "text": "Decided.", "chunk": 4}
    async with (
        serving([reply]) as server,
        open_terminal(cli.use(server), "-i", "go") as terminal,
    ):
        await terminal.sees(r"∴ thought[^\n]*\n+Decided\.\n+› ")
        assert terminal.text.count("thought") == 1
        terminal.type("\x04")
        assert await terminal.ends() == 0
