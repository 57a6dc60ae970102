"""An editor drives a session: turns, tool calls, permissions, cancelling, errors."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import acp
import pytest

from acpkit import SOON, RawClient, connected
from clikit import Cli, bash, serving
from toolkit import is_running


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments}]}


def run(command: str) -> dict[str, Any]:
    return {"tools": [bash(command)]}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def test_initialize_answers_with_our_version_and_capabilities(cli: Cli) -> None:
    async with connected(cli, "--stdio", start=False) as link:
        answer = await link.agent.initialize(protocol_version=7)
        assert answer.protocol_version == 1
        assert answer.agent_info.name == "trimtab"
        capabilities = answer.agent_capabilities
        assert capabilities.load_session
        assert capabilities.prompt_capabilities.image
        assert not capabilities.prompt_capabilities.audio


async def test_text_and_thoughts_stream_under_ids_of_their_messages(cli: Cli) -> None:
    reply = {"reasoning": {"text": "Let me think about it."}, "text": "Hello there.", "chunk": 4}
    async with serving([reply]) as server, connected(cli.use(server)) as link:
        await link.open()
        assert await link.say("hello") == "end_turn"
        editor = link.editor
        assert editor.text() == "Hello there."
        assert editor.text("agent_thought_chunk") == "Let me think about it."
        assert len(editor.of("agent_message_chunk")) > 1
        ids = {update["messageId"] for update in editor.of("agent_message_chunk")}
        thoughts = {update["messageId"] for update in editor.of("agent_thought_chunk")}
        assert len(ids) == len(thoughts) == 1
        assert ids != thoughts


async def test_an_edit_is_asked_about_with_its_diff_and_then_shown(cli: Cli) -> None:
    path = cli.cwd / "a.txt"
    path.write_text("one\ntwo\n")
    replies = [use("edit", path="a.txt", old_str="two", new_str="TWO"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        assert await link.say() == "end_turn"
        diff = {"type": "diff", "path": str(path), "oldText": "one\ntwo\n"}
        diff["newText"] = "one\nTWO\n"
        [question] = link.editor.asked
        assert question["toolCall"]["content"] == [diff]
        [(call_id, call)] = link.editor.calls().items()
        assert question["toolCall"]["toolCallId"] == call_id
        assert call["statuses"] == ["pending", "in_progress", "completed"]
        assert call["kind"] == "edit"
        assert call["title"] == "Edit a.txt"
        assert call["locations"] == [{"path": str(path)}]
        assert call["content"] == [diff]
        assert call["rawInput"]["new_str"] == "TWO"


async def test_a_new_file_has_no_text_before(cli: Cli) -> None:
    replies = [use("create", path="new.txt", file_text="fresh\n"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say()
        path = str(cli.cwd / "new.txt")
        [call] = link.editor.calls().values()
        assert call["content"] == [{"type": "diff", "path": path, "newText": "fresh\n"}]


async def test_a_command_shows_its_output_while_it_runs(cli: Cli) -> None:
    replies = [run("echo first; until [ -e stop ]; do sleep 0.02; done; echo last"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        turn = asyncio.create_task(link.say())
        await link.editor.until(lambda: "first" in str(link.editor.of("tool_call_update")))
        assert "last" not in str(link.editor.of("tool_call_update"))
        (cli.cwd / "stop").touch()
        assert await turn == "end_turn"
        [call] = link.editor.calls().values()
        assert call["kind"] == "execute"
        assert call["title"].startswith("echo first; until")
        assert call["rawOutput"]["exitCode"] == 0
        assert call["statuses"] == ["pending", "in_progress", "completed"]


@pytest.mark.parametrize("answer", ["reject_once", "cancelled", "error", "no such option"])
async def test_every_answer_but_allow_is_a_denial(cli: Cli, answer: str) -> None:
    replies = [run("touch effect"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        link.editor.permission = answer
        await link.open()
        assert await link.say() == "end_turn"
        assert not (cli.cwd / "effect").exists()
        [call] = link.editor.calls().values()
        assert call["statuses"] == ["pending", "failed"]


async def test_always_answers_hold_for_the_calls_after_them(cli: Cli) -> None:
    replies = [
        run("touch a"),
        run("touch b"),
        run("mkdir c"),
        "rejected",
        run("mkdir d"),
        "done",
    ]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        link.editor.permission = ["allow_always", "reject_always"]
        await link.open()
        await link.say()
        await link.say()
        asked = [question["toolCall"]["rawInput"]["command"] for question in link.editor.asked]
        assert asked == ["touch a", "mkdir c"]
        assert sorted(os.listdir(cli.cwd)) == ["a", "b"]


async def test_a_read_inside_the_roots_is_not_asked_about(cli: Cli) -> None:
    (cli.cwd / "a.txt").write_text("one\n")
    replies = [use("view", path="a.txt"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say()
        [call] = link.editor.calls().values()
        assert link.editor.asked == []
        assert (call["kind"], call["title"]) == ("read", "Read a.txt")
        assert call["statuses"][-1] == "completed"


@pytest.mark.parametrize("state", ["model", "command", "permission"])
async def test_cancel_ends_the_turn_at_once(cli: Cli, state: str) -> None:
    replies: dict[str, list[Any]] = {
        "model": [{"text": "x" * 64, "chunk": 1, "chunk_delay": 0.5}],
        "command": [run("echo started; sleep 60"), "no"],
        "permission": [run("touch effect"), "no"],
    }
    async with serving([*replies[state], "again"]) as server, connected(cli.use(server)) as link:
        editor = link.editor
        editor.permission = "hang" if state == "permission" else "allow_once"
        await link.open()
        turn = asyncio.create_task(link.say())
        reached = {
            "model": lambda: editor.of("agent_message_chunk"),
            "command": lambda: "started\\n" in str(editor.of("tool_call_update")),
            "permission": lambda: editor.asked,
        }
        await editor.until(reached[state])
        await link.agent.cancel(session_id=link.session)
        async with asyncio.timeout(SOON):
            assert await turn == "cancelled"
        for call in editor.calls().values():
            assert call["statuses"][-1] == "failed"


async def test_a_cancel_right_after_the_prompt_cancels_it(cli: Cli) -> None:
    async with (
        serving([{"text": "slow", "delay": 30}]) as server,
        connected(cli.use(server)) as link,
    ):
        await link.open()
        turn = asyncio.create_task(link.say())
        await asyncio.sleep(0)
        await link.agent.cancel(session_id=link.session)
        assert await turn == "cancelled"


async def test_the_session_goes_on_after_a_cancelled_prompt(cli: Cli) -> None:
    replies = [{"text": "x" * 64, "chunk": 1, "chunk_delay": 0.5}, "second"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        turn = asyncio.create_task(link.say("first"))
        await link.editor.until(lambda: link.editor.of("agent_message_chunk"))
        await link.agent.cancel(session_id=link.session)
        assert await turn == "cancelled"
        assert await link.say("again") == "end_turn"
        assert link.editor.text().endswith("second")


STOPS = [
    ("end_turn", [], ["hello"]),
    ("max_tokens", [], [{"text": "cut", "finish": "length"}]),
    ("refusal", [], [{"text": "no", "finish": "content_filter"}]),
    ("max_turn_requests", ["--max-turns", "1"], [run("true"), run("true"), "never"]),
    ("max_tokens", ["--max-tokens", "1"], [run("true"), run("true"), "never"]),
]


@pytest.mark.parametrize(("reason", "flags", "replies"), STOPS)
async def test_the_stop_reason_is_the_true_one(
    cli: Cli, reason: str, flags: list[str], replies: list[Any]
) -> None:
    async with serving(replies) as server, connected(cli.use(server), *flags) as link:
        await link.open()
        assert await link.say() == reason


async def test_a_failing_model_fails_the_prompt_and_the_session_goes_on(cli: Cli) -> None:
    failure = {"error": {"status": 400, "message": "the parrot is no more"}}
    async with serving([failure, "alive"]) as server, connected(cli.use(server)) as link:
        await link.open()
        with pytest.raises(acp.RequestError, match="the parrot is no more"):
            await link.say()
        assert await link.say() == "end_turn"
        assert link.editor.text() == "alive"


async def test_the_process_ends_soon_after_its_input(cli: Cli) -> None:
    replies = [run("sleep 60"), "no"]
    async with serving(replies) as server, connected(cli.use(server), "--allow-all") as link:
        await link.open()
        turn = asyncio.create_task(link.say())
        await link.editor.until(lambda: "in_progress" in str(link.editor.calls()))
        async with asyncio.timeout(SOON):
            assert await link.end() == 0
        turn.cancel()


SUBAGENT: dict[str, Any] = {
    "replies": [
        {
            "when": {"last": "delegate"},
            "repeat": 1,
            "tools": [
                {
                    "name": "task",
                    "arguments": {
                        "agent_type": "general-purpose",
                        "description": "make a file",
                        "prompt": "work for me",
                    },
                }
            ],
        },
        {"when": {"last": "work for me"}, "repeat": 1, "tools": [bash("touch made")]},
    ],
    "otherwise": {"text": "done", "repeat": "forever"},
}


async def test_calls_and_questions_of_a_sub_agent_reach_the_client(cli: Cli) -> None:
    async with serving(SUBAGENT) as server, connected(cli.use(server)) as link:
        await link.open()
        assert await link.say("delegate") == "end_turn"
        calls = link.editor.calls()
        [question] = [ask for ask in link.editor.asked if "touch" in str(ask["toolCall"])]
        assert calls[question["toolCall"]["toolCallId"]]["title"] == "touch made"
        assert [call["status"] for call in calls.values()] == ["completed", "completed"]
        assert (cli.cwd / "made").exists()


async def test_an_image_and_embedded_context_reach_the_model(cli: Cli) -> None:
    pixel = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
        "rkJggg=="
    )
    (cli.cwd / "linked.txt").write_text("the linked text\n")
    async with serving(["seen"]) as server, connected(cli.use(server)) as link:
        await link.open()
        context = acp.embedded_text_resource("file:///elsewhere/note.txt", "the embedded text")
        await link.say(
            "look: ",
            acp.image_block(pixel, "image/png"),
            acp.resource_block(context),
            acp.resource_link_block("linked.txt", (cli.cwd / "linked.txt").as_uri()),
        )
        sent = str(server.requests[-1].json["messages"])
        assert "data:image/png;base64" in sent
        assert "the embedded text" in sent
        assert "linked.txt" in sent


async def test_a_denying_hook_decides_before_the_client_is_asked(cli: Cli) -> None:
    hooks = cli.home / "hooks"
    hooks.mkdir()
    deny = '{"permissionDecision": "deny", "permissionDecisionReason": "not today"}'
    (hooks / "deny.json").write_text(
        json.dumps(
            {
                "version": 1,
                "hooks": {"preToolUse": [{"type": "command", "bash": f"echo '{deny}'"}]},
            }
        )
    )
    replies = [run("touch effect"), "done"]
    async with serving(replies) as server, connected(cli.use(server)) as link:
        await link.open()
        await link.say()
        assert link.editor.asked == []
        assert not (cli.cwd / "effect").exists()
        [call] = link.editor.calls().values()
        assert "not today" in str(call["content"])


async def test_closing_a_session_cancels_its_prompt(cli: Cli) -> None:
    async with (
        serving([{"text": "slow", "delay": 30}]) as server,
        connected(cli.use(server)) as link,
    ):
        await link.open()
        turn = asyncio.create_task(link.say())
        await link.editor.until(lambda: link.editor.of("usage_update"))
        await link.agent.close_session(session_id=link.session)
        assert await turn == "cancelled"


async def test_a_killed_client_leaves_a_session_that_loads(cli: Cli) -> None:
    replies = [run("echo started; sleep 60"), "no"]
    async with serving(replies) as server:
        cli.use(server)
        async with connected(cli, "--allow-all") as link:
            await link.open()
            turn = asyncio.create_task(link.say())
            await link.editor.until(lambda: "started" in str(link.editor.of("tool_call_update")))
            session = link.session
            await link.end()
            turn.cancel()
        async with connected(cli) as link:
            await link.agent.load_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            [call] = link.editor.calls().values()
            assert call["status"] == "failed"


async def test_a_client_that_stops_reading_ends_the_process(cli: Cli) -> None:
    replies = [run("echo shell $$; sleep 60"), "no"]
    async with serving(replies) as server:
        cli.use(server)
        program = await cli.start("--acp", "--allow-all", stdin_fd=asyncio.subprocess.PIPE)
        client = RawClient(program)
        await client.call("initialize", protocolVersion=1)
        session = await client.open(cli)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        await client.send({"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": prompt})
        while (told := re.search(r"shell (\d+)\\n", str(await client.read()))) is None:
            pass
        client.stop_reading()
        async with asyncio.timeout(SOON):
            assert await program.wait() == 0
        assert not is_running(int(told[1]))
        async with connected(cli) as link:
            await link.agent.load_session(cwd=str(cli.cwd), session_id=session, mcp_servers=[])
            [call] = link.editor.calls().values()
            assert call["status"] == "failed"
