"""What a client can choose about a session, and what it can ask the server."""

from typing import Any

import pytest
from copilot.generated import rpc
from copilot.session import PermissionHandler

from sdkkit import Sdk, bash, make_tool, serving, talking, use
from trimtab.testing import ModelServer, Script

DONE = {"text": "Done."}


async def test_appended_text_stands_after_ours(sdk: Sdk) -> None:
    message = {"mode": "append", "content": "Always rhyme."}
    async with talking(sdk, [DONE], system_message=message) as talk:
        await talk.say("hi")
        assert talk.system().endswith("Always rhyme.")
        assert "GitHub" in talk.system()


async def test_a_replacement_is_the_whole_system_message(sdk: Sdk) -> None:
    message = {"mode": "replace", "content": "You are a parrot."}
    async with talking(sdk, [DONE], system_message=message) as talk:
        await talk.say("hi")
        assert talk.system() == "You are a parrot."


SECTIONS: list[tuple[str, dict[str, Any], str, str]] = [
    ("remove", {"code_change_rules": {"action": "remove"}}, "", "<code_change_instructions>"),
    ("replace", {"tone": {"action": "replace", "content": "Be loud."}}, "Be loud.", "<tone_and"),
    ("append", {"guidelines": {"action": "append", "content": "Mind cats."}}, "Mind cats.", ""),
    ("prepend", {"safety": {"action": "prepend", "content": "First."}}, "First.", ""),
    ("preserve", {"identity": {"action": "preserve"}}, "You are Trimtab", ""),
    ("new", {"preamble": {"action": "replace", "content": "Before all."}}, "Before all.", ""),
    ("no place", {"environment_context": {"action": "remove"}}, "", "Current working directory:"),
]


@pytest.mark.proves("SYS-24")
@pytest.mark.parametrize(("_", "sections", "there", "gone"), SECTIONS, ids=[s[0] for s in SECTIONS])
async def test_sections_of_the_system_message_can_be_changed(
    sdk: Sdk, _: str, sections: Any, there: str, gone: str
) -> None:
    message = {"mode": "customize", "sections": sections, "content": "At the end."}
    async with talking(sdk, [DONE], system_message=message) as talk:
        await talk.say("hi")
        assert there in talk.system()
        assert not gone or gone not in talk.system()
        assert talk.system().endswith("At the end.")


async def test_a_section_can_be_changed_by_a_function(sdk: Sdk) -> None:
    given: list[str] = []

    def transform(text: str) -> str:
        given.append(text)
        return "<tone_and_style>Whisper.</tone_and_style>"

    message = {"mode": "customize", "sections": {"tone": {"action": transform}}}
    async with talking(sdk, [DONE], system_message=message) as talk:
        await talk.say("hi")
        assert "Whisper." in talk.system()
    assert "concise" in given[0]


async def test_a_section_that_does_not_exist_is_refused(sdk: Sdk) -> None:
    message = {"mode": "customize", "sections": {"nonsense": {"action": "remove"}}}
    async with sdk.client() as client:
        with pytest.raises(Exception, match="no section 'nonsense'"):
            await client.create_session(system_message=message)


FILTERS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("names", {"available_tools": ["view", "grep"]}, {"view", "grep"}),
    ("builtin name", {"available_tools": ["builtin:view"]}, {"view"}),
    ("custom all", {"available_tools": ["custom:*"]}, {"mine"}),
    ("custom name", {"available_tools": ["mine", "view"]}, {"mine", "view"}),
    ("none", {"available_tools": []}, set()),
    (
        "excluded wins",
        {"available_tools": ["view", "mine"], "excluded_tools": ["mine"]},
        {"view"},
    ),
    ("all but", {"available_tools": ["custom:*", "glob"], "excluded_tools": ["glob"]}, {"mine"}),
]


@pytest.mark.parametrize(("_", "filters", "left"), FILTERS, ids=[row[0] for row in FILTERS])
async def test_tool_lists_leave_exactly_those_tools(
    sdk: Sdk, _: str, filters: Any, left: set[str]
) -> None:
    async with talking(sdk, [DONE], tools=[make_tool("mine", "x")], **filters) as talk:
        await talk.say("hi")
        assert set(talk.tool_names()) == left


async def test_excluded_tools_are_not_offered(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], excluded_tools=["bash"]) as talk:
        await talk.say("hi")
        assert "bash" not in talk.tool_names()
        assert "view" in talk.tool_names()


async def test_a_session_can_bring_its_own_model_service(sdk: Sdk) -> None:
    async with ModelServer(Script.of([{"text": "From elsewhere."}])) as other:
        provider: Any = {
            "type": "openai",
            "base_url": other.base_url,
            "api_key": "other-key",
            "headers": {"x-team": "blue"},
        }
        async with talking(sdk, [DONE], provider=provider, model="scripted") as talk:
            assert await talk.say("hi") == "From elsewhere."
        assert other.requests[0].headers["authorization"] == "Bearer other-key"
        assert other.requests[0].headers["x-team"] == "blue"
    assert talk.server.usage.requests == 0


WIRES = [
    ("openai", "completions", "/chat/completions"),
    ("openai", "responses", "/responses"),
    ("anthropic", None, "/messages"),
]


@pytest.mark.parametrize(("kind", "wire", "path"), WIRES, ids=[row[2] for row in WIRES])
async def test_named_providers_serve_their_models_each_with_its_wire(
    sdk: Sdk, kind: str, wire: str | None, path: str
) -> None:
    async with ModelServer(Script.of([{"text": "Wired."}])) as other:
        named: dict[str, Any] = {"name": "side", "type": kind, "base_url": other.base_url}
        if wire:
            named["wire_api"] = wire
        model = {"id": "small", "provider": "side", "wire_model": "scripted"}
        options: Any = {"providers": [named], "models": [model]}
        async with talking(sdk, [DONE], model="side/small", **options) as talk:
            assert await talk.say("hi") == "Wired."
            current = await talk.session.rpc.model.get_current()
            assert current.model_id == "side/small"
        assert other.requests[0].path.endswith(path)
        assert other.requests[0].json["model"] == "scripted"


async def test_the_model_can_be_switched_to_another_provider(sdk: Sdk) -> None:
    async with ModelServer(Script.of([{"text": "Other."}])) as other:
        options: Any = {
            "providers": [{"name": "side", "type": "openai", "base_url": other.base_url}],
            "models": [{"id": "small", "provider": "side"}],
        }
        async with talking(sdk, [DONE], **options) as talk:
            assert await talk.say("hi") == "Done."
            await talk.session.set_model("side/small", reasoning_effort="high")
            assert await talk.say("again") == "Other."
            changes = talk.heard.of("session.model_change")
            assert changes[-1].new_model == "side/small"
            assert changes[-1].previous_model == "scripted"
        assert other.requests[0].json["reasoning_effort"] == "high"


async def test_a_provider_token_is_asked_for_with_every_request(sdk: Sdk) -> None:
    given: list[str] = []

    async def get_token(args: Any) -> str:
        given.append(f"token-{len(given)}")
        return given[-1]

    async with ModelServer(Script.of([DONE, DONE])) as other:
        provider: Any = {
            "type": "openai",
            "base_url": other.base_url,
            "bearer_token_provider": get_token,
        }
        async with talking(sdk, [], provider=provider, model="scripted") as talk:
            await talk.say("hi")
            await talk.say("again")
        sent = [request.headers["authorization"] for request in other.requests]
    assert sent == ["Bearer token-0", "Bearer token-1"]


async def test_a_model_that_names_no_provider_is_refused(sdk: Sdk) -> None:
    async with sdk.client() as client:
        with pytest.raises(Exception, match="not among the providers"):
            await client.create_session(models=[{"id": "m", "provider": "nowhere"}])


async def test_the_working_directory_is_the_sessions_own(sdk: Sdk) -> None:
    other = sdk.cwd / "sub"
    other.mkdir()
    (other / "here.txt").write_text("found me")
    replies = [use("view", path="here.txt"), DONE]
    async with talking(sdk, replies, working_directory=str(other)) as talk:
        await talk.say("read it")
        assert "found me" in talk.tool_results()[0]
        assert f"Current working directory: {other}" in talk.system()


async def test_a_working_directory_that_is_not_there_is_refused(sdk: Sdk) -> None:
    async with sdk.client() as client:
        with pytest.raises(Exception, match="Directory does not exist"):
            await client.create_session(working_directory=str(sdk.cwd / "nowhere"))


async def test_the_clients_name_is_in_the_user_agent(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], client_name="my-app") as talk:
        await talk.say("hi")
        assert "my-app" in talk.server.requests[0].headers["user-agent"]


async def test_reasoning_effort_is_passed_on(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE], reasoning_effort="high") as talk:
        await talk.say("hi")
        assert talk.server.requests[0].json["reasoning_effort"] == "high"
        await talk.session.rpc.model.set_reasoning_effort(
            rpc.ModelSetReasoningEffortRequest(reasoning_effort="low")
        )
        await talk.say("again")
        assert talk.server.requests[1].json["reasoning_effort"] == "low"


async def test_the_empty_mode_shows_neither_place_nor_system(sdk: Sdk) -> None:
    async with serving([DONE]) as server:
        sdk.use(server)
        async with sdk.client(mode="empty") as client:
            session = await client.create_session(
                available_tools=["view"], on_permission_request=PermissionHandler.approve_all
            )
            await session.send_and_wait("hi")
        body = server.requests[0].json
    system = body["messages"][0]["content"]
    assert "Current working directory:" not in system
    assert "Operating System:" not in system
    assert [tool["function"]["name"] for tool in body["tools"]] == ["view"]


async def test_custom_agents_are_listed_and_chosen(sdk: Sdk) -> None:
    agents: Any = [{"name": "tester", "display_name": "Tester", "prompt": "Test."}]
    async with talking(sdk, [DONE], custom_agents=agents) as talk:
        listed = await talk.session.rpc.agent.list()
        assert [(one.name, one.display_name) for one in listed.agents] == [("tester", "Tester")]
        assert (await talk.session.rpc.agent.get_current()).agent is None
        await talk.session.rpc.agent.select(rpc.AgentSelectRequest(name="tester"))
        current = await talk.session.rpc.agent.get_current()
        assert current.agent is not None
        assert current.agent.name == "tester"
        await talk.session.rpc.agent.deselect()
        assert (await talk.session.rpc.agent.get_current()).agent is None
        with pytest.raises(Exception, match="Custom agent 'nobody' not found"):
            await talk.session.rpc.agent.select(rpc.AgentSelectRequest(name="nobody"))


async def test_skills_of_the_clients_directories_are_listed(sdk: Sdk) -> None:
    folder = sdk.home / "skills" / "sums"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: sums\ndescription: Adds up\n---\nAdd.\n")
    async with talking(sdk, [DONE], skill_directories=[str(sdk.home / "skills")]) as talk:
        (skill,) = (await talk.session.rpc.skills.list()).skills
        assert (skill.name, skill.description, skill.enabled) == ("sums", "Adds up", True)


async def test_the_name_of_a_session(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        assert (await talk.session.rpc.name.get()).name is None
        await talk.say("fix the parser")
        assert (await talk.session.rpc.name.get()).name == "fix the parser"
        await talk.session.rpc.name.set(rpc.NameSetRequest(name="Parser work"))
        assert (await talk.session.rpc.name.get()).name == "Parser work"
        auto = await talk.session.rpc.name.set_auto(rpc.NameSetAutoRequest(summary="other"))
        assert auto.applied is False
        assert talk.heard.of("session.title_changed")[-1].title == "Parser work"
        with pytest.raises(Exception, match="empty"):
            await talk.session.rpc.name.set(rpc.NameSetRequest(name=" "))


@pytest.mark.proves("VSC-16")
async def test_the_plan_is_read_written_and_deleted(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        plan = talk.session.rpc.plan
        assert (await plan.read()).exists is False
        await plan.update(rpc.PlanUpdateRequest(content="# Plan"))
        assert (await plan.read()).content == "# Plan"
        await plan.delete()
        assert (await plan.read()).exists is False
        operations = [data.operation.value for data in talk.heard.of("session.plan_changed")]
        assert operations == ["create", "delete"]
        assert (await plan.read_sql_todos()).rows == []


async def test_files_are_kept_with_the_session(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        workspaces = talk.session.rpc.workspaces
        assert (await workspaces.list_files()).files == []
        await workspaces.create_file(rpc.WorkspacesCreateFileRequest(path="a/b.txt", content="x"))
        assert (await workspaces.list_files()).files == ["a/b.txt"]
        read = await workspaces.read_file(rpc.WorkspacesReadFileRequest(path="a/b.txt"))
        assert read.content == "x"
        with pytest.raises(Exception, match="workspace files directory"):
            await workspaces.read_file(rpc.WorkspacesReadFileRequest(path="../../../etc/passwd"))
        workspace = await workspaces.get_workspace()
        assert workspace.workspace is not None
        assert workspace.workspace.id == talk.session.session_id


async def test_the_log_is_read_in_pieces_and_waited_for(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        log = talk.session.rpc.event_log
        tail = await log.tail()
        await talk.say("hi")
        first = await log.read(rpc.EventLogReadRequest(max=3))
        assert len(first.events) == 3
        assert first.has_more is True
        rest = await log.read(rpc.EventLogReadRequest(cursor=first.cursor))
        history = await talk.session.get_events()
        read = [str(event.id) for event in (*first.events, *rest.events)]
        assert read == [str(event.id) for event in history]
        since = await log.read(rpc.EventLogReadRequest(cursor=tail.cursor))
        assert len(since.events) == len(history) - 1
        gone = await log.read(rpc.EventLogReadRequest(cursor="99999"))
        assert gone.cursor_status.value == "expired"
        interest = await log.register_interest(
            rpc.RegisterEventInterestParams(event_type="mcp.oauth_required")
        )
        released = await log.release_interest(rpc.ReleaseEventInterestParams(interest.handle))
        assert released.success is True


async def test_usage_is_counted(sdk: Sdk) -> None:
    async with talking(sdk, [use("create", path="a.txt", file_text="one\n"), DONE]) as talk:
        await talk.say("hi")
        metrics = await talk.session.rpc.usage.get_metrics()
        assert metrics.total_user_requests == 1
        assert metrics.code_changes.lines_added == 1
        (spent,) = metrics.model_metrics.values()
        assert spent.requests.count == 2
        assert metrics.last_call_input_tokens > 0


async def test_the_snapshot_says_where_and_how(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], client_name="app") as talk:
        snapshot = await talk.session.rpc.metadata.snapshot()
        assert snapshot.session_id == talk.session.session_id
        assert snapshot.working_directory == str(sdk.cwd)
        assert snapshot.current_mode.value == "interactive"
        assert snapshot.client_name == "app"
        assert (await talk.session.rpc.metadata.is_processing()).processing is False
        activity = await talk.session.rpc.metadata.activity()
        assert (activity.abortable, activity.has_active_work) == (False, False)


async def test_waiting_prompts_are_listed_and_taken_back(sdk: Sdk) -> None:
    tool = make_tool("t", "x")
    tool.handler = None
    async with talking(sdk, [use("t", key="a"), DONE], tools=[tool]) as talk:
        queue = talk.session.rpc.queue
        await talk.session.send("first")
        await talk.heard.until("external_tool.requested")
        for text in ("second", "third", "fourth"):
            await talk.session.send(text)
        items = (await queue.pending_items()).items
        assert [item.display_text for item in items] == ["second", "third", "fourth"]
        assert (await queue.remove_most_recent()).removed is True
        await queue.clear()
        assert (await queue.pending_items()).items == []
        waiting = await talk.session.rpc.tools.list_pending_requests()
        assert waiting.items[0].tool_name == "t"
        await talk.session.abort()


async def test_options_change_while_the_session_lives(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE]) as talk:
        await talk.say("hi")
        await talk.session.rpc.options.update(
            rpc.SessionUpdateOptionsParams(excluded_tools=["bash"], enable_streaming=True)
        )
        await talk.say("again")
        assert "bash" in talk.tool_names(0)
        assert "bash" not in talk.tool_names(1)
        assert talk.server.requests[1].json["stream"] is True


async def test_the_server_says_who_is_signed_in(sdk: Sdk) -> None:
    async with sdk.client() as client:
        assert (await client.get_auth_status()).isAuthenticated is False
        status = await client.get_status()
        assert status.protocol_version == 3
    async with sdk.client(github_token="gho_test") as client:
        assert (await client.get_auth_status()).isAuthenticated is True


async def test_models_and_tools_are_listed(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], tools=[make_tool("mine", "x")]) as talk:
        models = await talk.client.list_models()
        assert models[0].capabilities.limits.max_context_window_tokens == 128_000
        tools = await talk.client.rpc.tools.list(rpc.ToolsListRequest())
        assert "bash" in [tool.name for tool in tools.tools]
        own = await talk.session.rpc.tools.get_current_metadata()
        assert own.tools is not None
        assert "mine" in [tool.name for tool in own.tools]
        listed = await talk.session.rpc.model.list()
        assert listed.list


async def test_settings_are_stored_and_reported_with_what_the_person_left_alone(sdk: Sdk) -> None:
    file = sdk.home / "settings.json"
    file.write_text('{\n  // mine\n  "theme": "dark",\n  "custom.thing": [1]\n}\n')
    async with sdk.client() as client:
        settings = client.rpc.user.settings
        changes = {"disabledSkills": ["knots"], "custom.thing": None}
        await settings.set(rpc.UserSettingsSetRequest(settings=changes))
        found = (await settings.get()).settings
        assert (found["theme"].value, found["theme"].is_default) == ("dark", False)
        assert (found["disabledSkills"].value, found["disabledSkills"].is_default) == (
            ["knots"],
            False,
        )
        assert (found["model"].value, found["model"].is_default) == (None, True)
        assert "custom.thing" not in found
    assert "// mine" in file.read_text()


async def test_nothing_is_discovered_where_nothing_is_loaded(sdk: Sdk) -> None:
    async with sdk.client() as client:
        request = client._client.request
        assert await request("agents.discover", {}) == {"agents": []}
        assert await request("skills.discover", {}) == {"skills": [], "errors": []}
        assert await request("instructions.discover", {}) == {"sources": []}


async def test_the_client_makes_the_model_calls_itself(sdk: Sdk) -> None:
    import httpx
    from copilot.copilot_request_handler import CopilotRequestHandler

    seen: list[str] = []

    class Handler(CopilotRequestHandler):
        async def send_request(self, request: httpx.Request, ctx: Any) -> httpx.Response:
            seen.append(str(request.url))
            request.headers["x-by-client"] = "yes"
            return await super().send_request(request, ctx)

    options = {"request_handler": Handler()}
    async with talking(sdk, [use("glob", pattern="*"), DONE], client=options) as talk:
        assert await talk.say("hi") == "Done."
        sent = [request.headers["x-by-client"] for request in talk.server.requests]
        assert sent == ["yes", "yes"]
    assert [url.rpartition("/")[2] for url in seen] == ["models", "completions", "completions"]


async def test_a_github_token_reaches_githubs_model_service(sdk: Sdk) -> None:
    async with ModelServer(Script.of([DONE, DONE])) as server:
        sdk.env |= {"COPILOT_API_URL": server.url, "COPILOT_DEBUG_GITHUB_API_URL": server.url}
        async with sdk.client(github_token="gho_client") as client:
            session = await client.create_session(model="scripted")
            assert (await session.send_and_wait("hi")) is not None
            own = await client.create_session(model="scripted", github_token="gho_session")
            assert (await own.send_and_wait("hi")) is not None
        tokens = [request.headers["authorization"] for request in server.requests]
    assert tokens == ["Bearer gho_client", "Bearer gho_session"]


async def test_infinite_sessions_summarise_at_the_threshold_a_client_sets(sdk: Sdk) -> None:
    replies = [
        {"when": {"last": "about to be replaced by a summary"}, "text": "SUMMARY"},
        {"text": "a " * 900, "usage": {"input": 2000, "output": 900}, "repeat": "forever"},
    ]
    thresholds = {"background_compaction_threshold": 0.001, "buffer_exhaustion_threshold": 0.002}
    async with talking(sdk, replies, infinite_sessions=thresholds) as talk:
        for number in range(4):
            await talk.say(f"wish {number}")
        assert "session.compaction_complete" in talk.heard.types
        assert "wish 0" in str(talk.shown())
        assert len(talk.shown()) < 8


async def test_infinite_sessions_can_be_switched_off(sdk: Sdk) -> None:
    reply = {"text": "a", "usage": {"input": 200_000, "output": 9}, "repeat": "forever"}
    async with talking(sdk, [reply], infinite_sessions={"enabled": False}) as talk:
        for number in range(4):
            await talk.say(f"wish {number}")
        assert "session.compaction_start" not in talk.heard.types


async def test_large_output_goes_where_a_client_says(sdk: Sdk) -> None:
    folder = sdk.cwd / "outputs"
    folder.mkdir()
    large = {"max_size_bytes": 100, "output_directory": str(folder)}
    tool = make_tool("shout", "loud " * 200)
    replies = [use("shout", key="x"), DONE]
    async with talking(sdk, replies, tools=[tool], large_output=large) as talk:
        await talk.say("hi")
        assert "Output too large" in str(talk.shown()[-1])
        (saved,) = folder.iterdir()
        assert saved.read_text() == "loud " * 200


async def test_a_limit_in_ai_credits_ends_the_work(sdk: Sdk) -> None:
    usage = {"input": 100_000, "output": 1}
    call = {"tools": [{"name": "glob", "arguments": {"pattern": "*"}}], "usage": usage}
    limits = {"max_ai_credits": 30.0}
    async with talking(
        sdk,
        [{**call, "repeat": "forever"}],
        model="gpt-4.1",
        listed=["gpt-4.1"],
        session_limits=limits,
    ) as talk:
        await talk.say("go")
        spent = talk.heard.of("assistant.usage")
        assert len(spent) <= 2, "20 credits a call"
        assert "budget" in [one.warning_type for one in talk.heard.of("session.warning")]


async def test_keys_that_a_client_gives_are_shown_nowhere(sdk: Sdk) -> None:
    keys = ("client-key-4711-abc", "header-key-4712-def")
    async with ModelServer(Script.of([bash(f"echo {keys[0]} {keys[1]}"), DONE])) as server:
        provider: Any = {
            "type": "openai",
            "base_url": server.base_url,
            "api_key": keys[0],
            "headers": {"x-api-token": keys[1], "x-team": "platform-tools"},
        }
        async with talking(sdk, [DONE], provider=provider, model="scripted") as talk:
            await talk.session.send("say platform-tools")
            await talk.heard.until("session.idle")
            heard = repr([event.to_dict() for event in talk.heard.events])
    stored = "".join(log.read_text() for log in sdk.logs())
    assert server.requests[0].headers["authorization"].endswith(keys[0])
    for key in keys:
        assert key not in heard + stored
    assert "platform-tools" in stored
