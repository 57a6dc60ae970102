"""A conversation in the inline interface: answers, tools, questions, in a real terminal."""

from clikit import Cli, bash, serving
from tuikit import conversing

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
    for number in range(100):
        assert terminal.text.split("\n").count(f"line {number}") == 1
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
