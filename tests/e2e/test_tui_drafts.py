"""Drafts in a real terminal: what is typed or pasted survives questions, stops and refusals."""

from clikit import Cli, bash, serving
from tuikit import conversing, prompts

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
        await terminal.shows("They said: use another name")
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
