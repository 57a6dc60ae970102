"""A resumed session in a real terminal: the past reads as it did when it happened."""

import re

from clikit import Cli, bash, serving
from tuikit import Terminal, conversing, prompts


def past(terminal: Terminal, first: str) -> str:
    """Return what is written from a prompt to the editor."""
    text = terminal.text[terminal.text.rindex(f"> {first}") :]
    return text[: text.rindex("Trimtab 0")].rstrip() if "Trimtab 0" in text else text


async def test_the_output_of_an_interrupted_command_is_shown_again(cli: Cli) -> None:
    command = "seq 1 30; echo printed so far; sleep 60"
    script = [{"tools": [bash(command)]}, {"text": "On."}]
    async with serving(script) as server:
        async with conversing(cli.use(server), "-i", "go", "--allow-all") as terminal:
            await terminal.sees("printed so far")
            terminal.type("\x1b")
            await terminal.shows("Stopped by the user")
            await terminal.ready()
            shown = past(terminal, "go")
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
            again = past(terminal, "go")
    assert re.search(r"· interrupted\n(  │ \d+\n){7}  │ printed so far\n! Stopped", shown)
    for line in ("  │ 30", "  │ printed so far", "! Stopped by the user."):
        assert line in again.split("\n")


async def test_a_stopped_answer_and_its_reasoning_are_shown_again(cli: Cli) -> None:
    reply = {"reasoning": "Let me think.", "text": "The first line.\n\nAnd then\n" * 40}
    script = [{**reply, "chunk_delay": 0.05}, {"text": "On."}]
    async with serving(script) as server:
        async with conversing(cli.use(server), "-i", "go") as terminal:
            await terminal.sees("The first line")
            terminal.type("\x1b")
            await terminal.shows("Stopped by the user")
            await terminal.ready()
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
            again = past(terminal, "go")
    assert "∴ thought" in again
    assert again.index("The first line.") < again.index("! Stopped by the user.")


async def test_own_commands_are_shown_again_and_told_to_the_model(cli: Cli) -> None:
    async with serving([{"text": "A."}, {"text": "B."}]) as server:
        async with conversing(cli.use(server), "-i", "go") as terminal:
            await terminal.shows(r"A\.")
            await terminal.ready()
            terminal.type("!echo seen-$((40 + 2)); exit 3\r")
            await terminal.shows("exit code 3")
            terminal.type("!!echo kept-$((40 + 3))\r")
            await terminal.shows("kept-43")
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
            again = past(terminal, "go")
            assert "! echo seen-$((40 + 2)); exit 3\nseen-42\nexit code 3" in again
            assert "! echo kept-$((40 + 3))\nkept-43" in again
            terminal.type("what did it say?\r")
            await terminal.shows(r"B\.")
    told = prompts(server)[-1]
    assert "<user_command exit_code=3>\n$ echo seen-$((40 + 2)); exit 3\nseen-42\n" in told
    assert "kept" not in told


async def test_the_time_of_reasoning_is_shown_again(cli: Cli) -> None:
    reply = {"reasoning": "Hm. Well.", "text": "So.", "chunk_delay": 1.2}
    async with serving([reply]) as server:
        async with conversing(cli.use(server), "-i", "go") as terminal:
            await terminal.shows(r"So\.")
            await terminal.ready()
            [title] = re.findall(r"∴ thought for \d+ s", terminal.text)
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
            assert title in past(terminal, "go")
