"""Headless runs seen from outside: the installed program against a scripted model server."""

import asyncio
import json
import os
import re

import pytest

from clikit import Cli, bash, serving

HELLO = [{"text": "Hello there, all is well."}]
WORK = [
    {"text": "I will look.", "tools": [bash("echo one"), bash("echo two")]},
    {"text": "Both ran."},
]


@pytest.mark.proves("HEAD-01", "HEAD-04", "EVT-15", "RES-01", "RES-02")
async def test_a_prompt_is_answered_as_lines_of_json_ending_with_one_result(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi")
    assert outcome.code == 0, outcome.notes
    result = outcome.result
    assert [line["type"] for line in outcome.lines].count("result") == 1
    assert outcome.lines[-1]["type"] == "result"
    assert result["exitCode"] == 0
    assert re.match(r"\d{4}-\d\d-\d\dT", result["timestamp"])
    assert result["usage"].keys() >= {
        "premiumRequests",
        "totalApiDurationMs",
        "sessionDurationMs",
        "codeChanges",
    }
    assert result["usage"]["codeChanges"] == {
        "linesAdded": 0,
        "linesRemoved": 0,
        "filesModified": [],
    }
    assert re.fullmatch(r"[0-9a-f-]{36}", result["sessionId"])
    assert result["status"] == "success"
    assert result["stopReason"] == "end_turn"
    assert result["model"] == "scripted"


@pytest.mark.proves("EVT-03", "EVT-04")
async def test_events_come_in_the_observed_order(cli: Cli) -> None:
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask("hi")
    wanted = [
        "session.mcp_servers_loaded", "session.skills_loaded", "session.tools_updated",
        "user.message", "assistant.turn_start", "assistant.message_delta", "assistant.message",
        "tool.execution_start", "tool.execution_start",
        "tool.execution_complete", "tool.execution_complete", "assistant.turn_end",
        "assistant.turn_start", "assistant.message_delta", "assistant.message", "assistant.turn_end",
        "result",
    ]  # fmt: skip
    seen = [t for t in outcome.types() if t in wanted]
    collapsed = [
        t for i, t in enumerate(seen) if t != "assistant.message_delta" or seen[i - 1] != t
    ]
    assert collapsed == wanted
    assert outcome.of("session.tools_updated") == [{"model": "scripted"}]
    hidden = {
        "session.start",
        "session.idle",
        "session.shutdown",
        "system.message",
        "permission.requested",
    }
    assert not hidden & set(outcome.types())


@pytest.mark.proves("EVT-01", "EVT-02")
async def test_every_event_has_the_envelope_and_only_durable_ones_are_stored(cli: Cli) -> None:
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask("hi")
    stored = {json.loads(line)["id"] for line in cli.logs()[0].read_text().splitlines()}
    for line in outcome.lines[:-1]:
        assert line.keys() >= {"type", "data", "id", "timestamp", "parentId"}
        assert bool(line.get("ephemeral")) != (line["id"] in stored)


@pytest.mark.proves("EVT-05", "SYS-25")
async def test_the_user_message_keeps_what_was_typed_and_what_was_sent(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("what is this?")
        sent = server.requests[0].json["messages"][-1]["content"]
    message = outcome.of("user.message")[0]
    assert message["content"] == "what is this?"
    assert message["transformedContent"] == sent
    assert re.match(r"<current_datetime>[^<]+</current_datetime>\n\nwhat is this\?", sent)


@pytest.mark.proves("EVT-09", "EVT-10", "HEAD-12")
@pytest.mark.parametrize("stream", ["on", "off"])
async def test_deltas_only_when_streaming_and_one_message_a_turn(cli: Cli, stream: str) -> None:
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask("hi", "--stream", stream)
    deltas = outcome.of("assistant.message_delta")
    assert bool(deltas) == (stream == "on")
    messages = outcome.of("assistant.message")
    assert [m["content"] for m in messages] == ["I will look.", "Both ran."]
    if deltas:
        assert "".join(d["deltaContent"] for d in deltas) == "I will look.Both ran."


@pytest.mark.proves("EVT-11", "EVT-13", "RES-05")
async def test_messages_and_tool_events_carry_their_fields(cli: Cli) -> None:
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask("hi")
    for message in outcome.of("assistant.message"):
        assert message.keys() >= {
            "messageId",
            "content",
            "interactionId",
            "outputTokens",
            "toolRequests",
        }
    start = outcome.of("tool.execution_start")[0]
    assert start["toolName"] == "bash"
    assert start["arguments"]["command"] == "echo one"
    done = {complete["toolCallId"]: complete for complete in outcome.of("tool.execution_complete")}
    complete = done[start["toolCallId"]]
    assert complete["success"] is True
    assert complete["result"]["content"].startswith("one")
    assert complete["result"].keys() >= {"content", "detailedContent"}
    total = sum(m["outputTokens"] for m in outcome.of("assistant.message"))
    assert outcome.result["usage"]["tokens"]["output"] == total


@pytest.mark.proves("HEAD-01", "HEAD-02", "HEAD-19")
async def test_a_long_prompt_on_stdin_keeps_its_last_newline(cli: Cli) -> None:
    prompt = "x" * 300_000 + " end\n"  # Linux allows 128 KB in an argument, Windows 32 KB in all
    async with serving(HELLO) as server:
        outcome = await cli.use(server).run(
            "--output-format", "json", "--allow-all", stdin=prompt.encode()
        )
    assert outcome.of("user.message")[0]["content"] == prompt


@pytest.mark.proves("HEAD-03", "HEAD-17")
@pytest.mark.parametrize("prompt", ["@notes.txt", "<system>\nBe terse.\n</system>\n\nhello"])
async def test_a_prompt_is_taken_literally(cli: Cli, prompt: str) -> None:
    (cli.cwd / "notes.txt").write_text("from the file")
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask(prompt)
    assert outcome.of("user.message")[0]["content"] == prompt


@pytest.mark.proves("HEAD-04", "HEAD-05")
async def test_silent_leaves_only_the_answer(cli: Cli) -> None:
    async with serving([*WORK, *WORK]) as server:
        cli.use(server)
        loud = await cli.run("-p", "hi", "--allow-all")
        silent = await cli.run("-p", "hi", "--allow-all", "-s")
    assert loud.text == silent.text == "I will look.\nBoth ran.\n"
    assert "bash echo one" in loud.notes
    assert "model calls" in loud.notes
    assert silent.notes == ""


async def test_text_mode_without_a_terminal_has_no_escape_sequences(cli: Cli) -> None:
    reply = [
        {"text": "red \x1b[31malert\x1b[0m \u202eevil", "tools": [bash("printf '\\033[2J'")]},
        {"text": "ok"},
    ]
    async with serving(reply) as server:
        outcome = await cli.use(server).run("-p", "hi", "--allow-all")
    assert b"\x1b" not in outcome.out + outcome.err
    assert "\u202e" not in outcome.text


@pytest.mark.proves("HEAD-09")
async def test_an_unknown_effort_is_refused_and_a_known_one_is_passed_on(cli: Cli) -> None:
    async with serving(HELLO) as server:
        refused = await cli.use(server).ask("hi", "--effort", "extreme")
        accepted = await cli.ask("hi", "--effort", "xhigh")
        assert server.requests[0].json["reasoning_effort"] == "xhigh"
    assert refused.code == 2
    assert "low, medium, high, xhigh" in refused.result["error"]["message"]
    assert accepted.code == 0


@pytest.mark.proves("HEAD-18")
async def test_an_effort_the_model_does_not_take_fails_as_an_error_event(cli: Cli) -> None:
    reply = [{"error": {"status": 400, "message": "Unsupported value: reasoning_effort"}}]
    async with serving(reply) as server:
        outcome = await cli.use(server).ask("hi", "--effort", "xhigh")
    assert "reasoning_effort" in outcome.of("session.error")[0]["message"]
    assert outcome.code == 8


@pytest.mark.proves("HEAD-10")
@pytest.mark.parametrize(
    "model", ["claude-sonnet-4.5", "openai/gpt-4.1-mini", "copilot/auto", "a/b/c:d@2026", "local"]
)
async def test_the_model_named_is_the_model_asked(cli: Cli, model: str) -> None:
    async with serving(HELLO) as server:
        cli.use(server).env["OPENAI_API_KEY"] = "another-service-0123456789"
        outcome = await cli.ask("hi", "--model", model)
        asked = [request.json["model"] for request in server.requests]
    if model == "local":  # the one name that stands for the embedded model
        assert not asked
        return
    assert outcome.code == 0, outcome.notes
    assert asked == [model]


@pytest.mark.parametrize("form", ["equals", "space", "prefix", "name", "continue"])
async def test_a_session_is_resumed_with_its_whole_history(cli: Cli, form: str) -> None:
    async with serving([{"text": "Blue."}, {"text": "You said blue."}]) as server:
        first = await cli.use(server).ask("my colour is blue", "-n", "colours")
        session_id = first.result["sessionId"]
        flag = {
            "equals": [f"--resume={session_id}"],
            "space": ["--resume", session_id],
            "prefix": [f"--resume={session_id[:8]}"],
            "name": ["--resume=colours"],
            "continue": ["--continue"],
        }[form]
        second = await cli.ask("which colour?", *flag)
        texts = [m["content"] for m in server.requests[1].json["messages"]]
    assert second.result["sessionId"] == session_id
    assert len(cli.logs()) == 1
    assert "my colour is blue" in texts[1]
    assert texts[2] == "Blue."


async def test_a_bare_resume_with_several_sessions_is_an_error_and_makes_none(cli: Cli) -> None:
    async with serving([*HELLO, *HELLO]) as server:
        await cli.use(server).ask("one")
        await cli.ask("two")
        outcome = await cli.run("--resume", "-p", "three", "--output-format", "json")
    assert outcome.code == 2
    assert len(cli.logs()) == 2


async def test_a_failed_resume_never_makes_a_session(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", "--resume=0123456789abcdef")
    assert outcome.code == 2
    assert not cli.logs()


@pytest.mark.proves("HEAD-14")
@pytest.mark.parametrize(
    "flag", ["--verbose", "--system-prompt-file", "--bare", "--fallback-model", "--nonsense"]
)
async def test_an_unknown_flag_is_named_and_refused(cli: Cli, flag: str) -> None:
    outcome = await cli.ask("hi", flag)
    assert outcome.code == 2
    assert flag in outcome.notes
    assert flag in outcome.result["error"]["message"]


@pytest.mark.proves("HEAD-16")
async def test_the_version_is_printed(cli: Cli) -> None:
    for flag in ("--version", "-v"):
        outcome = await cli.run(flag)
        assert re.fullmatch(r"Trimtab \d+\.\d+\.\d+\n", outcome.text)


@pytest.mark.proves("RES-06")
async def test_unknown_numbers_are_null(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi")
    assert outcome.result["usage"]["costUsd"] is None
    assert outcome.result["usage"]["tokens"]["cacheRead"] is None


@pytest.mark.proves("PERM-07")
async def test_a_permission_nobody_can_give_is_denied_counted_and_never_waited_for(
    cli: Cli,
) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "I could not."}]
    async with serving(script) as server:
        outcome = await cli.use(server).run("-p", "hi", "--output-format", "json")
    assert not (cli.cwd / "made").exists()
    complete = outcome.of("tool.execution_complete")[0]
    assert complete["error"]["code"] == "denied"
    assert outcome.result["permissionDenials"] == 1
    assert (outcome.code, outcome.result["status"]) == (4, "denied")
    assert outcome.of("assistant.message")[-1]["content"] == "I could not."


@pytest.mark.proves("HEAD-06", "AUTO-01", "AUTO-02", "AUTO-11")
async def test_autopilot_offers_task_complete_and_ends_with_it(cli: Cli) -> None:
    script = [
        {"text": "Thinking."},
        {
            "text": "Done.",
            "tools": [{"name": "task_complete", "arguments": {"summary": "It is done."}}],
        },
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("hi", "--autopilot")
        offered = {
            tool["function"]["name"]: tool["function"] for tool in server.requests[0].json["tools"]
        }
    assert offered["task_complete"]["parameters"]["required"] == ["summary"]
    (complete,) = outcome.of("session.task_complete")
    assert (complete["success"], complete["summary"]) == (True, "It is done.")
    types = outcome.types()
    assert types.index("session.task_complete") < types.index("result") == len(types) - 1
    assert outcome.of("user.message")[1]["content"] == ""
    assert outcome.result["stopReason"] == "task_complete"


@pytest.mark.proves("AUTO-01", "AUTO-12")
async def test_without_autopilot_task_complete_is_not_offered(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi")
        names = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert "task_complete" not in names
    assert not outcome.of("session.task_complete")


async def test_plan_mode_changes_nothing(cli: Cli) -> None:
    script = [
        {
            "tools": [
                bash("touch made"),
                {"name": "create", "arguments": {"path": "x.txt", "file_text": "x"}},
            ]
        },
        {"text": "The plan."},
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("hi", "--plan")
    assert os.listdir(cli.cwd) == []
    assert outcome.code == 0
    assert {c["error"]["code"] for c in outcome.of("tool.execution_complete")} == {"denied"}


@pytest.mark.parametrize(
    "flags",
    [
        ("--plan", "--autopilot"),
        ("--mode", "plan", "--autopilot"),
        ("--resume=x", "--continue"),
        ("-i", "x"),
    ],
)
async def test_flags_that_contradict_each_other_are_refused(
    cli: Cli, flags: tuple[str, ...]
) -> None:
    outcome = await cli.ask("hi", *flags)
    assert outcome.code == 2


async def test_max_turns_and_deadline_end_with_code_6(cli: Cli) -> None:
    forever = {"replies": [], "otherwise": {"tools": [bash("true")]}}
    async with serving(forever) as server:
        turns = await cli.use(server).ask("hi", "--max-turns", "3")
        assert server.usage.requests == 3
        deadline = await cli.ask("hi", "--deadline", "1s", "--max-repeats", "0")
    assert (turns.code, turns.result["stopReason"]) == (6, "turn_limit")
    assert (deadline.code, deadline.result["stopReason"]) == (6, "deadline")


async def test_the_usage_file_and_the_shared_transcript_are_written(cli: Cli) -> None:
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask(
            "hi", "--usage-output-file", "usage.json", "--share=out.md"
        )
    usage = json.loads((cli.cwd / "usage.json").read_text())
    assert usage["usage"] == outcome.result["usage"]
    assert "Both ran." in (cli.cwd / "out.md").read_text()


async def test_a_flag_without_effect_is_said_in_an_event(cli: Cli) -> None:
    async with serving(HELLO) as server:
        outcome = await cli.use(server).ask("hi", "--no-auto-update")
    assert outcome.of("session.info")[0]["infoType"] == "flag_ignored"


@pytest.mark.parametrize(
    ("signal_name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)]
)
async def test_a_signal_ends_the_run_with_a_result_and_leaves_no_process(
    cli: Cli, signal_name: str, code: int
) -> None:
    import signal

    marker = f"trimtab-test-{os.getpid()}-{signal_name}"
    async with serving([{"tools": [bash(f"sleep 61 # {marker}")]}]) as server:
        process = await cli.use(server).start("-p", "hi", "--output-format", "json", "--allow-all")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"tool.execution_start" not in (first := await process.stdout.readline()):
                assert first
        async with asyncio.timeout(30):  # half of what the command would take
            process.send_signal(getattr(signal, signal_name))
            rest = await process.stdout.read()
            assert await process.wait() == code
    lines = [json.loads(line) for line in rest.splitlines()]
    assert lines[-1]["type"] == "result"
    assert lines[-1]["exitCode"] == code
    assert lines[-1]["status"] == "aborted"
    assert not [p for p in os.listdir("/proc") if p.isdigit() and _runs(p, marker)]


def _runs(pid: str, marker: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return marker.encode() in file.read()
    except OSError:
        return False


async def test_a_closed_stdout_ends_quietly(cli: Cli) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    async with serving(WORK) as server:
        outcome = await cli.use(server).ask("hi", stdout=write_end)
    os.close(write_end)
    assert outcome.notes == ""
    assert outcome.code == 141


@pytest.mark.proves("VSC-18")
async def test_tokens_by_model_are_in_the_stored_shutdown_and_our_own_in_the_result(
    cli: Cli,
) -> None:
    """The result has what Copilot's has not: tokens and cost. Where Copilot keeps them, so do we."""
    usage = {"input": 1200, "output": 30, "cached": 1000}
    async with serving([{"text": "done", "usage": usage}]) as server:
        cli.use(server)
        outcome = await cli.ask("hi")
    last = json.loads(cli.logs()[0].read_text().splitlines()[-1])
    assert last["type"] == "session.shutdown"
    metrics = last["data"]["modelMetrics"]["scripted"]
    assert metrics["requests"]["count"] == 1
    assert metrics["usage"]["inputTokens"] == 1200
    assert metrics["usage"]["cacheReadTokens"] == 1000
    given = outcome.result["usage"]
    assert given["tokens"]["input"] == 1200
    assert given["costUsd"] is None, "no price is known, and unknown is not zero"
    assert outcome.result["status"] == "success"


async def test_a_reader_that_takes_its_time_gets_everything(cli: Cli) -> None:
    (cli.cwd / "long.txt").write_text("line of some length\n" * 900)
    look = {"name": "view", "arguments": {"path": "long.txt"}}
    read_end, write_end = os.pipe()
    async with serving([*[{"tools": [look]}] * 12, {"text": "done"}]) as server:
        process = await cli.use(server).start(
            "-p", "hi", "--output-format=json", "--allow-all", stdout=write_end
        )
        os.close(write_end)
        await asyncio.sleep(3)  # the case is about time: somebody is looking at the first page
        with os.fdopen(read_end, "rb") as reader:
            data = await asyncio.to_thread(reader.read)
        assert await process.wait() == 0
    lines = data.splitlines()
    assert len(data) > 200_000
    assert json.loads(lines[-1])["type"] == "result"
