"""Panels of the inline interface: models, sessions, rewinding; resuming shows the past."""

import socket

import pytest

from clikit import Cli, bash, serving
from tuikit import conversing, open_terminal

CREATE = {"name": "create", "arguments": {"path": "made.txt", "file_text": "one\ntwo\n"}}
EDIT = {"name": "edit", "arguments": {"path": "made.txt", "old_str": "two", "new_str": "three"}}


async def test_a_model_that_is_found_later_is_offered_tried_and_saved(cli: Cli) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cli.env["TRIMTAB_LOCAL_SERVERS"] = f"ollama=http://127.0.0.1:{port}/v1"
    async with conversing(cli) as terminal:
        await terminal.sees("Which model do you want to talk to")
        await terminal.sees("look again")
        async with serving([{"text": "ok"}, {"text": "Hello there."}], port=port) as server:
            terminal.type("look again\r")
            await terminal.sees("ollama/scripted")
            terminal.type("scripted\r")
            await terminal.shows("saved as your default model")
            await terminal.ready()
            terminal.type("hello\r")
            await terminal.shows(r"Hello there\.")
        assert server.usage.requests == 2
    assert "ollama/scripted" in (cli.home / "settings.json").read_text()


async def test_without_any_model_it_says_what_to_do_and_escape_leaves(cli: Cli) -> None:
    async with open_terminal(cli) as terminal:
        await terminal.sees("Which model do you want to talk to")
        await terminal.sees("fetch the small embedded model|local")
        terminal.type("\x1b")
        assert await terminal.ends() == 7
    assert "OPENAI_API_KEY" in terminal.text


async def test_the_picker_of_models_and_the_status_line_tell_one_window(cli: Cli) -> None:
    async with (
        serving([{"text": "Hello."}]) as server,
        conversing(cli.use(server), "-i", "hello") as terminal,
    ):
        await terminal.shows(r"Hello\.")
        await terminal.sees(r"\d+ % of 64k")  # assumed: nobody has told
        terminal.type("/model\r")
        await terminal.sees(r"scripted +128k tokens")
        await terminal.sees(r"\d+ % of 128k")
        terminal.type("\x1b")
        await terminal.ready()


async def test_a_resumed_session_shows_its_past_as_it_was_shown(cli: Cli) -> None:
    script = [{"tools": [CREATE]}, {"text": "Made **it**."}, {"text": "Again."}]
    async with serving(script) as server:
        async with conversing(cli.use(server), "-i", "make it", "--allow-all") as terminal:
            await terminal.shows(r"Made it\.")
        first = terminal.text
        async with conversing(cli, "--continue") as terminal:
            await terminal.ready()
            terminal.type("and again\r")
            await terminal.shows(r"Again\.")
    past = ["> make it", "● create made.txt · +2 -0", "    1 + one", "Made it."]
    for line in past:
        assert line in first.split("\n"), first
        assert line in terminal.text.split("\n"), terminal.text


@pytest.mark.proves("HEAD-11")
@pytest.mark.parametrize("written", ["--resume={}", "--resume {}"])
async def test_a_session_is_resumed_by_its_id_in_both_spellings(cli: Cli, written: str) -> None:
    async with serving([{"text": "One."}, {"text": "Two."}]) as server:
        first = await cli.use(server).ask("tell me of apples")
        await cli.ask("and pears", *written.format(first.result["sessionId"]).split())
        said = [message["content"] for message in server.requests[-1].json["messages"]]
    assert any("tell me of apples" in str(text) for text in said)


@pytest.mark.proves("HEAD-11")
async def test_a_session_is_chosen_among_the_earlier_ones(cli: Cli) -> None:
    script = [{"text": "About apples."}, {"text": "About pears."}, {"text": "More."}]
    async with serving(script) as server:
        for prompt in ("tell me of apples", "tell me of pears"):
            async with conversing(cli.use(server), "-i", prompt) as terminal:
                await terminal.shows("About")
        async with conversing(cli, "--resume") as terminal:
            await terminal.sees("Continue which session")
            terminal.type("apples\r")
            await terminal.shows(r"About apples\.")
            await terminal.ready()
            terminal.type("/resume pears")
            terminal.type("\x15/resume\r")
            await terminal.sees("Continue which session")
            terminal.type("pears\r")
            await terminal.shows(r"About pears\.")
            await terminal.ready()


async def test_escape_twice_rewinds_conversation_and_files(cli: Cli) -> None:
    script = [{"tools": [CREATE]}, {"text": "First."}, {"tools": [EDIT]}, {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it", "--allow-all") as terminal,
    ):
        await terminal.shows(r"First\.")
        await terminal.ready()
        terminal.type("change it\r")
        await terminal.shows(r"Second\.")
        await terminal.ready()
        assert (cli.cwd / "made.txt").read_text() == "one\nthree\n"
        terminal.type("/diff\r")
        await terminal.shows(r"made\.txt  \+2 -0")
        terminal.type("\x1b")
        await terminal.sees("Esc again to rewind")
        terminal.type("\x1b")
        await terminal.sees("Rewind to before which prompt")
        await terminal.sees(r"▸ change it .*1 file \+1 -1")
        terminal.type("\r")
        await terminal.sees("Rewind what")
        terminal.type("\r")
        await terminal.shows("Rewound: the conversation is back")
        await terminal.sees("› change it")
        terminal.type("\x15")
        await terminal.ready()
    assert (cli.cwd / "made.txt").read_text() == "one\ntwo\n"


async def test_commands_open_panels_and_show_bars(cli: Cli) -> None:
    async with (
        serving([{"text": "Hello."}]) as server,
        conversing(cli.use(server), "-i", "hello") as terminal,
    ):
        await terminal.shows(r"Hello\.")
        await terminal.ready()
        terminal.type("/model\r")
        await terminal.sees("Use which model")
        await terminal.sees("▸ scripted")
        terminal.type("\x1b")
        await terminal.hides("Use which model")
        terminal.type("/theme none\r")
        await terminal.shows("The theme is none")
        terminal.type("/context\r")
        await terminal.shows(r"S+T+C+·+")
        terminal.type("!echo from $((40 + 2))\r")
        await terminal.shows("from 42")
        terminal.type("/copy\r")
        await terminal.shows("Copied the last answer")
    assert "\x1b]52;c;SGVsbG8u\x07" in terminal.bytes.decode()
    assert '"theme": "none"' in (cli.home / "settings.json").read_text()


async def test_ask_user_takes_a_number_or_words_and_a_plan_its_choices(cli: Cli) -> None:
    ask = {"name": "ask_user", "arguments": {"question": "Colour?", "choices": ["red", "green"]}}
    script = [{"tools": [ask]}, {"tools": [ask]}, {"text": "Thanks."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "paint") as terminal,
    ):
        await terminal.sees(r"Colour\?")
        await terminal.may_answer()
        terminal.type("2")
        await terminal.shows("Colour. — green")
        await terminal.sees("3 +something else")
        await terminal.may_answer()
        terminal.type("3")
        await terminal.sees("your words")
        terminal.type("light blue\r")
        await terminal.shows(r"Thanks\.")
    sent = str(server.requests[-1].json["messages"])
    assert "green" in sent
    assert "light blue" in sent


async def test_a_rejection_takes_words_that_the_model_reads(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "Understood."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "make it") as terminal,
    ):
        await terminal.sees("5 +no, and say why")
        await terminal.may_answer()
        terminal.type("5")
        await terminal.sees("your words")
        terminal.type("call it done\r")
        await terminal.shows("— no: call it done")
        await terminal.ready()
        terminal.type("go on\r")
        await terminal.shows(r"Understood\.")
    assert "They said: call it done" in str(server.requests[-1].json["messages"])


async def test_waiting_prompts_are_edited_and_removed_in_a_panel(cli: Cli) -> None:
    script = [{"delay": 4, "text": "First."}, {"text": "Second."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "-i", "go") as terminal,
    ):
        await terminal.sees("Working")
        terminal.type("keep this\x11")
        await terminal.sees("queued: keep this")
        terminal.type("remove this\x11")
        await terminal.sees("queued: remove this")
        terminal.type("/queue \r")
        await terminal.sees("Waiting prompts")
        terminal.type("remove this\r")
        await terminal.sees("Do what with it")
        terminal.type("remove\r")
        await terminal.hides("queued: remove this")
        await terminal.shows(r"Second\.")
    assert "remove this" not in str(server.requests[-1].json["messages"])
    assert "keep this" in str(server.requests[-1].json["messages"])


async def test_a_plan_is_shown_rendered_edited_and_accepted(cli: Cli) -> None:
    editor = cli.cwd / "editor.sh"
    editor.write_text('#!/bin/sh\necho "- and a **third** step" >> "$1"\n')
    editor.chmod(0o755)
    cli.env["VISUAL"] = str(editor)
    leave = {"name": "exit_plan_mode", "arguments": {"summary": "# Plan\n- **first** step"}}
    script = [{"tools": [leave]}, {"text": "Carried out."}]
    async with (
        serving(script) as server,
        conversing(cli.use(server), "--plan", "-i", "plan it") as terminal,
    ):
        await terminal.sees(r"Carry out this plan\?")
        await terminal.shows("• first step")
        await terminal.may_answer()
        terminal.type("e")
        await terminal.shows("• and a third step")
        await terminal.sees("Carry out this plan")
        await terminal.may_answer()
        terminal.type("1")
        await terminal.shows("Carried out")
