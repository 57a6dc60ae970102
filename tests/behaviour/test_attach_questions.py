"""Questions of the plain dialog and of editors, answered by `trimtab attach`."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from acpkit import connected
from clikit import Cli, bash, serving
from terminalkit import talking
from trimtab.host.session_socket import NAME

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


def script(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "replies": [{"when": {"last": "go"}, "repeat": 1, "tools": [call]}],
        "otherwise": {"text": "All done."},
    }


def find_session(cli: Cli) -> str:
    found: list[Path] = list(cli.home.rglob(NAME))
    return found[0].parent.name


QUESTIONS = {
    "permission": (bash("touch made"), b"y\n", "touch made"),
    "choice": (
        {"name": "ask_user", "arguments": {"question": "Which?", "choices": ["red", "blue"]}},
        b"2\n",
        "Which?",
    ),
    "plan": (
        {
            "name": "exit_plan_mode",
            "arguments": {"summary": "Paint it.", "actions": ["interactive"]},
        },
        b"1\n",
        "Paint it.",
    ),
}
"""The call that asks, the answer given by `attach`, and a text of the question."""


def was_answered(kind: str, cli: Cli, server: Any) -> bool:
    """Return True if the answer of `attach` has had its effect."""
    if kind == "permission":
        return (cli.cwd / "made").exists()
    result = str(server.requests[-1].json["messages"][-1]["content"])
    return ("blue" in result) if kind == "choice" else ("approved" in result.lower())


@pytest.mark.parametrize("kind", QUESTIONS)
async def test_attach_answers_a_question_of_the_plain_dialog(cli: Cli, kind: str) -> None:
    call, answer, shown = QUESTIONS[kind]
    flags = ("--plan",) if kind == "plan" else ()
    rules = script(call)
    async with (
        serving(rules) as server,
        talking(cli.use(server), "-i", "go", *flags) as terminal,
    ):
        await terminal.shows(re.escape(shown) + r"[\s\S]*\n\? $")
        terminal.type("half an ans")
        outcome = await cli.run("attach", find_session(cli), stdin=answer)
        assert outcome.code == 0, outcome.notes
        assert shown in outcome.notes
        await terminal.shows(r"Another client has answered\.[\s\S]*All done\.\s+> half an ans$")
        assert was_answered(kind, cli, server)
        terminal.type("\x15")


@pytest.mark.parametrize("kind", QUESTIONS)
async def test_attach_answers_a_question_of_an_editor(cli: Cli, kind: str) -> None:
    call, answer, shown = QUESTIONS[kind]
    rules = script(call)
    async with serving(rules) as server, connected(cli.use(server), capabilities=FORMS) as link:
        link.editor.permission = link.editor.form = "hang"
        await link.open()
        if kind == "plan":
            await link.agent.set_session_mode(mode_id="plan", session_id=link.session)
        turn = asyncio.create_task(link.say("go"))
        await link.editor.until(lambda: link.editor.asked)
        outcome = await cli.run("attach", link.session, stdin=answer)
        assert outcome.code == 0, outcome.notes
        assert shown in outcome.notes
        assert await turn == "end_turn"
        assert was_answered(kind, cli, server)
        assert link.editor.withdrawn  # the editor was told to take its question down
