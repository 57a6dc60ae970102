"""What the server asks its client: tools, permissions, hooks, questions."""

import asyncio
import json
from typing import Any

import pytest
from copilot import define_tool
from copilot.generated.rpc import (
    PermissionDecisionApproveForSession,
    PermissionDecisionApproveOnce,
    PermissionDecisionReject,
    PermissionDecisionUserNotAvailable,
)
from copilot.session import PermissionHandler, PermissionNoResult
from copilot.tools import ToolBinaryResult, ToolResult

from sdkkit import Heard, Key, Sdk, bash, make_tool, serving, talking, use
from trimtab.testing import Script

DONE = {"text": "Done."}


async def test_a_tool_of_the_client_is_called_and_its_result_shown(sdk: Sdk) -> None:
    tool = make_tool("lookup", lambda key: f"value of {key}")
    async with talking(sdk, [use("lookup", key="a"), DONE], tools=[tool]) as talk:
        assert await talk.say("look it up") == "Done."
        assert talk.tool_results() == ["value of a"]
        asked = talk.heard.of("external_tool.requested")[0]
        assert (asked.tool_name, asked.arguments) == ("lookup", {"key": "a"})
        assert asked.working_directory == str(sdk.cwd)
        assert "external_tool.completed" in talk.heard.types
        assert "lookup" in talk.tool_names()


RESULTS: list[tuple[str, Any, str]] = [
    ("a string", "plain", "plain"),
    ("an object", {"a": 1}, '{"a": 1}'),
    ("nothing", None, ""),
    ("success", ToolResult(text_result_for_llm="good", result_type="success"), "good"),
    ("failure", ToolResult(text_result_for_llm="bad luck", result_type="failure"), "bad luck"),
    ("denied", ToolResult(text_result_for_llm="not you", result_type="denied"), "not you"),
]


@pytest.mark.parametrize(("_", "given", "shown"), RESULTS, ids=[row[0] for row in RESULTS])
async def test_a_tool_result_of_every_kind_reaches_the_model(
    sdk: Sdk, _: str, given: Any, shown: str
) -> None:
    async with talking(sdk, [use("t", key="a"), DONE], tools=[make_tool("t", given)]) as talk:
        assert await talk.say("go") == "Done."
        assert talk.tool_results()[0].replace(" ", "") == shown.replace(" ", "")


async def test_what_goes_wrong_inside_a_tool_stays_there(sdk: Sdk) -> None:
    tool = make_tool("t", ValueError("secret detail"))
    async with talking(sdk, [use("t", key="a"), DONE], tools=[tool]) as talk:
        assert await talk.say("go") == "Done."
        (shown,) = talk.tool_results()
        assert shown.startswith("Failed to execute `t` tool with arguments:")
        assert "secret detail" not in shown


async def test_a_rejected_result_ends_the_turn(sdk: Sdk) -> None:
    result = ToolResult(text_result_for_llm="no", result_type="rejected")
    async with talking(sdk, [use("t", key="a"), DONE], tools=[make_tool("t", result)]) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        assert talk.server.usage.requests == 1


async def test_an_image_of_a_tool_reaches_the_model(sdk: Sdk) -> None:
    image = ToolBinaryResult(data="aGk=", mime_type="image/png", type="image", description="pic")
    result = ToolResult(
        text_result_for_llm="see", result_type="success", binary_results_for_llm=[image]
    )
    async with talking(sdk, [use("t", key="a"), DONE], tools=[make_tool("t", result)]) as talk:
        await talk.say("go")
        assert "data:image/png;base64,aGk=" in str(talk.shown())


async def test_an_unknown_tool_is_told_to_the_model(sdk: Sdk) -> None:
    async with talking(sdk, [use("nope", key="a"), DONE]) as talk:
        assert await talk.say("go") == "Done."
        assert talk.tool_results() == ["Tool 'nope' does not exist."]


async def test_a_tool_with_a_built_in_name_needs_to_say_so(sdk: Sdk) -> None:
    async with sdk.client() as client:
        with pytest.raises(Exception, match="has the name of a built-in tool"):
            await client.create_session(tools=[make_tool("grep", "x")])


async def test_a_tool_can_take_the_place_of_a_built_in_one(sdk: Sdk) -> None:
    tool = make_tool("grep", "mine", overrides_built_in_tool=True)
    async with talking(sdk, [use("grep", key="a"), DONE], tools=[tool]) as talk:
        await talk.say("go")
        assert talk.tool_results() == ["mine"]


async def test_tools_can_be_replaced_while_the_session_lives(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE], tools=[make_tool("one", "1")]) as talk:
        await talk.say("go")
        await talk.session.set_tools([make_tool("two", "2")])
        await talk.say("go on")
        assert "one" in talk.tool_names(0)
        assert "one" not in talk.tool_names(1)
        assert "two" in talk.tool_names(1)


KINDS = [
    ("shell", bash("echo hi"), {"full_command_text": "echo hi"}),
    ("write", use("create", path="new.txt", file_text="x"), {}),
    ("read", use("view", path="a.txt"), {}),
    ("custom-tool", use("t", key="a"), {"tool_name": "t", "args": {"key": "a"}}),
]


@pytest.mark.parametrize(("kind", "reply", "fields"), KINDS, ids=[row[0] for row in KINDS])
async def test_the_client_is_asked_about_every_kind(
    sdk: Sdk, kind: str, reply: Any, fields: dict[str, Any]
) -> None:
    (sdk.cwd / "a.txt").write_text("content")
    asked: list[Any] = []

    def judge(request: Any, _: Any) -> Any:
        asked.append(request)
        return PermissionDecisionApproveOnce()

    tools = [make_tool("t", "x")]
    async with talking(sdk, [reply, DONE], on_permission_request=judge, tools=tools) as talk:
        assert await talk.say("go") == "Done."
    assert asked[0].kind == kind
    assert asked[0].tool_call_id
    for name, value in fields.items():
        assert getattr(asked[0], name) == value
    assert talk.heard.of("permission.completed")[0].result.kind == "approved"


async def test_a_tool_that_skips_permission_is_not_asked_about(sdk: Sdk) -> None:
    tool = make_tool("t", "x", skip_permission=True)
    async with talking(sdk, [use("t", key="a"), DONE], tools=[tool]) as talk:
        await talk.say("go")
        assert "permission.requested" not in talk.heard.types


async def test_a_rejection_ends_the_turn_and_nothing_happens(sdk: Sdk) -> None:
    def judge(*_: Any) -> Any:
        return PermissionDecisionReject(feedback="use tabs")

    replies = [use("create", path="new.txt", file_text="x"), DONE]
    async with talking(sdk, replies, on_permission_request=judge) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        assert talk.server.usage.requests == 1
        assert not (sdk.cwd / "new.txt").exists()
        result = talk.heard.of("permission.completed")[0].result
        assert result.kind == "denied-interactively-by-user"
        done = talk.heard.of("tool.execution_complete")[0]
        assert done.error.code == "rejected"


async def test_what_a_rule_or_a_hook_settled_is_not_put_to_the_client(sdk: Sdk) -> None:
    asked: list[str] = []

    def judge(request: Any, *_: Any) -> Any:
        asked.append(request.full_command_text)
        return PermissionDecisionApproveOnce()

    (sdk.home / "settings.json").write_text(json.dumps({"permissions": {"deny": ["shell(touch)"]}}))
    (sdk.home / "hooks").mkdir()
    command = 'grep -q hooked && echo \'{"behavior": "deny", "message": "no"}\'; true'
    hooks = {"permissionRequest": [{"type": "command", "bash": command}]}
    (sdk.home / "hooks" / "hooks.json").write_text(json.dumps({"version": 1, "hooks": hooks}))
    replies = [bash(one) for one in ("touch denied", "mkdir hooked", "mkdir asked")]
    async with talking(sdk, [*replies, DONE], on_permission_request=judge) as talk:
        assert await talk.say("go") == "Done."
        settled = [data.resolved_by_hook for data in talk.heard.of("permission.requested")]
        kinds = [data.result.kind for data in talk.heard.of("permission.completed")]
    assert settled == [True, True, None]
    assert asked == ["mkdir asked"]
    assert kinds == ["denied-by-rules", "denied-by-permission-request-hook", "approved"]
    assert [path.name for path in sdk.cwd.iterdir()] == ["asked"]


UNAVAILABLE: list[tuple[str, Any]] = [
    ("says so", lambda *_: PermissionDecisionUserNotAvailable()),
    ("handler raises", lambda *_: 1 / 0),
]


@pytest.mark.parametrize(("_", "judge"), UNAVAILABLE, ids=[row[0] for row in UNAVAILABLE])
async def test_nobody_to_decide_means_no(sdk: Sdk, _: str, judge: Any) -> None:
    replies = [use("create", path="new.txt", file_text="x"), DONE]
    async with talking(sdk, replies, on_permission_request=judge) as talk:
        assert await talk.say("go") == "Done."
        assert not (sdk.cwd / "new.txt").exists()
        (shown,) = talk.tool_results()
        assert shown.startswith("Permission denied and could not request permission from user")


async def test_without_a_handler_a_request_waits_for_the_pending_call(sdk: Sdk) -> None:
    from copilot.generated.rpc import PermissionDecisionRequest

    async with talking(sdk, [bash("echo hi"), DONE], on_permission_request=None) as talk:
        await talk.session.send("go")
        await talk.heard.until("permission.requested")
        pending = await talk.session.rpc.permissions.pending_requests()
        request_id = talk.heard.of("permission.requested")[0].request_id
        assert [item.request_id for item in pending.items] == [request_id]
        answer = PermissionDecisionRequest(
            request_id=request_id, result=PermissionDecisionApproveOnce()
        )
        first = await talk.session.rpc.permissions.handle_pending_permission_request(answer)
        again = await talk.session.rpc.permissions.handle_pending_permission_request(answer)
        assert (first.success, again.success) == (True, False)
        await talk.heard.until("session.idle")
        assert "hi" in talk.tool_results()[0]


async def test_what_is_approved_for_the_session_is_not_asked_again(sdk: Sdk) -> None:
    asked: list[Any] = []

    def judge(request: Any, _: Any) -> Any:
        asked.append(request)
        return PermissionDecisionApproveForSession()

    replies = [
        use("create", path="a.txt", file_text="x"),
        use("create", path="b.txt", file_text="x"),
    ]
    async with talking(sdk, [*replies, DONE], on_permission_request=judge) as talk:
        assert await talk.say("go") == "Done."
        assert (sdk.cwd / "b.txt").exists()
        assert len(asked) == 1


async def test_approve_all_asks_no_more(sdk: Sdk) -> None:
    from copilot.generated.rpc import PermissionsSetApproveAllRequest

    async with talking(sdk, [bash("echo hi"), DONE], on_permission_request=None) as talk:
        await talk.session.rpc.permissions.set_approve_all(
            PermissionsSetApproveAllRequest(enabled=True)
        )
        assert await talk.say("go") == "Done."
        assert "permission.requested" not in talk.heard.types


async def test_plan_mode_holds_whatever_the_client_allows(sdk: Sdk) -> None:
    replies = [use("create", path="new.txt", file_text="x"), DONE]
    async with talking(sdk, replies) as talk:
        await talk.say("go", agent_mode="plan")
        assert not (sdk.cwd / "new.txt").exists()
        assert "Plan mode" in talk.tool_results()[0]


@pytest.mark.proves("HOOK-03", "HOOK-04", "HOOK-18", "HOOK-19")
async def test_hooks_are_asked_in_order_and_bracketed_by_events(sdk: Sdk) -> None:
    seen: list[str] = []

    def on(name: str) -> Any:
        return lambda *_: seen.append(name)

    hooks = {
        "on_user_prompt_submitted": on("userPromptSubmitted"),
        "on_user_prompt_transformed": on("userPromptTransformed"),
        "on_session_start": on("sessionStart"),
        "on_pre_tool_use": on("preToolUse"),
        "on_post_tool_use": on("postToolUse"),
        "on_agent_stop": on("agentStop"),
        "on_session_end": on("sessionEnd"),
    }
    async with talking(sdk, [bash("echo hi"), DONE, DONE], hooks=hooks) as talk:
        await talk.say("go")
        assert seen == [
            "userPromptSubmitted",
            "userPromptTransformed",
            "sessionStart",
            "preToolUse",
            "postToolUse",
            "agentStop",
            "sessionEnd",
        ]
        types = talk.heard.types
        assert types.count("hook.start") == types.count("hook.end") == 7
        assert types[-1] == "session.idle"
        seen.clear()
        await talk.say("again")
        assert "sessionStart" not in seen


@pytest.mark.proves("HOOK-21")
async def test_a_pre_tool_use_hook_sees_the_arguments(sdk: Sdk) -> None:
    given: list[Any] = []
    hooks = {"on_pre_tool_use": lambda data, _: given.append(data)}
    async with talking(sdk, [bash("echo hi"), DONE], hooks=hooks) as talk:
        await talk.say("go")
    assert given[0]["toolName"] == "bash"
    assert '"echo hi"' in given[0]["toolArgs"]
    assert given[0]["sessionId"] == talk.session.session_id
    assert given[0]["workingDirectory"] == str(sdk.cwd)


DENIALS = [("with a reason", "not here", "not here"), ("without", None, "No reason provided")]


@pytest.mark.proves("HOOK-06", "HOOK-07")
@pytest.mark.parametrize(("_", "reason", "shown"), DENIALS, ids=[row[0] for row in DENIALS])
async def test_a_pre_tool_use_hook_can_deny(
    sdk: Sdk, _: str, reason: str | None, shown: str
) -> None:
    output: dict[str, Any] = {"permissionDecision": "deny"}
    if reason:
        output["permissionDecisionReason"] = reason
    hooks = {"on_pre_tool_use": lambda *_: output}
    async with talking(sdk, [bash("touch x"), DONE], hooks=hooks) as talk:
        assert await talk.say("go") == "Done."
        assert talk.tool_results() == [f"Denied by preToolUse hook: {shown}"]
        assert not (sdk.cwd / "x").exists()
        assert "permission.requested" not in talk.heard.types


@pytest.mark.proves("HOOK-08")
async def test_a_pre_tool_use_hook_can_change_the_arguments(sdk: Sdk) -> None:
    output = {"modifiedArgs": {"command": "echo changed", "description": "x"}}
    hooks = {"on_pre_tool_use": lambda *_: output}
    async with talking(sdk, [bash("echo hi"), DONE], hooks=hooks) as talk:
        await talk.say("go")
        assert "changed" in talk.tool_results()[0]
        request = talk.heard.of("permission.requested")[0].permission_request
        assert request.full_command_text == "echo changed"


@pytest.mark.proves("HOOK-09")
async def test_a_post_tool_use_hook_can_change_the_result(sdk: Sdk) -> None:
    output = {"modifiedResult": {"textResultForLlm": "other"}, "additionalContext": "mind this"}
    hooks = {"on_post_tool_use": lambda *_: output}
    async with talking(sdk, [bash("echo hi"), DONE], hooks=hooks) as talk:
        await talk.say("go")
        assert talk.tool_results() == ["other"]
        assert talk.prompt() == "mind this"


async def test_a_failed_tool_has_a_hook_of_its_own(sdk: Sdk) -> None:
    given: list[Any] = []

    def on_failure(data: Any, _: Any) -> Any:
        given.append(data)
        return {"additionalContext": "try another"}

    hooks = {"on_post_tool_use_failure": on_failure}
    async with talking(sdk, [use("view", path="missing"), DONE], hooks=hooks) as talk:
        await talk.say("go")
        assert given[0]["toolName"] == "view"
        assert "exist" in given[0]["error"]
        assert talk.prompt() == "try another"


@pytest.mark.proves("HOOK-05")
async def test_a_prompt_hook_can_change_the_prompt(sdk: Sdk) -> None:
    hooks = {"on_user_prompt_submitted": lambda *_: {"modifiedPrompt": "better words"}}
    async with talking(sdk, [DONE], hooks=hooks) as talk:
        await talk.say("words")
        assert "better words" in talk.prompt()


async def test_a_prompt_hook_can_block_the_prompt(sdk: Sdk) -> None:
    hooks = {"on_user_prompt_submitted": lambda *_: {"decision": "block", "reason": "no"}}
    async with talking(sdk, [DONE], hooks=hooks) as talk:
        assert await talk.say("words") == ""
        assert talk.server.usage.requests == 0
        assert talk.heard.of("session.warning")[0].warning_type == "policy_blocked"
        assert "user.message" not in talk.heard.types


async def test_the_transformed_prompt_can_be_changed(sdk: Sdk) -> None:
    hooks = {"on_user_prompt_transformed": lambda *_: {"modifiedTransformedPrompt": "exactly"}}
    async with talking(sdk, [DONE], hooks=hooks) as talk:
        await talk.say("words")
        assert talk.prompt() == "exactly"


async def test_session_start_context_comes_before_the_prompt(sdk: Sdk) -> None:
    hooks = {"on_session_start": lambda *_: {"additionalContext": "the house rules"}}
    async with talking(sdk, [DONE], hooks=hooks) as talk:
        await talk.say("words")
        users = [one["content"] for one in talk.shown() if one["role"] == "user"]
        assert users[0] == "the house rules"
        assert "words" in users[1]
        assert talk.heard.of("session.title_changed")[0].title == "words"


@pytest.mark.proves("HOOK-10")
async def test_an_agent_stop_hook_sends_the_agent_back_to_work(sdk: Sdk) -> None:
    active: list[bool] = []

    def on_stop(data: Any, _: Any) -> Any:
        active.append(bool(data.get("stopHookActive")))
        return {"decision": "block", "reason": "tests fail"} if len(active) == 1 else None

    async with talking(sdk, [DONE, {"text": "Fixed."}], hooks={"on_agent_stop": on_stop}) as talk:
        assert await talk.say("go") == "Fixed."
        assert talk.prompt() == "tests fail"
        assert active == [False, True]


async def test_a_hook_that_always_blocks_is_stopped_after_eight(sdk: Sdk) -> None:
    hooks = {"on_agent_stop": lambda *_: {"decision": "block", "reason": "more"}}
    async with talking(sdk, [DONE] * 12, hooks=hooks) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        assert talk.server.usage.requests == 9


@pytest.mark.proves("HOOK-12")
async def test_an_error_hook_hears_of_a_failed_call(sdk: Sdk) -> None:
    given: list[Any] = []
    hooks = {"on_error_occurred": lambda data, _: given.append(data)}
    replies = [{"error": {"status": 400, "message": "bad"}}]
    async with talking(sdk, replies, hooks=hooks) as talk:
        with pytest.raises(Exception, match="bad"):
            await talk.say("go")
    assert "bad" in given[0]["error"]
    assert given[0]["errorContext"] == "model_call"


ANSWERS = [
    ("free", {"answer": "blue", "wasFreeform": True}, "User responded: blue"),
    ("choice", {"answer": "red", "wasFreeform": False}, "User selected: red"),
]


@pytest.mark.parametrize(("_", "answer", "shown"), ANSWERS, ids=[row[0] for row in ANSWERS])
async def test_the_model_can_ask_the_person(sdk: Sdk, _: str, answer: Any, shown: str) -> None:
    asked: list[Any] = []

    def on_input(request: Any, _: Any) -> Any:
        asked.append(request)
        return answer

    replies = [use("ask_user", question="Which?", choices=["red", "green"]), DONE]
    async with talking(sdk, replies, on_user_input_request=on_input) as talk:
        await talk.say("go")
        assert talk.tool_results() == [shown]
    assert asked[0]["question"] == "Which?"
    assert asked[0]["choices"] == ["red", "green"]
    assert talk.heard.of("user_input.completed")[0].answer == answer["answer"]


async def test_ask_user_is_offered_only_to_who_can_answer(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        await talk.say("go")
        assert "ask_user" not in talk.tool_names()


async def test_the_person_approves_a_plan_and_chooses_how_to_go_on(sdk: Sdk) -> None:
    asked: list[Any] = []

    def on_exit(request: Any, _: Any) -> Any:
        asked.append(request)
        return {"approved": True, "selectedAction": "interactive"}

    replies = [use("exit_plan_mode", summary="1. do it"), DONE]
    async with talking(sdk, replies, on_exit_plan_mode_request=on_exit) as talk:
        await talk.say("plan", agent_mode="plan")
        assert asked[0]["summary"] == "1. do it"
        assert "approved" in talk.tool_results()[0]
        assert (await talk.session.rpc.mode.get()).value == "interactive"
        assert "exit_plan_mode" in talk.tool_names(0)


async def test_a_form_is_shown_and_answered(sdk: Sdk) -> None:
    def on_form(context: Any) -> Any:
        assert context["message"] == "Sure?"
        return {"action": "accept", "content": {"confirmed": True}}

    async with talking(sdk, [DONE], on_elicitation_request=on_form) as talk:
        assert talk.session.capabilities["ui"]["elicitation"] is True
        assert await talk.session.ui.confirm("Sure?") is True
        assert "elicitation.completed" in talk.heard.types


async def test_without_a_form_handler_there_are_no_forms(sdk: Sdk) -> None:
    async with talking(sdk, [DONE]) as talk:
        assert not talk.session.capabilities["ui"]["elicitation"]


async def test_a_command_of_the_client_is_run_by_it(sdk: Sdk) -> None:
    from copilot.generated.rpc import ExecuteCommandParams
    from copilot.session import CommandDefinition

    ran: list[str] = []
    command = CommandDefinition(
        name="deploy", description="Ship it", handler=lambda context: ran.append(context.args)
    )
    async with talking(sdk, [DONE], commands=[command]) as talk:
        listed = await talk.session.rpc.commands.list()
        clients = [one.name for one in listed.commands if one.kind.value == "client"]
        assert clients == ["deploy"]
        result = await talk.session.rpc.commands.execute(
            ExecuteCommandParams(command_name="deploy", args="now")
        )
        assert result.error is None
        assert ran == ["now"]


async def test_two_clients_share_a_session_and_the_first_answer_wins(sdk: Sdk) -> None:
    from copilot.client import RuntimeConnection

    from clikit import TRIMTAB

    connection: Any = RuntimeConnection.for_tcp(path=TRIMTAB, connection_token="secret")
    asked: list[str] = []
    go_on = asyncio.Event()

    async def slow(*_: Any) -> Any:
        asked.append("first")
        await go_on.wait()
        return PermissionDecisionReject()

    replies = [bash("echo hi"), DONE]
    async with talking(sdk, replies, connection=connection, on_permission_request=slow) as talk:
        port = talk.client.runtime_port
        other_connection = RuntimeConnection.for_uri(f"localhost:{port}", connection_token="secret")
        async with sdk.client(other_connection) as other:
            heard = Heard()

            def quick(*_: Any) -> Any:
                asked.append("second")
                return PermissionDecisionApproveOnce()

            tool = make_tool("mine", "x")
            await other.resume_session(
                talk.session.session_id, on_permission_request=quick, on_event=heard, tools=[tool]
            )
            assert await talk.say("go") == "Done."
            assert sorted(asked) == ["first", "second"]
            assert "hi" in talk.tool_results()[0]
            assert heard.types.count("permission.completed") == 1
            assert "mine" in talk.tool_names()
        go_on.set()
        talk.server.load(Script.of([DONE]))
        await talk.say("alone again")
        assert "mine" not in talk.tool_names()


async def test_open_questions_survive_the_client_that_was_asked(sdk: Sdk) -> None:
    from copilot.client import RuntimeConnection

    from clikit import TRIMTAB

    connection: Any = RuntimeConnection.for_tcp(path=TRIMTAB, connection_token="secret")
    async with talking(sdk, [bash("echo hi"), DONE], connection=connection) as talk:
        uri = f"localhost:{talk.client.runtime_port}"
        first = RuntimeConnection.for_uri(uri, connection_token="secret")
        heard = Heard()
        async with sdk.client(first) as client:
            session = await client.create_session(
                on_permission_request=lambda *_: PermissionNoResult(), on_event=heard
            )
            await session.send("go")
            await heard.until("permission.requested")
            client._sessions.clear()
        second = RuntimeConnection.for_uri(uri, connection_token="secret")
        async with sdk.client(second) as client:
            later = Heard()
            await client.resume_session(
                session.session_id,
                on_permission_request=lambda *_: PermissionDecisionApproveForSession(),
                on_event=later,
                continue_pending_work=True,
            )
            await later.until("session.idle")
            assert later.of("assistant.message")[-1].content == "Done."
            assert later.of("session.resume")[0].session_was_active is True


async def test_a_model_hears_that_a_tool_has_gone(sdk: Sdk) -> None:
    async with talking(sdk, [DONE, DONE], tools=[make_tool("lookup", "x")]) as talk:
        await talk.say("first")
        assert "<tools_changed_notice>" not in str(talk.shown()[-1])
        again = await talk.client.resume_session(
            talk.session.session_id,
            on_permission_request=PermissionHandler.approve_all,
        )
        await again.send_and_wait("second")
        said = talk.shown()[-1]["content"]
    assert said.index("<tools_changed_notice>") < said.index("second")
    assert "lookup" in said


LIMITED = {"error": {"status": 429, "message": "slow down", "headers": {"retry-after": "0"}}}


@pytest.mark.parametrize(("response", "model"), [("yes", "auto"), ("yes_always", "auto")])
async def test_a_client_may_have_the_service_choose_after_a_rate_limit(
    sdk: Sdk, response: str, model: str
) -> None:
    asked: list[Any] = []

    def switch(request: Any, context: Any) -> str:
        asked.append(request)
        return response

    script = [*[LIMITED] * 6, DONE]
    async with talking(sdk, script, listed=["auto"], on_auto_mode_switch_request=switch) as talk:
        await talk.say("hi")
        used = talk.server.requests[-1].json["model"]
        (error,) = talk.heard.of("session.error")
        assert error.eligible_for_auto_switch
        assert "auto_mode_switch.completed" in talk.heard.types
    assert used == model
    assert len(asked) == 1


async def test_a_client_that_says_no_hears_of_the_rate_limit_once(sdk: Sdk) -> None:
    replies = [LIMITED] * 7
    async with talking(sdk, replies, on_auto_mode_switch_request=lambda *_: "no") as talk:
        await talk.session.send("hi")
        await talk.heard.until("session.idle")
        (error,) = talk.heard.of("session.error")
        (done,) = talk.heard.of("auto_mode_switch.completed")
    assert error.error_type == "rate_limit"
    assert done.response.value == "no"


@pytest.mark.parametrize("end", ["suspended", "killed"])
@pytest.mark.parametrize("kind", ["permission", "tool"])
async def test_what_waited_for_a_client_is_taken_up_by_another_server(
    sdk: Sdk, end: str, kind: str
) -> None:
    """The question is put again after a restart, and the answer goes where it was wanted."""
    asking = bash("echo hi > made.txt") if kind == "permission" else use("lookup", key="k")
    waiting = {"permission": "permission.requested", "tool": "external_tool.requested"}[kind]

    @define_tool("lookup", description="The lookup tool.", skip_permission=True)
    async def never(params: Key) -> str:
        await asyncio.Event().wait()
        return params.key

    async with serving([asking, DONE]) as server:
        sdk.use(server)
        heard = Heard()
        async with sdk.client() as client:
            session = await client.create_session(
                on_permission_request=lambda *_: PermissionNoResult(),
                on_event=heard,
                tools=[never],
            )
            await session.send("go")
            await heard.until(waiting)
            if end == "suspended":
                await session.rpc.suspend()
            else:
                await client.force_stop()
            client._sessions.clear()
        later = Heard()
        async with sdk.client() as client:
            await client.resume_session(
                session.session_id,
                on_permission_request=PermissionHandler.approve_all,
                on_event=later,
                tools=[make_tool("lookup", lambda key: f"found {key}", skip_permission=True)],
                continue_pending_work=True,
            )
            await later.until("session.idle")
        assert len(server.requests) == 2
        result = server.requests[-1].json["messages"][-1]
    assert result["role"] == "tool"
    if kind == "permission":
        assert (sdk.cwd / "made.txt").read_text() == "hi\n"
    else:
        assert result["content"] == "found k"


async def test_without_continuing_what_waited_counts_as_interrupted(sdk: Sdk) -> None:
    async with serving([bash("echo hi"), DONE]) as server:
        sdk.use(server)
        heard = Heard()
        async with sdk.client() as client:
            session = await client.create_session(
                on_permission_request=lambda *_: PermissionNoResult(), on_event=heard
            )
            await session.send("go")
            await heard.until("permission.requested")
            await session.rpc.suspend()
            client._sessions.clear()
        async with sdk.client() as client:
            again = await client.resume_session(
                session.session_id, on_permission_request=PermissionHandler.approve_all
            )
            await again.send_and_wait("what happened?")
        tool = next(m for m in server.requests[-1].json["messages"] if m["role"] == "tool")
    assert "interrupted" in tool["content"]
