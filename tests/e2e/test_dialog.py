"""A conversation in a real terminal with a person who types early, pastes, mistypes and cancels."""

import asyncio
import os
import signal
import termios
from typing import Any

import pytest

from clikit import Cli, bash, serving
from hookkit import write_hooks
from terminalkit import start, talking
from tuikit import open_terminal

MARK = r"\n\? $"
PROMPT = r"> $"


def prompts(server: Any) -> list[str]:
    """What people were sent to the model as having said, in order."""
    said = server.requests[-1].json["messages"]
    texts = [message["content"] for message in said if message["role"] == "user"]
    return [text.partition("</current_datetime>\n\n")[2] or text for text in texts]


TOUCH = [{"delay": 1, "tools": [bash("touch made")]}, {"text": "Made it."}, {"text": "Next."}]


async def test_yes_typed_while_the_model_thinks_does_not_approve_what_it_asks_for(
    cli: Cli,
) -> None:
    async with serving(TOUCH) as server, talking(cli.use(server), "-i", "make it") as terminal:
        await terminal.shows("thinking")
        terminal.type("y\n")
        await terminal.shows(r"Run this command\?[\s\S]*" + MARK)
        assert not (cli.cwd / "made").exists()
        terminal.type("n\n")
        await terminal.shows(r"> y$")  # kept: nothing typed is lost, and nothing of it is sent
        assert not (cli.cwd / "made").exists()
        assert server.usage.requests == 1
        terminal.type("\x15")


async def test_yes_typed_before_the_question_can_have_been_read_does_not_answer_it(
    cli: Cli,
) -> None:
    async with serving(TOUCH) as server, talking(cli.use(server), "-i", "make it") as terminal:
        await terminal.shows(r"Run this command\?")
        terminal.type("y\n")
        await terminal.shows(MARK)
        assert not (cli.cwd / "made").exists()
        terminal.type("y\n")
        await terminal.shows(r"Made it\.\s+> y$")
        assert (cli.cwd / "made").exists()
        terminal.type("\x15")


async def test_the_beginning_of_a_line_is_kept_while_a_question_is_answered(cli: Cli) -> None:
    async with serving(TOUCH) as server, talking(cli.use(server), "-i", "make it") as terminal:
        await terminal.shows("thinking")
        terminal.type("and then quickl")
        await terminal.shows(r"kept for the next prompt[\s\S]*" + MARK)
        terminal.forget()
        terminal.type("\n")
        await terminal.shows(MARK)  # an empty line is no answer
        assert not (cli.cwd / "made").exists()
        terminal.type("y\n")
        await terminal.shows(r"Made it\.\s+> and then quickl$")
        terminal.type("y\n")
        await terminal.shows(r"Next\.")
        assert prompts(server) == ["make it", "and then quickly"]


async def test_a_sentence_typed_ahead_is_the_next_prompt_and_no_rejection(cli: Cli) -> None:
    async with serving(TOUCH) as server, talking(cli.use(server), "-i", "make it") as terminal:
        await terminal.shows("thinking")
        terminal.type("then run the tests\n")
        await terminal.shows(r"queued: then run the tests")
        await terminal.shows(MARK)
        terminal.type("y\n")
        await terminal.shows(r"Made it\.\s+> then run the tests\s[\s\S]*Next\.\s+> $")
        assert prompts(server) == ["make it", "then run the tests"]
        assert "rejected" not in str(server.requests[-1].json)


async def test_control_c_at_a_question_stops_the_agent_and_nothing_runs(cli: Cli) -> None:
    async with serving(TOUCH) as server, talking(cli.use(server), "-i", "make it") as terminal:
        await terminal.shows(r"Run this command\?[\s\S]*" + MARK)
        terminal.type("ye\x03")
        await terminal.shows(r"Stopped\.\s+> $")
        assert not (cli.cwd / "made").exists()
        terminal.type("go on\n")
        await terminal.shows(r"Made it\.\s+> $")
        assert not (cli.cwd / "made").exists()


@pytest.mark.parametrize("typed", ["x", "s"])
async def test_a_mistyped_answer_is_asked_for_again(cli: Cli, typed: str) -> None:
    """`s` is not offered for a command that no rule can cover."""
    script = [{"tools": [bash("rm -rf build $TARGET")]}, {"text": "Over."}]
    async with serving(script) as server, talking(cli.use(server), "-i", "clean") as terminal:
        await terminal.shows(r"Run this command\?[\s\S]*" + MARK)
        assert "  2  yes" not in terminal.seen
        terminal.type(f"{typed}\n")
        await terminal.shows(r"Type 1, 4, or what to do instead\.[\s\S]*" + MARK)
        terminal.type("n\n")
        await terminal.shows(r"rejected this tool call[\s\S]*> $")


async def test_a_rule_is_edited_before_it_is_allowed(cli: Cli) -> None:
    script = [
        {"tools": [bash("touch one")]},
        {"tools": [bash("touch two")]},
        {"tools": [bash("mkdir three")]},
        {"text": "Over."},
    ]
    async with serving(script) as server, talking(cli.use(server), "-i", "make") as terminal:
        await terminal.shows(r"  e  edit the rule[\s\S]*" + MARK)
        terminal.type("e\n")
        await terminal.shows(r"rule: shell\(touch\)$")
        terminal.type("\x15write(x)\n")
        await terminal.shows(r"Only rules for commands can be written here[\s\S]*" + MARK)
        terminal.type("e\n")
        await terminal.shows(r"written here[\s\S]*rule: shell\(touch\)$")
        terminal.type(", shell(mkdir)\n")
        await terminal.shows(r"allow shell\(touch\), shell\(mkdir\) in this session[\s\S]*" + MARK)
        assert not (cli.cwd / "one").exists()
        terminal.type("2\n")
        await terminal.shows(r"Over\.\s+> $")
        assert sorted(path.name for path in cli.cwd.iterdir()) == ["one", "three", "two"]


async def test_what_was_typed_before_the_start_does_not_trust_a_folder(cli: Cli) -> None:
    write_hooks(cli, {"sessionStart": [{"bash": "touch $HOME/ran"}]})
    async with serving([{"text": "Done."}]) as server:
        process, terminal = await start(cli.use(server))
        terminal.type("y\ny\n")
        await terminal.shows(r"Do you trust[\s\S]*" + MARK)
        terminal.type("n\n")
        await terminal.shows(r"> y")
        assert not (cli.home.parent / "ran").exists()
        process.terminate()
        async with asyncio.timeout(50):
            assert await process.wait() == 143


@pytest.mark.parametrize("marked", [True, False], ids=["marked by the terminal", "not marked"])
async def test_pasted_lines_are_one_prompt(cli: Cli, marked: bool) -> None:
    text = "first\n  second\n\tthird"
    async with serving([{"text": "Read."}]) as server, talking(cli.use(server)) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(f"\x1b[200~{text}\x1b[201~" if marked else text)
        await terminal.shows("third")
        terminal.type("\n")
        await terminal.shows(r"Read\.\s+> $")
        assert server.usage.requests == 1
        assert prompts(server) == [text]


async def test_pasted_lines_with_a_last_newline_are_sent_at_once(cli: Cli) -> None:
    async with serving([{"text": "Read."}]) as server, talking(cli.use(server)) as terminal:
        await terminal.shows(PROMPT)
        terminal.type("first\nsecond\nthird\n")
        await terminal.shows(r"Read\.\s+> $")
        assert prompts(server) == ["first\nsecond\nthird"]


@pytest.mark.parametrize("length", [4095, 4096, 6009, 100_000])
async def test_a_long_line_reaches_the_model_whole(cli: Cli, length: int) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(length))
    async with serving([{"text": "Read."}]) as server, talking(cli.use(server)) as terminal:
        await terminal.shows(PROMPT)
        await terminal.send(text + "\n")
        await terminal.shows(r"Read\.\s+> $")
        assert prompts(server) == [text]


async def test_keys_correct_a_line_as_in_any_terminal(cli: Cli) -> None:
    async with serving([{"text": "Read."}]) as server, talking(cli.use(server)) as terminal:
        await terminal.shows(PROMPT)
        terminal.type("wrong\x15fix  the tost\x7f\x7f\x7fest, 漢字x\x7f please now\x17\x17")
        terminal.type("\x1b[A\x1bOC\x1b[3~ \x7f\n")
        await terminal.shows(r"Read\.\s+> $")
        assert prompts(server) == ["fix  the test, 漢字 "]


async def test_a_wrong_command_costs_nothing_and_names_the_nearest(cli: Cli) -> None:
    async with serving([{"text": "never"}]) as server, talking(cli.use(server)) as terminal:
        for text, said in (
            ("/nosuch", r"Unknown command /nosuch; see /help"),
            ("/undoo", r"did you mean /undo"),
            ("/undo", r"Error: The session has no changes to undo"),
            ("/model nosuch", r"Unknown model 'nosuch'; choose scripted"),
            ("/help", r"!COMMAND"),
            ("!echo from the $0; exit 3", r"from the \S*sh\s[\s\S]*exit code 3"),
        ):
            await terminal.shows(PROMPT)
            terminal.forget()
            terminal.type(f"{text}\n")
            await terminal.shows(said)
        await terminal.shows(PROMPT)
        assert not server.requests


@pytest.mark.parametrize("arguments", [("-p", "go"), ("-i", "go")], ids=["headless", "dialog"])
async def test_a_dumb_terminal_gets_no_sequences(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.env["TERM"] = "dumb"
    script = [{"tools": [bash("echo out; exit 3")]}, {"text": "Done."}]
    async with (
        serving(script) as server,
        open_terminal(cli.use(server), *arguments, "--allow-all") as terminal,
    ):
        await terminal.shows(r"exit code 3[\s\S]*Done\.")
        if arguments[0] == "-i":
            await terminal.shows(r">$")
            terminal.type("\x04")
        assert await terminal.ends() == 0
    assert b"\x1b" not in terminal.bytes


async def test_own_commands_are_told_to_the_model_stopped_by_control_c_and_shown_again(
    cli: Cli,
) -> None:
    async with serving([{"text": "One."}, {"text": "Two."}]) as server:
        async with talking(cli.use(server), "-i", "first") as terminal:
            await terminal.shows(r"One\.\s+> $")
            terminal.type("!echo seen-$((40 + 2)); sleep 60\n")
            await terminal.shows("seen-42")
            terminal.type("\x03")
            await terminal.shows(r"ended by SIGINT\s+> $")
            terminal.type("!!echo kept-$((40 + 3))\n")
            await terminal.shows(r"kept-43\s+> $")
        async with talking(cli, "--continue") as terminal:
            await terminal.shows(r"! echo seen-.*\s+seen-42\s+ended by SIGINT")
            await terminal.shows(r"kept-43[\s\S]*> $")
            terminal.type("second\n")
            await terminal.shows(r"Two\.\s+> $")
    told = prompts(server)[-1]
    assert "<user_command exit_code=-2>\n$ echo seen-$((40 + 2)); sleep 60\nseen-42\n" in told
    assert "kept" not in told


async def test_clear_begins_a_new_session_and_keeps_the_old_one(cli: Cli) -> None:
    replies = [{"text": "One."}, {"text": "Two."}]
    async with serving(replies) as server, talking(cli.use(server)) as terminal:
        await terminal.shows(PROMPT)
        terminal.type("first\n")
        await terminal.shows(r"One\.\s+> $")
        terminal.type("/clear\n")
        await terminal.shows(r"new session[\s\S]*--resume=[\s\S]*> $")
        terminal.type("second\n")
        await terminal.shows(r"Two\.\s+> $")
        assert prompts(server) == ["second"]
    assert len(cli.logs()) == 2


async def test_prompts_queued_before_control_c_wait_until_they_are_sent_or_dropped(
    cli: Cli,
) -> None:
    replies = [{"text": "x", "delay": 60}, {"text": "Second."}]
    async with serving(replies) as server, talking(cli.use(server), "-i", "wait") as terminal:
        await terminal.shows("thinking")
        for text in ("one", "two"):
            terminal.type(f"prompt {text}\n")
            await terminal.shows(f"queued: prompt {text}")
        terminal.type("\x03")
        await terminal.shows(r"Stopped\.\s+2 prompts not sent: see /queue[\s\S]*> $")
        terminal.type("/queue\n")
        await terminal.shows(r"1  prompt one\s+2  prompt two[\s\S]*> $")
        terminal.type("/queue drop 1\n")
        await terminal.shows(r"1 prompt dropped\.\s+> $")
        terminal.type("/queue send\n")
        await terminal.shows(r"1 prompt sent\.[\s\S]*> prompt two\s+[\s\S]*Second\.\s+> $")
        assert prompts(server) == ["wait", "prompt two"]


async def test_prompts_queued_before_a_crash_can_be_sent_after_it(cli: Cli) -> None:
    async with serving([{"text": "x", "delay": 60}]) as server:
        process, terminal = await start(cli.use(server), "-i", "wait")
        await terminal.shows("thinking")
        terminal.type("the next task\n")
        await terminal.shows("queued: the next task")
        process.kill()
        await process.wait()
    async with serving([{"text": "Done."}]) as server:
        async with talking(cli.use(server), "--continue") as terminal:
            await terminal.shows(r"1 prompt of this session never sent[\s\S]*/queue[\s\S]*> $")
            terminal.type("/queue send\n")
            await terminal.shows(r"Done\.\s+> $")
            assert prompts(server)[-1] == "the next task"
        async with talking(cli, "--continue") as terminal:
            await terminal.shows(PROMPT)
            assert "never sent" not in terminal.seen


PLAN = {
    "name": "exit_plan_mode",
    "arguments": {"summary": "1. Look.\n2. Change it.", "showFleet": True},
}


@pytest.mark.parametrize(
    ("typed", "told", "mode"),
    [
        ("1", "You are now in interactive mode", "interactive"),
        ("2", "You are now in autopilot mode", "autopilot"),
        ("3", "Stop here", "interactive"),
        ("4", "start an agent for each", "autopilot"),
        ("use tabs instead", "User feedback:\n\nuse tabs instead", "plan"),
    ],
)
async def test_a_plan_is_shown_and_a_person_decides_how_to_go_on(
    cli: Cli, typed: str, told: str, mode: str
) -> None:
    replies = {"replies": [{"tools": [PLAN]}], "otherwise": {"text": "Understood."}}
    flags = ("-i", "plan it", "--plan", "--max-autopilot-continues", "0")
    async with serving(replies) as server, talking(cli.use(server), *flags) as terminal:
        await terminal.shows(r"The plan:\s+1\. Look\.\s+2\. Change it\.[\s\S]*autopilot")
        await terminal.shows(r"5  stay in plan mode\s+or type what to change\s+\? $")
        terminal.type(f"{typed}\n")
        await terminal.shows(r"Understood\.[\s\S]*> $")
        answer = [one for one in server.requests[1].json["messages"] if one["role"] == "tool"]
        assert told in answer[0]["content"]
        terminal.type("/mode\n")
        await terminal.shows(f"The mode is {mode}\\.\\s+> $")


async def test_a_plan_that_is_rejected_without_words_ends_the_turn(cli: Cli) -> None:
    flags = ("-i", "plan it", "--plan")
    async with serving([{"tools": [PLAN]}]) as server, talking(cli.use(server), *flags) as terminal:
        await terminal.shows(r"5  stay in plan mode\s+or type what to change\s+\? $")
        terminal.type("5\n")
        await terminal.shows(r"The user did not approve the plan\.[\s\S]*> $")
        terminal.type("/mode\n")
        await terminal.shows(r"The mode is plan\.\s+> $")
        assert len(server.requests) == 1


async def test_a_failing_command_shows_its_exit_code_its_time_and_its_last_lines(
    cli: Cli,
) -> None:
    failing = "for n in 1 2 3 4 5 6 7 8; do echo line $n; done; sleep 0.2; exit 3"
    replies = [{"tools": [bash(failing)]}, {"tools": [bash("echo fine")]}, {"text": "Seen."}]
    flags = ("-i", "test it", "--allow-all")
    async with serving(replies) as server, talking(cli.use(server), *flags) as terminal:
        await terminal.shows(r"Seen\.\s+> $")
    assert "exit code 3 after 0." in terminal.seen
    assert "line 8" in terminal.seen
    assert "line 3" not in terminal.seen
    assert terminal.seen.count("✗") == 1
    log = cli.logs()[0].read_text()
    assert '"shellExecution":{"exitCode":3,' in log


@pytest.mark.parametrize("how", ["Ctrl-D", "Ctrl-C", "SIGTERM", "SIGHUP", "no model"])
async def test_the_terminal_is_left_as_it_was(cli: Cli, how: str) -> None:
    async with serving([{"text": "x"}]) as server:
        if how != "no model":
            cli.use(server)
        master, slave = os.openpty()
        before = termios.tcgetattr(slave)
        process, terminal = await start(cli, pair=(master, slave))
        if how != "no model":
            await terminal.shows(PROMPT)
        if how == "Ctrl-D":
            terminal.type("\x04")
        elif how == "Ctrl-C":
            terminal.type("\x03")
        elif how != "no model":
            process.send_signal(getattr(signal, how))
        async with asyncio.timeout(50):
            code = await process.wait()
        await terminal.shows(r"\x1b\[\?2004l")
    assert code == {"SIGTERM": 143, "SIGHUP": 129, "no model": 7}.get(how, 0)
    assert termios.tcgetattr(master)[:4] == before[:4]


async def test_control_z_stops_the_program_and_the_line_is_there_when_it_goes_on(
    cli: Cli,
) -> None:
    async with serving([{"text": "Read."}]) as server:
        process, terminal = await start(cli.use(server))
        await terminal.shows(PROMPT)
        terminal.type("half a ")
        await terminal.shows("half a ")
        process.send_signal(signal.SIGTSTP)
        await terminal.shows(r"\x1b\[\?2004l")
        stopped = os.WSTOPPED | os.WNOWAIT
        async with asyncio.timeout(50):
            await asyncio.to_thread(os.waitid, os.P_PID, process.pid, stopped)
        terminal.forget()
        process.send_signal(signal.SIGCONT)
        await terminal.shows(r"> half a $")
        terminal.type("line\n")
        await terminal.shows(r"Read\.\s+> $")
        assert prompts(server) == ["half a line"]
        terminal.type("\x04")
        async with asyncio.timeout(50):
            assert await process.wait() == 0


async def test_a_second_signal_ends_the_program_at_once_and_the_terminal_is_given_back(
    cli: Cli,
) -> None:
    write_hooks(cli, {"sessionEnd": [{"bash": "touch $HOME/ending; sleep 30", "timeoutSec": 40}]})
    cli.env["COPILOT_ALLOW_ALL"] = "true"
    async with serving([{"text": "Done."}]) as server:
        process, terminal = await start(cli.use(server), "-i", "go")
        await terminal.shows(r"Done\.")
        process.terminate()
        process.terminate()
        async with asyncio.timeout(50):
            code = await process.wait()
        await terminal.shows(r"\x1b\[\?2004l")
    assert code == 143
    assert "Traceback" not in terminal.seen
    assert "Internal error" not in terminal.seen


async def test_plain_lines_write_over_nothing(cli: Cli) -> None:
    script = [{"tools": [bash("echo one")]}, {"text": "Done."}]
    async with serving(script) as server, talking(cli.use(server), "-i", "go") as terminal:
        await terminal.shows(r"Done\.\s+> $")
    assert "\x1b[2K" not in terminal.seen
    assert "  thinking …" in terminal.seen


async def test_plain_lines_have_the_commands_of_the_terminal(cli: Cli) -> None:
    made = {"name": "create", "arguments": {"path": "made.txt", "file_text": "one\n"}}
    script = [{"text": "An old answer."}, {"tools": [made]}, {"text": "Made."}]
    (cli.cwd / "sub").mkdir()
    async with serving(script) as server:
        await cli.use(server).ask("an old question")
        async with talking(cli, "--allow-all") as terminal:
            await terminal.shows("> $")
            for line, answer in (
                ("make it", r"Made\."),
                ("/cwd sub", "working directory is .*/sub"),
                ("/cwd ..", "working directory is "),
                ("/rewind", "1  make it"),
                ("/rewind 7", "Error: Unknown arguments '7'; write /rewind NUMBER"),
                ("/rewind 1 files", "Rewound: 1 file restored"),
                ("/theme light", "Plain lines have no colours"),
                ("/search made", r"● create .*made\.txt[\s\S]*\nMade\."),
                ("/search", "write /search WORDS"),
                ("/fork another way", "This is a copy. The original is kept: trimtab --resume="),
                ("/session", "name    another way"),
                ("/resume", "make it[\\s\\S]*2  an old question"),
                ("/resume nosuch", "nosuch"),
                ("/resume 2", "This is an old question again"),
                ("/session", "name    an old question"),
            ):
                terminal.forget()
                terminal.type(f"{line}\n")
                await terminal.shows(answer)
                await terminal.shows("> $")
    assert not (cli.cwd / "made.txt").exists()


async def test_a_resumed_session_prints_what_was_said_before(cli: Cli) -> None:
    ask = {"name": "ask_user", "arguments": {"question": "Colour?", "choices": ["red", "green"]}}
    script = [
        {"tools": [ask]},
        {"tools": [PLAN]},
        {"tools": [bash("touch made")]},
        {"text": "All of it is done."},
        {"text": "Again."},
    ]
    async with serving(script) as server:
        async with talking(cli.use(server), "--plan", "-i", "paint it") as terminal:
            await terminal.shows(r"Colour\?[\s\S]*\? $")
            terminal.type("2\n")
            await terminal.shows(r"or type what to change\s+\? $")
            terminal.type("1\n")
            await terminal.shows(r"why: [\s\S]*or type what to do instead\s+\? $")
            terminal.type("y\n")
            await terminal.shows(r"All of it is done\.\s+> $")
        async with talking(cli, "--continue") as terminal:
            await terminal.shows("> $")
            said = terminal.seen.replace("\r", "")
            terminal.type("more\n")
            await terminal.shows(r"Again\.\s+> $")
    parts = (
        "> paint it\n",
        "  Colour? — green\n",
        "  Carry out this plan? — accept it and carry it out; ask before changes\n",
        "  Run this command? — yes, once\n",
        "All of it is done.\n",
    )
    places = [said.find(part) for part in parts]
    assert -1 not in places, said
    assert places == sorted(places)
    assert "thinking" not in said
