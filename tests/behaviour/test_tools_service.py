"""Tools as a service: names, confirmations, streams, cancellation, and what is recorded of them."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving
from livekit import opened
from trimtab import Runtime, SessionOptions
from trimtab.contracts.options import Client, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import Question, Response
from trimtab.testing import Script, ScriptedProvider, recorded_script
from trimtab.testing.playing import play

NO_RULES = PermissionOptions()
EDIT = {"name": "edit", "arguments": {"path": "a.txt", "old_str": "two", "new_str": "TWO"}}


def completed(outcome: Outcome) -> list[dict[str, Any]]:
    return outcome.of("tool.execution_complete")


def sent(server: Any, index: int = -1) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(server.requests[index].body)
    return body


@pytest.mark.proves("AMTOOL-01", "AMTOOL-07", "AMTOOL-15", "AMREC-07")
async def test_a_tool_is_had_by_its_name_and_by_those_it_has_elsewhere(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("one\ntwo\n")
    calls = [
        {"name": "view", "arguments": {"path": "a.txt"}},
        {"name": "read_file", "arguments": '{"filePath": "a.txt", "startLine": "1", "endLine": 2}'},
        {
            "name": "str_replace_editor",
            "arguments": {
                "command": "str_replace",
                "path": "a.txt",
                "old_str": "two",
                "new_str": "2",
            },
        },
        {"name": "run_in_terminal", "arguments": {"command": "cat a.txt", "explanation": "look"}},
    ]
    done = {"text": "done", "repeat": 2}
    async with serving([*({"tools": [one]} for one in calls), done]) as server:
        outcome = await cli.use(server).ask("go")
        chosen = await cli.ask("go", "--available-tools", "builtin:view")
        offered = {tool["function"]["name"] for tool in sent(server)["tools"]}
    assert chosen.code == 0
    assert offered == {"view"}
    assert [one["success"] for one in completed(outcome)] == [True] * 4, completed(outcome)
    called = [one["toolName"] for one in outcome.of("tool.execution_start")]
    assert called == ["view", "view", "edit", "bash"]
    contents = [one["result"]["content"] for one in completed(outcome)]
    assert contents[:2] == ["1. one\n2. two\n3.", "1. one\n2. two"]
    assert contents[3].startswith("one\n2\n")


async def test_another_name_is_no_way_around_a_rule(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    call = {"name": "run_in_terminal", "arguments": {"command": "touch x", "explanation": "x"}}
    async with serving([{"tools": [call]}, {"text": "done"}] * 2) as server:
        denied = await cli.use(server).ask("go", "--deny-tool", "shell(touch)")
        excluded = await cli.ask("go", "--excluded-tools", "bash")
    assert [one["success"] for one in (*completed(denied), *completed(excluded))] == [False, False]
    assert "does not exist" in completed(excluded)[0]["error"]["message"]
    assert not (cli.cwd / "x").exists()


@pytest.mark.proves("AMTOOL-06")
async def test_a_cancelled_call_has_an_error_of_its_own(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    async with serving([{"tools": [bash("exit 3"), bash("echo on; sleep 60")]}]) as server:
        process = await cli.use(server).start(
            "-p", "go", "--allow-all", "--output-format=json", "--stream", "on"
        )
        assert process.stdout is not None
        lines = []
        async for line in process.stdout:
            lines.append(json.loads(line))
            wanted = {"tool.execution_partial_result", "tool.execution_complete"}
            if lines[-1]["type"] in wanted and wanted <= {line["type"] for line in lines}:
                process.send_signal(signal.SIGINT)
                break
        lines += [json.loads(line) async for line in process.stdout]
        assert await process.wait() == 130
    ended = [one["data"] for one in lines if one["type"] == "tool.execution_complete"]
    interrupted = [one for one in ended if not one["success"]]
    assert [one["error"]["code"] for one in interrupted] == ["interrupted"]
    assert "interrupted" in interrupted[0]["error"]["message"]


@pytest.mark.proves("AMTOOL-13", "AMTOOL-09")
async def test_every_write_is_asked_for_with_its_diff_and_none_is_made_before_a_yes(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    asked: list[dict[str, Any]] = []
    answers = [Answer(kind="reject", feedback="leave it"), Answer(kind="approve-once")]

    async def person(request_id: str, request: Any) -> Answer:
        assert file.read_text() == "one\ntwo\n"
        asked.append(request)
        return answers.pop(0)

    script = [{"tools": [EDIT]}, {"tools": [EDIT]}, "done"]
    refused = await play(script, "go", "again", cwd=str(tmp_path), permissions=NO_RULES, ask=person)
    assert [one["kind"] for one in asked] == ["write", "write"]
    for request in asked:
        assert "-two" in request["diff"]
        assert "+TWO" in request["diff"]
    first, second = refused.of("tool.execution_complete")
    assert (first.success, first.error["code"]) == (False, "rejected")
    assert second.success
    assert file.read_text() == "one\nTWO\n"
    told = [str(message) for message in refused.requests[1].messages]
    assert any("rejected" in message for message in told)


@pytest.mark.proves("AMTOOL-14")
async def test_output_streams_while_a_command_runs_and_the_model_learns_how_it_ended(
    tmp_path: Path,
) -> None:
    replies = [{"tools": [bash("echo first; echo second >&2; exit 7")]}, "done"]
    async with opened(tmp_path, replies) as (live, watch, provider):
        await live.ask("go")
        types = [event.type for event in watch.events]
        streamed = "".join(one.partial_output for one in watch.of("tool.execution_partial_result"))
        last = str(provider.requests[-1].messages[-1])
    order = ["tool.execution_start", "tool.execution_partial_result", "tool.execution_complete"]
    assert [types.index(name) for name in order] == sorted(types.index(name) for name in order)
    assert "first" in streamed
    assert "first" in last
    assert "second" in last
    assert "exit code 7" in last


@pytest.mark.proves("AMTOOL-16")
async def test_the_instructions_say_how_commands_are_watched_where_there_are_commands(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    async with serving([{"text": "done"}] * 2) as server:
        await cli.use(server).ask("go")
        await cli.ask("go", "--excluded-tools", "bash")
        texts = [sent(server, number)["messages"][0]["content"] for number in (0, 1)]
    assert "read it with read_bash" in texts[0]
    assert "<bash>" in texts[0]
    assert "<bash>" not in texts[1]


@pytest.mark.proves("AMREC-01", "AMREC-04", "AMREC-08")
async def test_the_log_has_calls_questions_terminal_output_reasons_and_versions_of_files(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("one\ntwo\n")
    calls = [EDIT, bash("echo printed; echo three >> a.txt"), bash("python3 denied.py")]
    async with serving([*({"tools": [one]} for one in calls), {"text": "done"}]) as server:
        words = ("-p", "go", "--allow-tool", "write", "--allow-tool", "shell(echo)")
        await cli.use(server).run(*words)
    (log,) = cli.home.glob("session-state/*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]

    def of(name: str) -> list[dict[str, Any]]:
        return [event["data"] for event in events if event["type"] == name]

    started, ended = of("tool.execution_start"), of("tool.execution_complete")
    assert [one["toolName"] for one in started] == ["edit", "bash", "bash"]
    assert started[1]["arguments"]["command"] == "echo printed; echo three >> a.txt"
    assert "printed\n" in ended[1]["result"]["content"]
    assert [one["success"] for one in ended] == [True, True, False]
    asked, answered = of("permission.requested"), of("permission.completed")
    assert asked[-1]["permissionRequest"]["fullCommandText"] == "python3 denied.py"
    assert answered[-1]["requestId"] == asked[-1]["requestId"]
    assert asked[-1]["permissionRequest"]["toolCallId"] == started[-1]["toolCallId"]
    assert "denied" in answered[-1]["result"]["kind"]
    changed = of("trimtab.workspace_changed")
    assert [(one["reason"], one["toolCallId"]) for one in changed] == [
        ("tool", started[0]["toolCallId"]),
        ("shell", started[1]["toolCallId"]),
    ]
    edited, appended = (one["changes"][0] for one in changed)
    assert edited["before"]["digest"] != edited["after"]["digest"]
    assert edited["after"]["digest"] == appended["before"]["digest"]


@pytest.mark.proves("AMREC-03")
async def test_a_recorded_session_plays_again_just_as_it_was(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "a.txt").write_text("one\ntwo\n")
    for name in ("first", "second"):
        shutil.copytree(start, tmp_path / name)
    script: list[Any] = [
        {"text": "I look.", "tools": [{**EDIT, "id": "an id of the service"}]},
        {"tools": [bash("cat a.txt")]},
        {"tools": [EDIT]},
        "done",
    ]
    first = await play(script, "go", cwd=str(tmp_path / "first"))
    again = await play(recorded_script(first.log), "go", cwd=str(tmp_path / "second"))
    assert story(again) == story(first)
    assert len(story(first)) > 8
    assert (tmp_path / "second" / "a.txt").read_text() == "one\nTWO\n"


def story(played: Any) -> list[tuple[str, Any]]:
    """What happened, without what is different every time."""
    told: list[tuple[str, Any]] = []
    for event in played.events:
        if event.type == "assistant.message":
            calls = [(one["name"], one["arguments"]) for one in event.data.tool_requests]
            told.append((event.type, (event.data.content, calls)))
        elif event.type == "tool.execution_complete":
            data = event.data
            content = data.result["content"] if data.success else data.error["message"]
            told.append((event.type, (data.tool_call_id, content)))
        elif event.type == "trimtab.workspace_changed":
            told.append((event.type, [change.after for change in event.data.changes]))
        elif not event.ephemeral:
            told.append((event.type, None))
    return told


@pytest.mark.proves("AMREC-06")
async def test_a_session_is_used_again_takes_prompts_in_order_and_outlives_an_error(
    tmp_path: Path,
) -> None:
    home = str(tmp_path / "home")
    first = await play(["one", "two"], "first", "second", cwd=str(tmp_path), home=home)
    failing: list[Any] = [{"error": {"status": 400}}, "four"]
    again = await play(
        failing, "third", "fourth", cwd=str(tmp_path), home=home, resume=first.session_id
    )
    asked = [one.content for one in (*first.of("user.message"), *again.of("user.message"))]
    assert asked == ["first", "second", "third", "fourth"]
    assert len(again.of("session.error")) == 1
    shown = [str(message) for message in again.requests[-1].messages]
    order = [
        at for word in ("first", "one", "second", "two", "fourth") for at in [index(shown, word)]
    ]
    assert order == sorted(order)
    assert again.of("assistant.message")[-1].content == "four"


def index(shown: list[str], word: str) -> int:
    return next(number for number, text in enumerate(shown) if word in text)


async def test_tools_of_an_editor_are_ours_or_the_model_is_told_what_to_do_instead(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("one (1)\nTwo\n")
    task = {"label": "say", "type": "shell", "command": "echo", "args": ["a b", "$HOME"]}
    calls: list[tuple[str, dict[str, Any]]] = [
        (
            "run_in_terminal",
            {
                "command": "sleep 3",
                "explanation": "wait",
                "isBackground": True,
                "shellId": "job",
            },
        ),
        ("terminal_last_command", {}),
        ("get_terminal_output", {"id": "job"}),
        ("create_and_run_task", {"task": task, "workspaceFolder": "."}),
        ("grep_search", {"query": "ONE (1)", "isRegexp": False}),
        ("file_search", {"query": "*.txt"}),
        ("semantic_search", {"query": "the two of a"}),
        ("manage_todo_list", {"operation": "read"}),
        ("terminal_selection", {}),
        ("run_task", {"id": "shell: build"}),
        ("get_vscode_api", {"query": "x"}),
        ("test_failure", {}),
        ("run_tests", {"files": []}),
        ("get_errors", {"filePaths": ["a.txt"]}),
    ]
    script = [{"tools": [{"name": name, "arguments": args}]} for name, args in calls]
    async with serving([*script, {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go")
    ended = completed(outcome)
    assert [one["success"] for one in ended] == [True] * 8 + [False] * 6, ended
    assert "sleep 3" in ended[1]["result"]["content"]
    assert ended[3]["result"]["content"].startswith("a b $HOME\n")
    assert "one (1)" in ended[4]["result"]["content"]
    assert "a.txt" in ended[6]["result"]["content"]
    for (name, _), one in list(zip(calls, ended, strict=True))[8:]:
        told = one["error"]["message"]
        assert told.startswith(f"Tool '{name}' does not exist. ")
        assert len(told) > len(f"Tool '{name}' does not exist. ")


@pytest.mark.proves("AMTOOL-08")
async def test_a_confirmation_is_asked_of_the_person_before_anything_goes_on(
    tmp_path: Path,
) -> None:
    asked: list[Question] = []

    async def answer(question: Question) -> Response | None:
        asked.append(question)
        return Response(text="No", freeform=False)

    confirm = {
        "name": "vscode_get_confirmation",
        "arguments": {"title": "Drop the table?", "message": "It has 3 rows."},
    }
    script = Script.of([{"tools": [confirm]}, {"text": "Left as it is."}])
    env = {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    runtime = Runtime(env=env, provider=ScriptedProvider(script))
    options = SessionOptions(cwd=str(tmp_path))
    live = await runtime.create(options, Client(ask_person=answer))
    live.controls.set_tools((), ("ask_user",))
    try:
        await live.ask("go")
    finally:
        await live.close()
    (question,) = asked
    assert question.text == "Drop the table?\nIt has 3 rows."
    assert (question.choices, question.allow_freeform) == (("Yes", "No"), False)
    log = Path(live.folder.events).read_text()
    assert "User selected: No" in log
