"""The program in a real pseudo-terminal: a conversation, questions, Ctrl-C."""

import asyncio

import pytest

from clikit import Cli, bash, serving
from hookkit import write_hooks
from terminalkit import start


async def test_a_conversation_goes_on_until_the_person_leaves(cli: Cli) -> None:
    async with serving([{"text": "First answer."}, {"text": "Second answer."}]) as server:
        process, terminal = await start(cli.use(server))
        await terminal.shows("> ")
        terminal.type("hello\n")
        await terminal.shows(r"First answer\.[\s\S]*> ")
        terminal.type("and more\n")
        await terminal.shows(r"Second answer\.")
        terminal.type("/exit\n")
        async with asyncio.timeout(60):
            assert await process.wait() == 0
        assert server.usage.requests == 2
    assert len(cli.logs()) == 1


async def test_a_permission_is_asked_for_and_given(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "Made it."}]
    async with serving(script) as server:
        process, terminal = await start(cli.use(server), "-i", "make it")
        await terminal.shows(r"Run this command\?[\s\S]*\$ touch made[\s\S]*allow shell\(touch\)")
        await terminal.shows(r"\? $")
        terminal.type("y\n")
        await terminal.shows(r"Made it\.")
        terminal.type("\x04")
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    assert (cli.cwd / "made").exists()


async def test_a_person_who_watches_is_not_cut_short_when_calls_repeat(cli: Cli) -> None:
    repeated = {"tools": [{"name": "view", "arguments": {"path": "."}}], "repeat": 40}
    async with serving([repeated, {"text": "Done at last."}]) as server:
        process, terminal = await start(cli.use(server), "-i", "go")
        await terminal.shows(r"Done at last\.")
        terminal.type("\x04")
        async with asyncio.timeout(50):
            assert await process.wait() == 0
        assert server.usage.requests == 41


async def test_control_c_stops_the_agent_and_then_leaves(cli: Cli) -> None:
    async with serving([{"tools": [bash("sleep 60")]}]) as server:
        process, terminal = await start(cli.use(server), "-i", "wait", "--allow-all")
        await terminal.shows("bash sleep 60")
        process.send_signal(2)
        await terminal.shows(r"> $")
        process.send_signal(2)
        async with asyncio.timeout(60):
            assert await process.wait() == 0


@pytest.mark.proves("HEAD-08")
@pytest.mark.parametrize("args", [(), ("--no-color",)])
async def test_text_on_a_terminal_shows_progress_and_clears_it(
    cli: Cli, args: tuple[str, ...]
) -> None:
    async with serving([{"tools": [bash("sleep 0.2")]}, {"text": "Done."}]) as server:
        process, terminal = await start(cli.use(server), "-p", "go", "--allow-all", *args)
        await terminal.shows("model calls")
        async with asyncio.timeout(60):
            await process.wait()
    assert "working …" in terminal.seen
    assert ("\x1b[2m" in terminal.seen) == (not args)


@pytest.mark.proves("PERM-16")
async def test_a_question_shows_its_rule_and_an_answer_for_the_session_spares_the_next(
    cli: Cli,
) -> None:
    create = {"name": "create", "arguments": {"path": "new.txt", "file_text": "x"}}
    script = [
        {"tools": [bash("touch one")]},
        {"tools": [bash("touch two")]},
        {"tools": [create]},
        {"text": "Enough."},
    ]
    async with serving(script) as server:
        process, terminal = await start(cli.use(server), "-i", "make them")
        await terminal.shows(
            r"covers every `touch` command on files in the allowed directories[\s\S]*\? $"
        )
        terminal.type("s\n")
        await terminal.shows(r"Write \S*new\.txt\?[\s\S]*\? $")
        terminal.type("rather call it old.txt\n")
        await terminal.shows(r"> $")
        terminal.type("\x04")
        async with asyncio.timeout(60):
            await process.wait()
    assert (cli.cwd / "two").exists()
    assert terminal.seen.count("Run this command?") == 1
    assert not (cli.cwd / "new.txt").exists()
    assert "They said: rather call it old.txt" in cli.logs()[0].read_text()


async def test_the_question_about_a_folder_lists_what_it_would_load(cli: Cli) -> None:
    write_hooks(cli, {"sessionStart": [{"bash": "touch $HOME/ran"}]})
    marker = cli.home.parent / "ran"
    for expected in (False, True, True):
        async with serving([{"text": "Done."}]) as server:
            process, terminal = await start(cli.use(server), "-i", "go")
            if not marker.exists():
                await terminal.shows(r"Do you trust \S+\?[\s\S]*hooks +\.github/hooks[\s\S]*\? $")
                terminal.type("y\n" if expected else "n\n")
            await terminal.shows(r"Done\.[\s\S]*> $")
            terminal.type("\x04")
            async with asyncio.timeout(60):
                await process.wait()
        assert marker.exists() is expected


@pytest.mark.proves("PERM-14")
async def test_a_call_is_shown_once_it_may_run_and_only_that_one(cli: Cli) -> None:
    script = [{"tools": [bash("mkdir first"), bash("mkdir second")]}, {"text": "Made it."}]
    async with serving(script) as server:
        process, terminal = await start(cli.use(server), "-i", "make it")
        await terminal.shows(r"\$ mkdir first[\s\S]*\n\? $")
        assert "● bash" not in terminal.seen
        assert "mkdir second" not in terminal.seen
        terminal.type("y\n")
        await terminal.shows(r"● bash mkdir first")
        await terminal.shows(r"\$ mkdir second[\s\S]*\n\? $")
        assert "● bash mkdir second" not in terminal.seen
        terminal.type("y\n")
        await terminal.shows(r"● bash mkdir second[\s\S]*Made it\.")
        terminal.type("\x04")
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    assert sorted(path.name for path in cli.cwd.iterdir()) == ["first", "second"]


QUESTION = {
    "name": "ask_user",
    "arguments": {"question": "Which?", "choices": ["red", "green"], "allow_freeform": False},
}


@pytest.mark.proves("PERM-08")
async def test_the_agent_asks_a_person_who_can_answer_and_wants_to(cli: Cli) -> None:
    async with serving([{"tools": [QUESTION]}, {"text": "Green it is."}]) as server:
        process, terminal = await start(cli.use(server), "-i", "paint it")
        await terminal.shows(r"Which\?\s+1  red\s+2  green\s+\? $")
        terminal.type("blue\n")
        await terminal.shows(r"blue[\s\S]*Which\?[\s\S]*\? $")
        terminal.type("2\n")
        await terminal.shows(r"Green it is\.")
        terminal.type("\x04")
        async with asyncio.timeout(60):
            assert await process.wait() == 0
        told = server.requests[1].json["messages"][-1]["content"]
    assert told == "User selected: green"
    async with serving([{"tools": [QUESTION]}, {"text": "I chose."}]) as server:
        process, terminal = await start(cli.use(server), "-i", "paint it", "--no-ask-user")
        await terminal.shows(r"I chose\.")
        terminal.type("\x04")
        async with asyncio.timeout(60):
            assert await process.wait() == 0
        offered = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert "bash" in offered
    assert "ask_user" not in offered
