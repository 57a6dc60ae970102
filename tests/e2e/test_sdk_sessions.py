"""Sessions, driven by the official Python client."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from copilot.client import RuntimeConnection, SessionListFilter
from copilot.generated import rpc
from copilot.session import PermissionHandler

from clikit import TRIMTAB
from sdkkit import Heard, Sdk, bash, make_tool, serving, talking, use

TEXT = {"text": "Hello."}


async def test_a_prompt_is_answered_and_the_events_come_in_order(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        assert await talk.say("hi") == "Hello."
    assert talk.heard.types == [
        "session.start",
        "session.managed_settings_resolved",
        "pending_messages.modified",
        "session.model_change",
        "session.mcp_servers_loaded",
        "session.skills_loaded",
        "system.message",
        "session.tools_updated",
        "user.message",
        "session.title_changed",
        "pending_messages.modified",
        "assistant.turn_start",
        "session.usage_info",
        "model.call_start",
        "assistant.usage",
        "assistant.message",
        "assistant.turn_end",
        "assistant.idle",
        "session.idle",
    ]


async def test_parent_ids_chain_the_durable_events(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("hi")
    last = None
    for event in talk.heard.events:
        assert event.parent_id == last
        last = last if event.ephemeral else event.id


async def test_the_history_is_what_was_stored(sdk: Sdk) -> None:
    async with talking(sdk, [bash("echo one"), TEXT]) as talk:
        await talk.say("hi")
        history = await talk.session.get_events()
        durable = [event.id for event in talk.heard.events if not event.ephemeral]
        assert [event.id for event in history] == durable
        assert len(history) == len(sdk.logs()[0].read_bytes().split(b"\n")) - 1


async def test_the_session_has_the_id_the_client_chose(sdk: Sdk) -> None:
    wanted = "11111111-2222-4333-8444-555555555555"
    async with talking(sdk, [TEXT], session_id=wanted) as talk:
        assert talk.session.session_id == wanted
        assert talk.session.workspace_path == sdk.home / "session-state" / wanted


@pytest.mark.parametrize("wanted", ["user-42_chat.1", "../up", "a/b", "x" * 200])
async def test_a_session_id_need_not_be_a_uuid_but_must_be_a_name(sdk: Sdk, wanted: str) -> None:
    async with talking(sdk, [TEXT]) as talk:
        if wanted.startswith("user"):
            session = await talk.client.create_session(session_id=wanted)
            assert session.session_id == wanted
        else:
            with pytest.raises(Exception, match="session"):
                await talk.client.create_session(session_id=wanted)
    assert sorted(path.name for path in sdk.home.parent.iterdir()) == ["home", "project"]


async def test_a_second_session_with_the_same_id_is_refused(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        with pytest.raises(Exception, match="exists already"):
            await talk.client.create_session(session_id=talk.session.session_id)


async def test_answers_are_not_streamed_unless_asked_for(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("hi")
        assert not talk.server.requests[0].json.get("stream")
        assert "assistant.message_delta" not in talk.heard.types


async def test_streamed_pieces_add_up_to_the_message(sdk: Sdk) -> None:
    text = "A longer answer, which arrives in several pieces, one after another."
    async with talking(sdk, [{"text": text}], streaming=True) as talk:
        assert await talk.say("hi") == text
        assert talk.server.requests[0].json["stream"] is True
        deltas = talk.heard.of("assistant.message_delta")
        assert len(deltas) > 1
        assert "".join(delta.delta_content for delta in deltas) == text


async def test_the_conversation_goes_on(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT, {"text": "Again."}]) as talk:
        await talk.say("first")
        assert await talk.say("second") == "Again."
        roles = [message["role"] for message in talk.shown()]
        assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.proves("AMSES-03")
async def test_prompts_sent_at_once_are_answered_one_after_another(sdk: Sdk) -> None:
    async with talking(sdk, [{"text": "One."}, {"text": "Two."}]) as talk:
        prompts = ("first", "second")
        answers = await asyncio.gather(*map(talk.say, prompts))
        said = dict(zip(prompts, answers, strict=True))
        asked = [data.content for data in talk.heard.of("user.message")]
        assert sorted(asked) == ["first", "second"]  # the SDK writes on threads, in either order
        assert [said[prompt] for prompt in asked] == ["One.", "Two."]
        assert talk.heard.types.count("session.idle") == 1


@pytest.mark.proves("VSC-17")
async def test_an_immediate_prompt_is_shown_before_the_next_model_call(sdk: Sdk) -> None:
    release = asyncio.Event()
    tool = make_tool("wait", "x")
    tool.handler = lambda _: _result(release)
    async with talking(sdk, [use("wait", key="a"), TEXT], tools=[tool]) as talk:
        await talk.session.send("work")
        await talk.heard.until("external_tool.requested")
        await talk.session.send("also this", mode="immediate")
        pending = await talk.session.rpc.queue.pending_items()
        assert pending.steering_messages == ["also this"]
        release.set()
        await talk.heard.until("session.idle")
        assert "also this" in talk.prompt()
        assert talk.server.usage.requests == 2


async def _result(release: asyncio.Event) -> Any:
    from copilot.tools import ToolResult

    await release.wait()
    return ToolResult(text_result_for_llm="done", result_type="success")


@pytest.mark.proves("AMSES-04")
async def test_abort_ends_the_work_and_leaves_the_session_usable(sdk: Sdk) -> None:
    async with talking(sdk, [bash("sleep 60"), {"text": "Back."}]) as talk:
        await talk.session.send("work")
        await talk.heard.until("tool.execution_start")
        await talk.session.abort()
        await talk.heard.until("session.idle")
        assert talk.heard.of("abort")[0].reason.value == "user_initiated"
        assert await talk.say("again") == "Back."
        assert any("interrupted" in result for result in talk.tool_results())


async def test_a_display_prompt_is_what_people_see(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("the real words", display_prompt="short")
        assert talk.heard.of("user.message")[0].content == "short"
        assert "the real words" in talk.prompt()


async def test_request_headers_of_a_prompt_reach_the_model_service(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT, TEXT]) as talk:
        await talk.say("hi", request_headers={"x-trace": "abc"})
        await talk.say("again")
        assert talk.server.requests[0].headers["x-trace"] == "abc"
        assert "x-trace" not in talk.server.requests[1].headers


async def test_the_agent_mode_of_a_prompt_is_the_sessions_mode(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("plan it", agent_mode="plan")
        changed = talk.heard.of("session.mode_changed")[0]
        assert (changed.previous_mode.value, changed.new_mode.value) == ("interactive", "plan")
        assert (await talk.session.rpc.mode.get()).value == "plan"
        assert "<plan_mode>" in talk.system()


async def test_a_blob_image_reaches_the_model(sdk: Sdk) -> None:
    image = {"type": "blob", "data": "aGk=", "mimeType": "image/png", "displayName": "a.png"}
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("look", attachments=[image])
        parts = talk.shown()[-1]["content"]
        assert any(part.get("type") == "image_url" for part in parts)


async def test_an_attached_file_is_named_to_the_model(sdk: Sdk) -> None:
    (sdk.cwd / "notes.txt").write_text("one\ntwo\nthree\n")
    (sdk.cwd / "src").mkdir()
    (sdk.cwd / "src" / "a.py").write_text("")
    attachments = [
        {"type": "file", "path": str(sdk.cwd / "notes.txt"), "displayName": "notes.txt"},
        {"type": "directory", "path": str(sdk.cwd / "src"), "displayName": "src"},
    ]
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("look", attachments=attachments)
        assert "<tagged_files>" in talk.prompt()
        assert "notes.txt (4 lines)" in talk.prompt()
        assert "src (1 items)" in talk.prompt()


async def test_a_model_error_is_told_to_the_caller(sdk: Sdk) -> None:
    async with talking(sdk, [{"error": {"status": 400, "message": "no such thing"}}]) as talk:
        with pytest.raises(Exception, match="no such thing"):
            await talk.say("hi")
        assert talk.heard.of("session.error")[0].status_code == 400


async def test_a_rate_limit_is_retried_and_then_an_error(sdk: Sdk) -> None:
    error = {"error": {"status": 429, "message": "slow down"}}
    async with talking(sdk, [error] * 7) as talk:
        with pytest.raises(Exception, match="slow down"):
            await talk.say("hi")
        assert talk.heard.of("session.error")[0].error_type == "rate_limit"
        assert talk.server.usage.requests == 6


@pytest.mark.proves("AMSES-05", "AMSES-08", "VSC-19")
async def test_a_session_is_resumed_by_another_process(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("remember this")
        await talk.session.rpc.plan.update(rpc.PlanUpdateRequest(content="# The plan\n"))
        session_id = talk.session.session_id
    async with serving([{"text": "Yes."}]) as server:
        sdk.use(server)
        async with sdk.client() as client:
            heard = Heard()
            session = await client.resume_session(
                session_id, on_permission_request=PermissionHandler.approve_all, on_event=heard
            )
            answer = await session.send_and_wait("do you?")
            assert answer is not None
            assert answer.data.content == "Yes."
            assert heard.types[0] == "session.resume"
            assert (await session.rpc.plan.read()).content == "# The plan\n"
            assert heard.of("session.resume")[0].event_count > 5
            assert "remember this" in str(server.requests[0].json["messages"])


async def test_resuming_what_does_not_exist_says_so(sdk: Sdk) -> None:
    async with sdk.client() as client:
        with pytest.raises(Exception, match="Session not found"):
            await client.resume_session("00000000-0000-4000-8000-000000000000")


@pytest.mark.proves("AMSES-06")
async def test_sessions_are_listed_with_their_first_prompt(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("<system_reminder>x</system_reminder>fix the parser")
        (listed,) = await talk.client.list_sessions()
        assert listed.session_id == talk.session.session_id
        assert listed.summary == "fix the parser"
        assert listed.context is not None
        assert listed.context.working_directory == str(sdk.cwd)
        elsewhere = SessionListFilter(working_directory="/nowhere")
        assert await talk.client.list_sessions(elsewhere) == []
        found = await talk.client.get_session_metadata(talk.session.session_id)
        assert found == listed
        assert await talk.client.get_last_session_id() == talk.session.session_id


async def test_metadata_of_an_unknown_session_is_none(sdk: Sdk) -> None:
    async with sdk.client() as client:
        assert await client.get_session_metadata("nope") is None
        assert await client.get_last_session_id() is None
        assert await client.get_foreground_session_id() is None


@pytest.mark.proves("AMSES-07")
async def test_clients_hear_of_sessions_that_come_change_and_go(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        seen: list[tuple[str, str]] = []
        came = asyncio.Event()

        def on_lifecycle(event: Any) -> None:
            seen.append((event.type, event.session_id))
            came.set()

        talk.client.on_lifecycle(on_lifecycle)
        await talk.say("hi")
        async with asyncio.timeout(60):
            await came.wait()
        other = await talk.client.create_session()
        await other.disconnect()
        await talk.client.delete_session(other.session_id)
        await talk.client.ping("x")
    mine = talk.session.session_id
    assert seen[0] == ("session.updated", mine)
    assert [entry for entry in seen if entry[0] != "session.updated"] == [
        ("session.created", other.session_id),
        ("session.deleted", other.session_id),
    ]


async def test_a_deleted_session_is_gone(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("hi")
        await talk.client.delete_session(talk.session.session_id)
        assert await talk.client.list_sessions() == []
        with pytest.raises(Exception, match="Session not found"):
            await talk.client.resume_session(talk.session.session_id)


async def test_a_call_to_a_closed_session_says_that_it_is_not_there(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.session.rpc.shutdown(_shutdown())
        with pytest.raises(Exception, match="Session not found"):
            await talk.session.send("hi")


def _shutdown() -> Any:
    from copilot.generated.rpc import ShutdownRequest

    return ShutdownRequest()


async def test_a_fork_has_the_history_up_to_an_event(sdk: Sdk) -> None:
    from copilot.generated.rpc import SessionsForkRequest

    async with talking(sdk, [TEXT, TEXT, {"text": "Forked."}]) as talk:
        await talk.say("first")
        await talk.say("second")
        events = await talk.session.get_events()
        second = [event for event in events if event.type.value == "user.message"][1]
        forked = await talk.client.rpc.sessions.fork(
            SessionsForkRequest(
                session_id=talk.session.session_id, to_event_id=str(second.id), name="branch"
            )
        )
        assert forked.session_id != talk.session.session_id
        branch = await talk.client.resume_session(
            forked.session_id, on_permission_request=PermissionHandler.approve_all
        )
        await branch.send_and_wait("third")
        said = str(talk.shown())
        assert "first" in said
        assert "second" not in said


async def test_history_can_be_cut_back(sdk: Sdk) -> None:
    from copilot.generated.rpc import HistoryTruncateRequest

    async with talking(sdk, [TEXT, TEXT, TEXT]) as talk:
        await talk.say("first")
        await talk.say("second")
        events = await talk.session.get_events()
        at = next(i for i, e in enumerate(events) if getattr(e.data, "content", "") == "second")
        result = await talk.session.rpc.history.truncate(
            HistoryTruncateRequest(event_id=str(events[at].id))
        )
        assert result.events_removed == len(events) - at
        await talk.say("third")
        said = str(talk.shown())
        assert "first" in said
        assert "second" not in said


async def test_the_history_can_be_compacted_on_request(sdk: Sdk) -> None:
    from copilot.generated.rpc import SessionHistoryCompactRequest

    async with talking(sdk, [TEXT, TEXT, {"text": "SUMMARY"}, TEXT]) as talk:
        await talk.say("first wish")
        await talk.say("second wish")
        request = SessionHistoryCompactRequest(custom_instructions="mind the wishes")
        result = await talk.session.rpc.history.compact(request)
        assert result.success
        assert result.messages_removed == 3
        await talk.say("third")
        _, summary, _ = talk.shown()
        assert "SUMMARY" in summary["content"]
        assert "second wish" in summary["content"]
        assert talk.heard.types.count("session.compaction_complete") == 1


async def test_log_lines_become_events(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.session.log("note")
        await talk.session.log("careful", level="warning")
        await talk.session.log("passing", ephemeral=True)
        await talk.client.ping("x")
        infos = [event for event in talk.heard.events if event.type.value == "session.info"]
        assert [(event.data.message, bool(event.ephemeral)) for event in infos] == [
            ("note", False),
            ("passing", True),
        ]
        assert talk.heard.of("session.warning")[0].message == "careful"


async def test_an_idle_session_is_closed_after_its_time(sdk: Sdk) -> None:
    options = {"session_idle_timeout_seconds": 1}
    async with talking(sdk, [TEXT], client=options) as talk:
        await talk.say("hi")
        await talk.heard.until("session.shutdown")
        talk.client._sessions.clear()


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
async def test_both_transports_serve_a_whole_turn(sdk: Sdk, transport: str) -> None:
    connection: Any = RuntimeConnection.for_stdio(path=TRIMTAB)
    if transport == "tcp":
        connection = RuntimeConnection.for_tcp(path=TRIMTAB)
    (sdk.cwd / "a.txt").write_text("content\n")
    async with talking(sdk, [use("view", path="a.txt"), TEXT], connection=connection) as talk:
        assert await talk.say("read a.txt") == "Hello."
        assert talk.tool_results() == ["1. content\n2. "] or "content" in talk.tool_results()[0]


AGENT = {"agentDisplayName": "Explore", "agentDescription": "Looks around"}
HOST_EVENTS: list[tuple[str, dict[str, Any]]] = [
    (
        "permission.requested",
        {"requestId": "1", "permissionRequest": {"kind": "read", "path": "a", "intention": "x"}},
    ),
    ("user_input.requested", {"requestId": "2", "question": "Which?"}),
    ("session.title_changed", {"title": "A title"}),
    ("subagent.started", {"toolCallId": "c", "agentName": "explore", **AGENT}),
    ("subagent.completed", {"toolCallId": "c", "agentName": "explore", "agentDisplayName": "E"}),
    (
        "subagent.failed",
        {"toolCallId": "d", "agentName": "task", "agentDisplayName": "T", "error": "gave up"},
    ),
    ("hook.start", {"hookInvocationId": "h", "hookType": "preToolUse", "input": {}}),
    ("hook.end", {"hookInvocationId": "h", "hookType": "preToolUse", "success": True}),
]


async def test_a_host_is_given_every_kind_of_event_it_handles(sdk: Sdk) -> None:
    """Those a run makes come live; those of a log another program wrote come with its history."""
    replies = [{"tools": [{"name": "glob", "arguments": {"pattern": "*"}}]}, TEXT]
    async with talking(sdk, replies, streaming=True) as talk:
        await talk.say("look around")
        live = set(talk.heard.types)
        assert {"assistant.message_delta", "tool.execution_start"} <= live
        assert "tool.execution_complete" in live
        session_id = talk.session.session_id
        await talk.session.disconnect()
        (log,) = sdk.home.glob(f"**/{session_id}/events.jsonl")
        with log.open("a") as file:
            for wire_name, data in HOST_EVENTS:
                event = {"type": wire_name, "data": data, "id": str(uuid4()), "parentId": None}
                file.write(json.dumps({**event, "timestamp": "2026-01-01T00:00:00.000Z"}) + "\n")
        again = await talk.client.resume_session(
            session_id, on_permission_request=PermissionHandler.approve_all
        )
        stored = {event.type.value for event in await again.get_events()}
    assert {wire_name for wire_name, _ in HOST_EVENTS} <= stored


async def test_a_client_can_see_what_fills_the_window(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT, TEXT]) as talk:
        before = await talk.session.rpc.metadata.context_info(rpc.MetadataContextInfoRequest(0, 0))
        assert before.context_info is None
        await talk.say("short")
        await talk.say("long " * 500)
        info = (
            await talk.session.rpc.metadata.context_info(rpc.MetadataContextInfoRequest(0, 0))
        ).context_info
        heavy = await talk.session.rpc.metadata.get_context_heaviest_messages(
            rpc.MetadataContextHeaviestMessagesRequest(limit=1)
        )
    parts = info.system_tokens + info.tool_definitions_tokens + info.conversation_tokens
    assert info.total_tokens == parts
    assert info.compaction_threshold == int(info.limit * 0.8)
    (heaviest,) = heavy.messages
    assert heaviest.role == "user"
    assert heaviest.tokens > 400


async def test_commands_of_ours_are_listed_and_answered(sdk: Sdk) -> None:
    async with talking(sdk, [TEXT]) as talk:
        await talk.say("hi")
        listed = await talk.session.rpc.commands.list()
        assert {"context", "limits", "compact"} <= {one.name for one in listed.commands}
        answer = await talk.session.rpc.commands.invoke(rpc.CommandsInvokeRequest(name="/Context"))
        assert answer.text.startswith("scripted: ")
        with pytest.raises(Exception, match="Unknown command"):
            await talk.session.rpc.commands.invoke(rpc.CommandsInvokeRequest(name="dance"))
        busy = {one.name: one.allow_during_agent_execution for one in listed.commands}
        assert (busy["ask"], busy["compact"], busy["review"]) == (True, False, False)
        review = rpc.CommandsInvokeRequest(name="review", input="the parser")
        prompt = await talk.session.rpc.commands.invoke(review)
        assert prompt.display_prompt == "/review the parser"
        assert prompt.prompt.endswith("The person adds: the parser")
        counted = await talk.session.rpc.metadata.recompute_context_tokens(
            rpc.MetadataRecomputeContextTokensRequest(model_id="gpt-4.1")
        )
        assert counted.total_tokens == counted.messages_token_count + counted.system_token_count
        assert counted.system_token_count > 300


@pytest.mark.proves("AMSES-12")
async def test_all_text_is_there_before_the_session_is_idle(sdk: Sdk) -> None:
    text = "word " * 400
    async with talking(sdk, [{"text": text, "chunk": 3}], streaming=True) as talk:
        await talk.say("hi")
        kinds = talk.heard.types
        pieces = [one.delta_content for one in talk.heard.of("assistant.message_delta")]
    assert "".join(pieces) == text
    last = len(kinds) - 1 - kinds[::-1].index("assistant.message_delta")
    assert last < kinds.index("assistant.message") < kinds.index("session.idle")


@pytest.mark.proves("AMSES-09")
async def test_what_goes_wrong_is_told_in_words_and_logged(sdk: Sdk) -> None:
    refused = {"error": {"status": 400, "message": "no such parameter: banana"}}
    async with talking(sdk, [refused, TEXT]) as talk:
        with pytest.raises(Exception, match="no such parameter: banana"):
            await talk.say("hi")
        (error,) = talk.heard.of("session.error")
        assert "banana" in error.message
        assert await talk.say("again") == "Hello."
        stored = [event.type.value for event in await talk.session.get_events()]
    assert stored.count("session.error") == 1


async def test_calls_that_repeat_for_ever_end_the_turn_and_the_session_goes_on(sdk: Sdk) -> None:
    repeated = {"tools": [{"name": "view", "arguments": {"path": "."}}], "repeat": 25}
    async with talking(sdk, [repeated, TEXT]) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        assert talk.heard.types.count("tool.execution_start") == 25
        warnings = [data.warning_type for data in talk.heard.of("session.warning")]
        assert warnings == ["stall_nudge", "stall_change", "no_progress"]
        assert await talk.say("go on") == "Hello."
