"""The loop seen from outside: the same events whatever the service, wiring, reasoning, gates."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from conformance import check_lines
from livekit import opened
from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.stop_gate import StopGate
from trimtab.session.log import read_records
from trimtab.testing.playing import play

WORK = [
    {"text": "Looking.", "reasoning": {"text": "Let me think."}, "tools": [bash("echo hi"), bash("echo ho")]},
    {"text": "Done, both ran."},
]  # fmt: skip

WIRES = {
    "openai-chat": {"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_WIRE_API": "completions"},
    "openai-responses": {
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "responses",
    },
    "anthropic": {"COPILOT_PROVIDER_TYPE": "anthropic"},
}


@pytest.mark.proves("LOOP-23")
async def test_every_wire_gives_the_same_events(cli: Cli) -> None:
    seen: dict[str, list[str]] = {}
    for name, env in WIRES.items():
        async with serving(WORK) as server:
            outcome = await cli.use(server).ask("go", env=env)
        assert outcome.code == 0, outcome.notes
        quiet = {
            "assistant.message_delta",
            "assistant.reasoning_delta",
            "assistant.message_start",
            "tool.execution_partial_result",
        }
        seen[name] = [t for t in outcome.types() if t not in quiet]
        contents = [m["content"] for m in outcome.of("assistant.message")]
        assert contents == ["Looking.", "Done, both ran."]
    assert seen["openai-chat"] == seen["openai-responses"] == seen["anthropic"]


@pytest.mark.proves("LOOP-08")
async def test_tool_calls_of_all_choices_become_one_list(cli: Cli) -> None:
    def choice(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"index": index, "delta": delta, "finish_reason": finish}

    def called(number: int) -> dict[str, Any]:
        function = {"name": "bash", "arguments": '{"command": "echo '}
        return {
            "tool_calls": [
                {"index": 0, "id": f"c{number}", "type": "function", "function": function}
            ]
        }

    def rest(number: int) -> dict[str, Any]:
        """The end of the arguments: only the choice says which call it belongs to."""
        function = {"arguments": f'{number}", "description": "x"}}'}
        return {"tool_calls": [{"index": 0, "function": function}]}

    chunks = [
        {
            "choices": [
                choice(0, {"content": "Two at once."}),
                choice(1, called(1)),
                choice(2, called(2)),
            ]
        },
        {"choices": [choice(1, rest(1)), choice(2, rest(2))]},
        {
            "choices": [
                choice(0, {}, "stop"),
                choice(1, {}, "tool_calls"),
                choice(2, {}, "tool_calls"),
            ]
        },
    ]
    raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    async with serving([{"raw": raw}, {"text": "Done."}]) as server:
        outcome = await cli.use(server).ask("go")
    first = outcome.of("assistant.message")[0]
    assert first["content"] == "Two at once."
    commands = [request["arguments"]["command"] for request in first["toolRequests"]]
    assert commands == ["echo 1", "echo 2"]
    assert [r["toolCallId"] for r in first["toolRequests"]] == ["c1", "c2"]
    assert {c["toolCallId"] for c in outcome.of("tool.execution_complete")} == {"c1", "c2"}


async def test_every_streamed_piece_reaches_subscribers_in_order() -> None:
    played = await play([{"text": "abcdefghijklmnopqrstuvwxyz", "chunk": 1}], "go")
    pieces = [d.delta_content for d in played.of("assistant.message_delta")]
    assert "".join(pieces) == "abcdefghijklmnopqrstuvwxyz"
    assert all(pieces)
    assert len(pieces) > 15, "only what may begin a secret waits for the next piece"


@pytest.mark.proves("EVT-07", "EVT-08", "EVT-12")
async def test_reasoning_is_shown_stored_and_sent_back(cli: Cli) -> None:
    script = [
        {"reasoning": {"text": "First I look.", "opaque": "c2VjcmV0"}, "tools": [bash("true")]},
        {"text": "Done."},
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("go", env=WIRES["anthropic"])
        sent_back = server.requests[1].json["messages"]
    assert (
        "".join(d["deltaContent"] for d in outcome.of("assistant.reasoning_delta"))
        == "First I look."
    )
    assert outcome.of("assistant.reasoning")[0]["content"] == "First I look."
    message = outcome.of("assistant.message")[0]
    assert message["reasoningText"] == "First I look."
    assert message["reasoningOpaque"]
    thinking = [
        b
        for m in sent_back
        if m["role"] == "assistant"
        for b in m["content"]
        if b["type"] == "thinking"
    ]
    assert thinking[0]["thinking"] == "First I look."
    assert thinking[0]["signature"]


@pytest.mark.proves("EVT-07", "EVT-09")
async def test_a_model_without_reasoning_gives_no_reasoning_events() -> None:
    played = await play([{"text": "Hello."}], "go")
    assert not [t for t in played.types() if "reasoning" in t]


async def test_the_wiring_of_processors_is_one_visible_list(tmp_path: Path) -> None:
    limits = LimitOptions(max_turns=3, max_tokens=100_000)
    async with opened(tmp_path, ["ok"], limits=limits) as (live, _, _provider):
        names = [type(processor).__name__ for processor in live._run.agent.pipeline]
    assert names == [
        "TurnLimit",
        "Steering",
        "SlashCommands",
        "Skills",
        "DiscoveredInstructions",
        "AttachedImages",
        "UserContext",
        "PlanMode",
        "Permissions",
        "Recorder",
        "PullRequests",
        "PlanWatcher",
        "Progress",
        "Autopilot",
        "ContextUsage",
        "Compaction",
        "Budget",
        "ImageRemoval",
        "Retry",
        "ResultLimit",
    ]


@pytest.mark.proves("OUTER-15", "OUTER-16")
async def test_a_rule_can_reject_a_stop_by_what_the_agent_has_done() -> None:
    async def must_look_first(run: Run, active: bool) -> str | None:
        session: Any = run.session
        looked = sum(data.tool_name == "echo" for data in session.of("tool.execution_start"))
        return None if looked >= 2 else f"You looked at {looked} files; look at 2 first."

    run = make_run(
        [{"text": "done"}, {"tools": [call(text="a"), call(text="b")]}, {"text": "now it is"}],
        "go",
        tools=[EchoTool()],
        processors=[StopGate(must_look_first)],
    )
    session = await drained(run)
    assert session.of("user.message")[1].content == "You looked at 0 files; look at 2 first."
    assert run.stop == Stop(reason="end_turn")


@pytest.mark.proves("OUTER-17")
async def test_a_prompt_has_text_attachments_a_display_form_and_a_billable_flag() -> None:
    blob = {"type": "blob", "data": "AA==", "mimeType": "image/png", "displayName": "x.png"}
    prompt = Prompt(text="Review with care", display="/review", attachments=(blob,), billable=False)
    played = await play([{"text": "Reviewed."}], prompt)
    message = played.of("user.message")[0]
    assert message.content == "/review"
    assert "Review with care" in message.transformed_content
    assert message.attachments == [blob]
    assert played.of("assistant.usage")[0].initiator == "agent"
    assert played.requests[0].headers["x-initiator"] == "agent"
    check_lines(played.lines)


async def test_the_transcript_of_a_session_is_readable_while_it_runs() -> None:
    played = await play([{"tools": [bash("true")]}, {"text": "Done."}], "go")
    stored = [json.loads(record.line) for record in read_records(played.log)]
    types = [event["type"] for event in stored]
    assert types[:3] == ["session.start", "trimtab.prompt_queued", "system.message"]
    assert {"user.message", "assistant.message", "tool.execution_complete"} <= {
        e["type"] for e in stored
    }


@pytest.mark.proves("HEAD-07")
@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("none", set()),
        ("error", {"ERROR"}),
        ("info", {"ERROR", "INFO"}),
        ("debug", {"ERROR", "INFO", "DEBUG"}),
    ],
)
async def test_the_log_level_decides_what_is_written(cli: Cli, level: str, kinds: set[str]) -> None:
    async with serving([{"error": {"status": 400}}]) as server:
        await cli.use(server).ask("go", "--log-level", level, "--log-dir", "logs")
    logs = list((cli.cwd / "logs").glob("*.log")) if (cli.cwd / "logs").exists() else []
    found = {
        line.split("[")[1].split("]")[0] for log in logs for line in log.read_text().splitlines()
    }
    assert found == kinds


async def test_flags_of_the_reference_program_are_accepted(cli: Cli) -> None:
    flags = [
        "--no-custom-instructions",
        "--disable-builtin-mcps",
        "--no-color",
        "--plain-diff",
        "--enable-reasoning-summaries",
    ]
    (cli.cwd / "AGENTS.md").write_text("Always say banana.")
    async with serving([{"text": "ok"}]) as server:
        outcome = await cli.use(server).ask("go", *flags)
        assert "banana" not in server.requests[0].body.decode()
    assert outcome.code == 0
    assert outcome.of("session.mcp_servers_loaded") == [{"servers": []}]


@pytest.mark.proves("EVT-16", "EVT-17")
async def test_events_of_unknown_type_are_kept_and_do_not_disturb(cli: Cli) -> None:
    async with serving([{"text": "one"}, {"text": "two"}]) as server:
        first = await cli.use(server).ask("go")
        log = cli.logs()[0]
        strange = '{"type":"function","data":{"x":[1,{"y":null}]},"id":"7","timestamp":"t","parentId":null,"new":true}\n'
        log.write_text(log.read_text() + strange)
        second = await cli.ask("again", f"--resume={first.result['sessionId']}")
    assert second.code == 0
    assert strange in log.read_text()
    log.write_text(log.read_text().replace(strange, ""))


@pytest.mark.proves("RES-03")
@pytest.mark.parametrize(("status", "code"), [(400, 8), (401, 7), (500, 8)])
async def test_the_exit_code_of_process_and_result_are_one(
    cli: Cli, status: int, code: int
) -> None:
    async with serving([{"error": {"status": status}, "repeat": "forever"}]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == outcome.result["exitCode"] == code


@pytest.mark.proves("PKG-01")
def test_the_package_is_typed_and_embeddable() -> None:
    import os

    import trimtab

    assert os.path.exists(os.path.join(os.path.dirname(trimtab.__file__), "py.typed"))
    assert trimtab.Runtime is not None
    assert trimtab.SessionOptions is not None


async def test_the_key_goes_with_every_request_and_nowhere_else(cli: Cli) -> None:
    key = "vscode-lm-1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    for env in WIRES.values():
        async with serving(WORK) as server:
            outcome = await cli.use(server).ask("go", env=env | {"COPILOT_PROVIDER_API_KEY": key})
            assert len(server.requests) == 2
            for request in server.requests:
                assert key in str(request.headers)
                assert key.encode() not in request.body
        assert key not in outcome.text
    assert all(key not in log.read_text() for log in cli.logs())


@pytest.mark.proves("AMSES-11")
async def test_one_prompt_is_enough_for_a_plan_a_failure_and_its_repair(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    plan = "INSERT INTO todos (id, title) VALUES ('a', 'write it'), ('b', 'check it')"
    done = "UPDATE todos SET status = 'done'"
    script = [
        {"tools": [{"name": "sql", "arguments": {"description": "plan", "query": plan}}]},
        {"tools": [bash("test -e made")]},
        {"tools": [bash("touch made && test -e made")]},
        {"tools": [{"name": "sql", "arguments": {"description": "done", "query": done}}]},
        {"text": "Made and checked."},
    ]
    async with serving(script) as server:
        outcome = await cli.use(server).ask("Make it.")
        last = server.requests[-1].json["messages"]
    assert [message["role"] for message in last[1:]] == ["user", *["assistant", "tool"] * 4]
    assert "exit code 1" in last[5]["content"]
    assert "exit code 0" in last[7]["content"]
    assert outcome.types().count("user.message") == 1
    assert outcome.code == 0
