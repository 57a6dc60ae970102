"""Agents a client brings, at work for the main one, over the official SDK."""

import asyncio
from typing import Any

import httpx
import pytest
from copilot import CopilotRequestHandler, define_tool
from copilot.generated.rpc import PermissionDecisionApproveOnce

from sdkkit import Key, Sdk, bash, make_tool, talking, use

DONE = {"text": "Done."}
AGENTS: Any = [
    {
        "name": "writer",
        "display_name": "Writer",
        "description": "Writes things.",
        "prompt": "Only write.",
        "tools": ["create", "bash", "lookup"],
    },
    {"name": "hidden", "prompt": "Never start me.", "infer": False},
]


def start(agent: str) -> dict[str, Any]:
    return use("task", description="a part", prompt="Write it.", agent_type=agent)


@pytest.mark.proves("AGENT-09", "SUB-16")
async def test_an_agent_of_the_client_works_under_the_clients_eyes(sdk: Sdk) -> None:
    asked: list[Any] = []

    def judge(request: Any, _: Any) -> Any:
        asked.append(request)
        return PermissionDecisionApproveOnce()

    script = [
        start("writer"),
        bash("echo x > made"),
        {"text": "Written."},
        DONE,
    ]
    async with talking(sdk, script, custom_agents=AGENTS, on_permission_request=judge) as talk:
        await talk.say("go")
        assert "Only write." in talk.system(1)
        assert talk.tool_results(3) == ["Written."]
        (started,) = talk.heard.of("subagent.started")
        (completed,) = talk.heard.of("subagent.completed")
        assert started.agent_name == completed.agent_name == "writer"
        assert started.tool_call_id == completed.tool_call_id
        (task,) = [
            tool["function"]
            for tool in talk.server.requests[0].json["tools"]
            if tool["function"]["name"] == "task"
        ]
        kinds = task["parameters"]["properties"]["agent_type"]["enum"]
        assert "writer" in kinds
        assert "hidden" not in kinds
    assert (sdk.cwd / "made").read_text() == "x\n"
    assert len(asked) == 1


async def test_usage_is_counted_by_agent(sdk: Sdk) -> None:
    script = [start("writer"), bash("echo x > made"), {"text": "Written."}, DONE]
    async with talking(sdk, script, custom_agents=AGENTS) as talk:
        await talk.say("go")
        metrics = await talk.session.rpc.usage.get_metrics()
        assert metrics.agent_metrics is not None
        (spent,) = metrics.agent_metrics.values()
        assert (spent.agent_name, spent.agent_display_name) == ("writer", "Writer")
        (model,) = spent.model_metrics.values()
        assert model.requests.count == 2
        (whole,) = metrics.model_metrics.values()
        assert whole.requests.count == 4


async def test_a_tool_can_be_left_to_sub_agents(sdk: Sdk) -> None:
    tool = make_tool("lookup", lambda key: f"value of {key}")
    script = [
        start("writer"),
        use("lookup", key="a"),
        DONE,
        DONE,
    ]
    async with talking(
        sdk,
        script,
        tools=[tool],
        custom_agents=AGENTS,
        default_agent={"excluded_tools": ["lookup"]},
    ) as talk:
        await talk.say("go")
        assert "lookup" not in talk.tool_names(0)
        assert "lookup" in talk.tool_names(1)
        assert talk.tool_results(2) == ["value of a"]


async def test_hooks_of_the_client_are_called_for_sub_agents(sdk: Sdk) -> None:
    seen: list[str] = []
    told: list[Any] = []

    async def before(data: Any, _: Any) -> Any:
        seen.append(data["toolName"])
        told.append((data["sessionId"], data.get("agentType"), data.get("parentAgentId")))
        if data["toolName"] != "bash":
            return None
        return {"permissionDecision": "deny", "permissionDecisionReason": "not here"}

    script = [start("writer"), bash("touch made"), DONE, DONE]
    hooks = {"on_pre_tool_use": before}
    async with talking(sdk, script, custom_agents=AGENTS, hooks=hooks) as talk:
        await talk.say("go")
        assert talk.tool_results(2) == ["Denied by preToolUse hook: not here"]
    main, agent = told
    assert main == (talk.session.session_id, None, None)
    assert agent[0] != main[0]
    assert agent[1:] == ("writer", main[0])
    assert seen == ["task", "bash"]
    assert not (sdk.cwd / "made").exists()


async def test_hooks_of_the_client_bracket_a_sub_agent(sdk: Sdk) -> None:
    told: list[Any] = []

    async def at_start(data: Any, _: Any) -> Any:
        told.append(("start", data["agentName"], data["transcriptPath"]))
        return {"additionalContext": "Mind the gap."}

    async def at_stop(data: Any, _: Any) -> None:
        told.append(("stop", data["agentName"], data["transcriptPath"]))

    hooks = {"on_subagent_start": at_start, "on_subagent_stop": at_stop}
    script = [start("writer"), {"text": "Written."}, DONE]
    async with talking(sdk, script, custom_agents=AGENTS, hooks=hooks) as talk:
        await talk.say("go")
        assert "Mind the gap." in str(talk.shown(1))
    (log,) = map(str, sdk.logs())
    assert told == [("start", "writer", log), ("stop", "writer", log)]


async def test_abort_ends_the_agent_that_works_too(sdk: Sdk) -> None:
    script = [start("writer"), {"text": "x", "delay": 60}, DONE]
    async with talking(sdk, script, custom_agents=AGENTS) as talk:
        await talk.session.send("go")
        await talk.heard.until("subagent.configured")
        await talk.session.abort()
        await talk.heard.until("session.idle")
        (completed,) = talk.heard.of("subagent.completed")
        assert completed.cancelled
        assert await talk.say("again") == "Done."


class Recording(CopilotRequestHandler):
    """Makes the calls with a client of its own: that of the SDK is never closed."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.calls: list[Any] = []
        self._http = http

    async def send_request(self, request: Any, ctx: Any) -> Any:
        self.calls.append((ctx.interaction_type, ctx.agent_id, ctx.parent_agent_id))
        return await self._http.send(request, stream=True)


async def test_a_client_that_makes_the_calls_knows_whose_they_are(sdk: Sdk) -> None:
    script = [start("writer"), {"text": "Written."}, DONE]
    async with httpx.AsyncClient(timeout=None) as http:
        handler = Recording(http)
        options = {"request_handler": handler}
        async with talking(sdk, script, custom_agents=AGENTS, client=options) as talk:
            await talk.say("go")
            main = talk.session.session_id
    calls = {call for call in handler.calls if call[0]}
    assert ("conversation-agent", main, None) in calls
    ((kind, agent, parent),) = calls - {("conversation-agent", main, None)}
    assert (kind, parent) == ("conversation-subagent", main)
    assert agent not in (None, main)


async def test_a_session_is_not_idle_while_an_agent_works_in_the_background(sdk: Sdk) -> None:
    released = asyncio.Event()

    async def hold(params: Key) -> str:
        await released.wait()
        return params.key

    replies: Any = {
        "replies": [
            {"when": {"last": "go"}, "repeat": 1, **in_background("Look.")},
            {"when": {"last": "Look"}, "repeat": 1, **use("hold", key="held")},
            {"when": {"last": "held"}, "repeat": 1, "text": "Found."},
        ],
        "otherwise": DONE,
    }
    tool = define_tool("hold", description="Waits.")(hold)
    async with talking(sdk, replies, tools=[tool]) as talk:
        await talk.session.send("go")
        await talk.heard.until("assistant.idle")
        await talk.heard.until("external_tool.requested")
        assert "session.idle" not in talk.heard.types
        released.set()
        await talk.heard.until("session.idle")
        types = talk.heard.types
        assert types.index("subagent.completed") < types.index("session.idle")


def in_background(prompt: str) -> dict[str, Any]:
    return use(
        "task", description="a part", prompt=prompt, agent_type="general-purpose", mode="background"
    )


async def test_a_session_is_idle_once_a_command_in_the_background_has_ended(sdk: Sdk) -> None:
    start = use("bash", command="sleep 0.5", description="test", mode="async")
    async with talking(sdk, [start, DONE, DONE]) as talk:
        await talk.session.send("go")
        await talk.heard.until("session.idle")
        types = talk.heard.types
        assert types.index("assistant.idle") < types.index("session.idle")
        (task,) = (await talk.session.rpc.tasks.list()).tasks
        assert task.status.value != "running"
