"""Calls of the official SDK about what this runtime has little or nothing of."""

import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from copilot import ModelCapabilitiesOverride, ModelSupportsOverride, rpc
from copilot.client import RuntimeConnection
from copilot.session import PermissionHandler
from copilot.session_events import SessionContextChangedData, SessionLimitsConfig

from clikit import TRIMTAB
from sdkkit import Sdk, bash, talking, use

DONE = {"text": "Done."}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_what_is_not_there_is_empty_and_not_an_error(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        about = talk.session.rpc
        assert (await about.completions.get_trigger_characters()).trigger_characters == []
        asked = rpc.CompletionsRequestRequest(text="Use @", offset=5)
        assert (await about.completions.request(asked)).items == []
        assert (await about.visibility.get()).synced is False
        wanted = rpc.VisibilitySetRequest(status=rpc.SessionVisibilityStatus.REPO)
        assert (await about.visibility.set(wanted)).synced is False
        assert await about.telemetry.get_engagement_id() is not None
        features = rpc.TelemetrySetFeatureOverridesRequest(features={"a": "b"})
        await about.telemetry.set_feature_overrides(features)
        await about.lsp.initialize(rpc.LspInitializeRequest(working_directory=str(sdk.cwd)))


async def test_a_session_without_agents_has_no_tasks(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE]) as talk:
        tasks = talk.session.rpc.tasks
        assert (await tasks.list()).tasks == []
        missing = "missing"
        promote = rpc.TasksPromoteToBackgroundRequest(id=missing)
        assert (await tasks.promote_to_background(promote)).promoted is False
        assert (await tasks.cancel(rpc.TasksCancelRequest(id=missing))).cancelled is False
        assert (await tasks.remove(rpc.TasksRemoveRequest(id=missing))).removed is False
        assert await tasks.refresh() is not None
        assert await tasks.wait_for_pending() is not None
        progress = rpc.TasksGetProgressRequest(id=missing)
        assert (await tasks.get_progress(progress)).progress is None
        assert (await tasks.get_current_promotable()).task is None
        assert (await tasks.promote_current_to_background()).task is None
        sent = await tasks.send_message(rpc.TasksSendMessageRequest(id=missing, message="hi"))
        assert (sent.sent, bool(sent.error)) == (False, True)
        agent = rpc.TasksStartAgentRequest(agent_type="explore", prompt="hi", name="x")
        started = await tasks.start_agent(agent)
        await tasks.wait_for_pending()
        (task,) = (await tasks.list()).tasks
        assert (task.id, task.status) == (started.agent_id, rpc.TaskStatus.IDLE)
        assert task.result == "Done."


async def test_an_agent_at_work_is_listed_and_can_be_ended(sdk: Sdk) -> None:
    start = use("task", description="a part", prompt="Look.", agent_type="explore")
    async with talking(sdk, [start, {"text": "x", "delay": 60}, DONE]) as talk:
        await talk.session.send("go")
        await talk.heard.until("subagent.configured")
        (task,) = (await talk.session.rpc.tasks.list()).tasks
        assert (task.agent_type, task.description, task.prompt) == ("explore", "a part", "Look.")
        ended = await talk.session.rpc.tasks.cancel(rpc.TasksCancelRequest(id=task.id))
        assert ended.cancelled
        await talk.heard.until("session.idle")
        assert talk.tool_results(-1) == ["The user cancelled the agent explore."]
        (completed,) = talk.heard.of("subagent.completed")
        assert completed.cancelled


async def test_clients_choose_the_models_of_sub_agents(sdk: Sdk) -> None:
    start = use("task", description="a part", prompt="Look.", agent_type="explore")
    async with talking(sdk, [start, DONE, DONE] * 2, listed=["small"]) as talk:
        tools = talk.session.rpc.tools
        entry = rpc.SubagentSettingsEntry(model="small", effort_level="low")
        wanted = rpc.SubagentSettingsConfig(agents={"explore": entry})
        update = rpc.UpdateSubagentSettingsRequest
        await tools.update_subagent_settings(update(subagents=wanted))
        await talk.say("one")
        await tools.update_subagent_settings(update(subagents=None))
        await talk.say("two")
        bodies = [request.json for request in talk.server.requests]
    assert [body.get("reasoning_effort") for body in bodies] == [None, "low", *[None] * 4]
    models = [body["model"] for body in bodies]
    assert models == ["scripted", "small", "scripted", "scripted", "scripted", "scripted"]


async def test_the_window_is_told_by_its_parts(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        metadata = talk.session.rpc.metadata
        assert (await metadata.get_context_attribution()).context_attribution is None
        await talk.say("hi")
        found = (await metadata.get_context_attribution()).context_attribution
        assert found is not None
        assert found.total_tokens == sum(entry.tokens for entry in found.entries) > 0
        asked = rpc.MetadataContextInfoRequest(
            prompt_token_limit=128_000, output_token_limit=4096, selected_model="other"
        )
        info = (await metadata.context_info(asked)).context_info
        assert info is not None
        assert (info.model_name, info.prompt_token_limit) == ("other", 128_000)
        summary = await talk.session.rpc.history.summarize_for_handoff()
        assert "hi" in summary.summary


async def test_the_model_sums_up_for_a_handoff_beside_the_conversation(sdk: Sdk) -> None:
    replies = [DONE, {"text": "They greeted."}, DONE]
    async with talking(sdk, replies) as talk:
        await talk.say("greet them")
        told = (await talk.session.rpc.history.summarize_for_handoff()).summary
        assert told.startswith("They greeted.")
        assert "greet them" in told
        assert "continues the work" in talk.prompt()
        await talk.say("go on")
        assert "They greeted." not in str(talk.shown())


async def test_a_client_tells_of_another_branch(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        for folder in ("/", str(sdk.cwd)):
            context = rpc.SessionWorkingDirectoryContext(cwd=folder, branch=f"b{len(folder)}")
            change = rpc.MetadataRecordContextChangeRequest(context=context)
            await talk.session.rpc.metadata.record_context_change(change)
        await talk.heard.until("session.context_changed")
        changes = [
            one for one in talk.heard.events if isinstance(one.data, SessionContextChangedData)
        ]
        assert [one.data.branch for one in changes] == [f"b{len(str(sdk.cwd))}"]


async def test_secrets_a_client_names_are_hidden_from_then_on(sdk: Sdk) -> None:
    secret = f"rpc-secret-{uuid.uuid4().hex}"
    script = [bash(f"echo {secret}"), DONE]
    async with talking(sdk, script) as talk:
        values = rpc.SecretsAddFilterValuesRequest(values=[secret])
        assert (await talk.client.rpc.secrets.add_filter_values(values)).ok
        await talk.say("go")
        assert secret not in str(talk.heard.of("tool.execution_complete"))
    assert all(secret not in log.read_text() for log in sdk.logs())


async def test_old_sessions_are_pruned_only_when_asked_to(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        await talk.say("hi")
        session_id = talk.session.session_id
        await talk.session.disconnect()
        sessions = talk.client.rpc.sessions
        await sessions.close(rpc.SessionsCloseRequest(session_id=session_id))
        release = rpc.SessionsReleaseLockRequest(session_id=session_id)
        assert await sessions.release_lock(release) is not None
        prune = rpc.SessionsPruneOldRequest
        young = await sessions.prune_old(prune(older_than_days=1, dry_run=True))
        assert young.candidates == []
        trial = await sessions.prune_old(prune(older_than_days=0, dry_run=True))
        assert (trial.candidates, trial.deleted, trial.dry_run) == ([session_id], [], True)
        done = await sessions.prune_old(prune(older_than_days=0))
        assert done.deleted == [session_id]
        assert done.freed_bytes > 0
        assert (await sessions.list(rpc.SessionsListRequest())).sessions == []


async def test_sessions_are_found_and_described(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        await talk.say("hi")
        sessions, session_id = talk.client.rpc.sessions, talk.session.session_id
        task = rpc.SessionsFindByTaskIDRequest(task_id="missing")
        assert (await sessions.find_by_task_id(task)).session_id is None
        now = "2026-01-01T00:00:00+00:00"
        known = rpc.LocalSessionMetadataValue(
            is_remote=False, modified_time=now, session_id=session_id, start_time=now, name="x"
        )
        enriched = await sessions.enrich_metadata(
            rpc.SessionsEnrichMetadataRequest(sessions=[known])
        )
        assert enriched.sessions[0].context.cwd == str(sdk.cwd)
        with pytest.raises(Exception, match="remote"):
            await sessions.connect(rpc.ConnectRemoteSessionParams(session_id="remote-1"))
        hooks = rpc.SessionsLoadDeferredRepoHooksRequest(session_id=session_id)
        assert (await sessions.load_deferred_repo_hooks(hooks)).hook_count == 0
        with pytest.raises(Exception, match="not enabled"):
            await talk.client.rpc.agent_registry.spawn(
                rpc.AgentRegistrySpawnRequest(cwd=str(sdk.cwd))
            )


async def test_a_handler_is_registered_until_it_is_not(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        ui = talk.session.rpc.ui
        handle = (await ui.register_direct_auto_mode_switch_handler()).handle
        request = rpc.UIUnregisterDirectAutoModeSwitchHandlerRequest(handle=handle)
        found: list[Any] = [
            (await ui.unregister_direct_auto_mode_switch_handler(request)).unregistered
            for _ in range(2)
        ]
        assert found == [True, False]


async def test_the_model_is_told_what_is_left(sdk: Sdk) -> None:
    limits = {"max_ai_credits": 30}
    async with talking(
        sdk, [DONE], model="gpt-4.1", listed=["gpt-4.1"], session_limits=limits
    ) as talk:
        await talk.say("hi")
        said = [one["content"] for one in talk.shown() if one["role"] == "user"]
    assert "Remaining session limits: 30 AI credits." in said[1]
    assert "Be frugal" in said[1]


ANSWERS: list[tuple[dict[str, Any], float | None, int]] = [
    ({"action": "add", "additionalAiCredits": 50}, 50.0001, 2),
    ({"action": "set", "maxAiCredits": 60}, 60, 2),
    ({"action": "unset"}, None, 2),
    ({"action": "cancel"}, 0.0001, 1),
    ({"action": "add", "additionalAiCredits": 0}, 0.0001, 1),
]


@pytest.mark.parametrize(("answer", "limit", "calls"), ANSWERS)
async def test_a_used_up_limit_is_raised_by_the_client_that_wants_to_be_asked(
    sdk: Sdk, answer: dict[str, Any], limit: float | None, calls: int
) -> None:
    async with talking(sdk, [DONE, DONE], model="gpt-4.1", listed=["gpt-4.1"]) as talk:
        session = talk.session.rpc
        name = "session_limits_exhausted.requested"
        await session.event_log.register_interest(rpc.RegisterEventInterestParams(event_type=name))
        await talk.say("hi")
        limits = SessionLimitsConfig(max_ai_credits=0.0001)
        await session.options.update(rpc.SessionUpdateOptionsParams(session_limits=limits))
        await talk.session.send("again")
        await talk.heard.until(name)
        (asked,) = talk.heard.of(name)
        assert asked.max_ai_credits == pytest.approx(0.0001)
        assert asked.used_ai_credits >= 0
        request = rpc.UIHandlePendingSessionLimitsExhaustedRequest(
            request_id=asked.request_id,
            response=rpc.UISessionLimitsExhaustedResponse.from_dict(answer),
        )
        handled = [
            (await session.ui.handle_pending_session_limits_exhausted(request)).success
            for _ in range(2)
        ]
        assert handled == [True, False]
        await talk.heard.until("session.idle", count=2)
        assert len(talk.server.requests) == calls
        (completed,) = talk.heard.of("session_limits_exhausted.completed")
        assert completed.response.action.value == answer["action"]
        changes = [one.session_limits for one in talk.heard.of("session.session_limits_changed")]
        last = changes[-1].max_ai_credits if changes[-1] else None
        assert last == (None if limit is None else pytest.approx(limit))


async def test_a_used_up_limit_ends_the_turn_when_nobody_wants_to_be_asked(sdk: Sdk) -> None:
    limits = {"max_ai_credits": 0.0001}
    async with talking(
        sdk, [DONE], model="gpt-4.1", listed=["gpt-4.1"], session_limits=limits
    ) as talk:
        await talk.session.send("hi")
        await talk.heard.until("session.idle")
        assert "session_limits_exhausted.requested" not in talk.heard.types
        assert "budget" in [one.warning_type for one in talk.heard.of("session.warning")]
        assert not talk.server.requests


async def test_built_in_agents_can_be_left_out(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], excluded_builtin_agents=["explore"]) as talk:
        await talk.say("hi")
        (task,) = [
            one["function"]
            for one in talk.server.requests[0].json["tools"]
            if one["function"]["name"] == "task"
        ]
    kinds = task["parameters"]["properties"]["agent_type"]["enum"]
    assert "explore" not in kinds
    assert "task" in kinds
    assert "- explore:" not in task["description"]


async def test_a_model_that_sees_no_images_gets_none_until_it_does(sdk: Sdk) -> None:
    (sdk.cwd / "a.png").write_bytes(PNG)
    script = [use("view", path="a.png"), DONE, DONE]
    blind = ModelCapabilitiesOverride(supports=ModelSupportsOverride(vision=False))
    seeing = ModelCapabilitiesOverride(supports=ModelSupportsOverride(vision=True))
    async with talking(sdk, script, model_capabilities=blind) as talk:
        await talk.say("look")
        assert "image_url" not in talk.server.requests[1].body.decode()
        await talk.session.set_model("scripted", model_capabilities=seeing)
        await talk.say("again")
        assert "image_url" in talk.server.requests[2].body.decode()


async def test_a_hook_hears_of_a_tool_that_is_not_there(sdk: Sdk) -> None:
    failures: list[Any] = []

    async def failed(data: Any, _: Any) -> Any:
        failures.append(data)
        return {"additionalContext": "GUIDANCE"}

    hooks = {"on_post_tool_use_failure": failed}
    script = [use("view", path="missing.txt"), DONE]
    async with talking(sdk, script, hooks=hooks, available_tools=["glob"]) as talk:
        await talk.say("go")
        assert "GUIDANCE" in str(talk.shown())
    (failure,) = failures
    assert failure["toolName"] == "view"
    assert "does not exist" in failure["error"]


async def test_what_there_is_not_is_said_so(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        mcp = talk.session.rpc.mcp
        with pytest.raises(Exception, match="Unknown MCP server 'missing'"):
            await mcp.list_tools(rpc.MCPListToolsRequest(server_name="missing"))
        with pytest.raises(Exception, match="Extensions not available"):
            await talk.session.rpc.extensions.enable(rpc.ExtensionsEnableRequest(id="missing"))
        mode = rpc.MCPSetEnvValueModeDetails.INDIRECT
        kept = await mcp.set_env_value_mode(rpc.MCPSetEnvValueModeParams(mode=mode))
        assert kept.mode == mode
        context = rpc.MCPAppsSetHostContextDetails(locale="en-US")
        await mcp.apps.set_host_context(rpc.MCPAppsSetHostContextRequest(context=context))
        assert (await mcp.apps.get_host_context()).context.locale == "en-US"


@pytest.mark.parametrize("session_id", ["e2e-cold-resume-1", "My_session.2"])
async def test_a_session_has_the_id_its_client_chose(sdk: Sdk, session_id: str) -> None:
    async with talking(sdk, [DONE], session_id=session_id) as talk:
        await talk.say("hi")
        assert talk.session.session_id == session_id
    assert [log.parent.name for log in sdk.logs()] == [session_id]


async def test_older_clients_name_the_agents_mode_as_mode(sdk: Sdk) -> None:
    async with talking(sdk, [bash("touch made"), DONE]) as talk:
        await talk.session.send_and_wait("plan it", mode="plan")
        assert "Plan mode" in talk.tool_results(-1)[0]
    assert not (sdk.cwd / "made").exists()


@pytest.mark.parametrize("kind", ["openai", "azure", "anthropic"])
async def test_a_session_of_a_service_is_there_before_its_model_is_chosen(
    sdk: Sdk, kind: str
) -> None:
    provider: Any = {"type": kind, "base_url": "http://127.0.0.1:9/v1", "api_key": "fake"}
    async with talking(sdk, [DONE], provider=provider) as talk:
        assert talk.session.session_id
        assert (await talk.session.rpc.model.get_current()).model_id


def report(kind: str, **fields: Any) -> rpc.TaskClientUpdate:
    return rpc.TaskClientUpdate.from_dict({"kind": kind, **fields})


def registration(key: str, **fields: Any) -> rpc.TasksRegisterRequest:
    given = {"clientTaskId": key, "description": "Build it", "type": "client", "cancellable": True}
    return rpc.TasksRegisterRequest.from_dict(given | fields)


async def test_a_client_registers_work_of_its_own_and_reports_on_it(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        tasks = talk.session.rpc.tasks
        first = await tasks.register(registration("build", displayName="Build"))
        again = await tasks.register(registration("build", expectedSequence=0))
        assert [first.created, again.created, again.reclaimed] == [True, False, False]
        assert first.task.id == again.task.id
        with pytest.raises(Exception, match="TASK_CONFLICT"):
            await tasks.register(registration("build", expectedSequence=4))
        with pytest.raises(Exception, match="empty"):
            await tasks.register(registration(" "))
        (listed,) = (await tasks.list()).tasks
        assert (listed.id, listed.status.value, listed.display_name) == (
            first.task.id,
            "running",
            "Build",
        )
        progress = report("progress", message="half", percentage=50, phase="link", status="idle")
        update = rpc.TasksUpdateRequest(first.task.id, 1, progress)
        results = [await tasks.update(update) for _ in range(2)]
        assert [(one.applied, one.duplicate) for one in results] == [(True, False), (False, True)]
        asked = rpc.TasksGetProgressRequest(id=first.task.id)
        shown = (await tasks.get_progress(asked)).progress
        assert (shown.last_message, shown.percentage, shown.phase) == ("half", 50, "link")
        assert not (await tasks.remove(rpc.TasksRemoveRequest(id=first.task.id))).removed
        done = report("completed", result={"files": 2})
        ended = await tasks.update(rpc.TasksUpdateRequest(first.task.id, 2, done))
        assert (ended.task.status.value, ended.task.result) == ("completed", {"files": 2})
        late = report("progress", message="late")
        with pytest.raises(Exception, match="TASK_CONFLICT"):
            await tasks.update(rpc.TasksUpdateRequest(first.task.id, 3, late))
        with pytest.raises(Exception, match="TASK_NOT_FOUND"):
            await tasks.update(rpc.TasksUpdateRequest("none", 1, late))
        assert (await tasks.remove(rpc.TasksRemoveRequest(id=first.task.id))).removed
        assert (await tasks.list()).tasks == []
        assert "session.background_tasks_changed" in talk.heard.types


@pytest.mark.parametrize("confirms", [True, False])
async def test_a_client_is_asked_to_end_its_own_work(sdk: Sdk, confirms: bool) -> None:
    asked: list[Any] = []

    class Handler:
        async def cancel(self, params: Any) -> rpc.ClientTaskCancelResult:
            asked.append(params)
            return rpc.ClientTaskCancelResult(cancelled=confirms)

    async with talking(sdk, [DONE]) as talk:
        talk.session._client_session_apis.tasks = Handler()
        tasks = talk.session.rpc.tasks
        task = (await tasks.register(registration("build"))).task
        fixed = (await tasks.register(registration("fixed", cancellable=False))).task
        cancel = [
            (await tasks.cancel(rpc.TasksCancelRequest(id=one.id))).cancelled
            for one in (task, fixed)
        ]
        assert cancel == [confirms, False]
        states = {one.id: one.status.value for one in (await tasks.list()).tasks}
    assert states == {task.id: "cancelled" if confirms else "running", fixed.id: "running"}
    (request,) = asked
    assert (request.client_task_id, request.reason.value) == ("build", "cancel_requested")


async def test_a_client_takes_its_work_up_again_after_a_new_connection(sdk: Sdk) -> None:
    """The number of the last update shows that it knows the work; others get work of their own."""
    shared: Any = RuntimeConnection.for_tcp(path=TRIMTAB, connection_token="secret")
    async with talking(sdk, [], connection=shared) as talk:
        uri = f"localhost:{talk.client.runtime_port}"

        @asynccontextmanager
        async def join() -> AsyncIterator[Any]:
            connection = RuntimeConnection.for_uri(uri, connection_token="secret")
            async with sdk.client(connection) as client:
                joined = await client.resume_session(
                    talk.session.session_id,
                    on_permission_request=PermissionHandler.approve_all,
                )
                yield joined.rpc.tasks

        async with join() as tasks:
            first = (await tasks.register(registration("build"))).task
            progress = report("progress", message="half")
            await tasks.update(rpc.TasksUpdateRequest(first.id, 1, progress))
        tasks = talk.session.rpc.tasks

        await talk.heard.until("session.background_tasks_changed", 3)  # the third: it has left
        (listed,) = (await tasks.list()).tasks
        assert listed.status.value == "orphaned"
        assert listed.owner.disconnected_at is not None
        with pytest.raises(Exception, match="TASK_NOT_OWNER"):
            await tasks.update(rpc.TasksUpdateRequest(first.id, 2, report("completed")))
        stranger = await tasks.register(registration("build"))
        assert (stranger.created, stranger.task.id != first.id) == (True, True)
        async with join() as tasks:
            back = await tasks.register(registration("build", expectedSequence=1))
            assert (back.created, back.reclaimed, back.task.id) == (False, True, first.id)
            assert back.task.status.value == "running"
            ended = await tasks.update(rpc.TasksUpdateRequest(first.id, 2, report("completed")))
            assert ended.task.status.value == "completed"
