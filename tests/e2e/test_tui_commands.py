"""Commands in a real terminal: beside the work, copies, searches, links, and those that wait."""

from clikit import Cli, serving
from tuikit import conversing, prompts

ANSWER = "\n\n".join(f"Paragraph {number} of the answer." for number in range(1, 31))


async def test_commands_beside_an_answer_lose_no_line_of_it_and_those_that_change_wait(
    cli: Cli,
) -> None:
    script = [
        {"when": "The person asks something beside", "text": "It writes **paragraphs**."},
        {"when": "Review the changes", "text": "No defects."},
        {"text": ANSWER, "chunk": 8, "chunk_delay": 0.02},
    ]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go", "--allow-all") as terminal,
    ):
        await terminal.shows("Paragraph 2 of the answer")
        terminal.type("/review\r")
        await terminal.sees("queued: /review")
        terminal.type("/btw what does it do?\r")
        await terminal.shows(r"> /btw what does it do\?")
        await terminal.shows(r"It writes paragraphs\.")
        await terminal.shows(r"No defects\.")
        lines = terminal.text.split("\n")
        for number in range(1, 31):
            assert lines.count(f"Paragraph {number} of the answer.") == 1, terminal.text
        assert lines.index("It writes paragraphs.") < lines.index("> /review")


async def test_a_conversation_is_searched_its_link_opened_and_it_goes_on_in_a_copy(
    cli: Cli,
) -> None:
    opener = cli.cwd / "opener"
    opener.write_text(f'#!/bin/sh\necho "$1" > {cli.cwd}/opened\n')
    opener.chmod(0o755)
    cli.env.update(BROWSER=str(opener), PAGER="cat")
    text = "The needle is at https://example.com/hay?a=1, in the stack."
    async with (
        serving([text, "Here again."]) as server,
        conversing(cli.use(server), "-i", "where is it?") as terminal,
    ):
        await terminal.shows("in the stack")
        await terminal.ready()
        terminal.type("\x18")
        await terminal.sees("o link")
        terminal.type("o")
        await terminal.sees("Opening https://example.com/hay")
        terminal.type("\x06")
        await terminal.sees("Search this conversation  Enter reads on")
        terminal.type("needle")
        await terminal.sees("▸ The needle is at")
        terminal.type("\r")
        await terminal.shows("── The needle is at")
        await terminal.ready()
        terminal.type("/fork another way\r")
        await terminal.shows("session “another way”")
        await terminal.shows(r"This is a copy; the original is kept:\n  trimtab --resume=")
        terminal.type("and now?\r")
        await terminal.shows(r"Here again\.")
    assert prompts(server) == ["where is it?", "and now?"]
    assert (cli.cwd / "opened").read_text() == "https://example.com/hay?a=1\n"


async def test_the_output_of_an_own_command_waits_for_the_prompt_behind_a_command(
    cli: Cli,
) -> None:
    """A command typed after `!` was sent to the model as words."""
    async with serving(["Read."]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("!echo seen-by-the-model\r")
        await terminal.shows("\nseen-by-the-model")
        terminal.type("/compact\r")
        await terminal.shows("nothing to summarise")
        terminal.type("go\r")
        await terminal.shows(r"Read\.")
    (request,) = server.requests
    assert "seen-by-the-model" in str(request.json["messages"][-1])


async def test_settings_and_agents_are_panels(cli: Cli) -> None:
    async with serving([]) as server, conversing(cli.use(server)) as terminal:
        await terminal.ready()
        terminal.type("/settings\r")
        await terminal.sees("Settings  Enter changes it, Esc closes")
        terminal.type("enterq\r")
        await terminal.sees("› /settings enterQueues")
        terminal.type("true\r")
        await terminal.shows("enterQueues is now true")
        terminal.type("/settings enterQ")
        await terminal.sees("▸ enterQueues")
        terminal.type("\t")
        await terminal.sees("› /settings enterQueues\n")
        terminal.type("\r")
        await terminal.shows("\nenterQueues: true")
        terminal.type("/agent\r")
        await terminal.sees("Work as which agent")
        terminal.type("research\r")
        await terminal.shows(r"The agent is research\.")
        terminal.type("/delegate it\r")
        await terminal.shows(r"> /delegate it\n/delegate needs a service of GitHub")
    assert '"enterQueues": true' in (cli.home / "settings.json").read_text()
