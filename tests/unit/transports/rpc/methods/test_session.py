"""Messages, questions beside the conversation and background agents, over the official client."""

import asyncio
from typing import Any

import pytest
from copilot.generated import rpc

from sdkkit import Sdk, Talk, bash, talking_here, use

DONE = {"text": "Done."}


def texts(talk: Talk) -> list[str]:
    """Return what the user said in the last request, without what was put before it."""
    said = [message["content"] for message in talk.shown() if message["role"] == "user"]
    return [text.rpartition("\n\n")[2] for text in said]


async def test_several_messages_are_answered_by_one_turn(sdk: Sdk) -> None:
    async with talking_here(sdk, [DONE] * 2) as talk:
        messages = [
            rpc.SendMessageItem(prompt="one"),
            rpc.SendMessageItem(prompt="two", display_prompt="Two!"),
            rpc.SendMessageItem(prompt="three"),
        ]
        sent = await talk.session.rpc.send_messages(rpc.SendMessagesRequest(messages, wait=True))
        assert texts(talk) == ["one", "two", "three"]
        assert len(talk.server.requests) == 1
        heard = talk.heard.of("user.message")
        assert [data.message_id for data in heard] == sent.message_ids
        assert [data.content for data in heard] == ["one", "Two!", "three"]
        with pytest.raises(Exception, match="messages is empty"):
            await talk.session.rpc.send_messages(rpc.SendMessagesRequest([]))


async def test_several_messages_while_the_agent_works_steer_it(sdk: Sdk) -> None:
    slow = {"tools": [{"name": "bash", "arguments": {"command": "true", "description": "x"}}],
            "delay": 0.3}  # fmt: skip
    async with talking_here(sdk, [slow, DONE]) as talk:
        await talk.session.send("go")
        await talk.server.wait_for_requests(1)
        messages = [rpc.SendMessageItem(prompt="left"), rpc.SendMessageItem(prompt="right")]
        with pytest.raises(Exception, match="The agent is working"):
            await talk.session.rpc.send_messages(rpc.SendMessagesRequest(messages))
        await talk.session.rpc.send_messages(
            rpc.SendMessagesRequest(messages, mode=rpc.SendMode.IMMEDIATE)
        )
        await talk.heard.until("session.idle")
        assert texts(talk)[-2:] == ["left", "right"]
        assert len(talk.server.requests) == 2


async def test_a_question_beside_the_conversation_leaves_no_trace_in_it(sdk: Sdk) -> None:
    replies = [bash("true"), DONE, {"text": "Because."}, DONE]
    async with talking_here(sdk, replies) as talk:
        await talk.say("go")
        asked = await talk.session.rpc.ui.ephemeral_query(rpc.UIEphemeralQueryRequest("why?"))
        assert asked.answer == "Because."
        body = talk.server.requests[-1].json
        assert body["messages"][-1]["content"].endswith("\n\nwhy?")
        assert body["tool_choice"] == "none"
        await talk.say("on")
        assert "why?" not in texts(talk)
        with pytest.raises(Exception, match="The question is empty"):
            await talk.session.rpc.ui.ephemeral_query(rpc.UIEphemeralQueryRequest(" "))


async def test_a_question_beside_a_running_tool_is_a_whole_conversation(sdk: Sdk) -> None:
    replies = [use("wait", key="x"), {"text": "Because."}, DONE]
    hold, called = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> str:
        called.set()
        await hold.wait()
        return "waited"

    from copilot import define_tool

    tool = define_tool("wait", description="Waits.")(wait)
    async with talking_here(sdk, replies, tools=[tool]) as talk:
        await talk.session.send("go")
        async with asyncio.timeout(30):
            await called.wait()
        asked = await talk.session.rpc.ui.ephemeral_query(rpc.UIEphemeralQueryRequest("why?"))
        assert asked.answer == "Because."
        roles = [message["role"] for message in talk.shown()]
        assert roles == ["system", "user", "user"]
        hold.set()
        await talk.heard.until("session.idle")


async def test_all_background_agents_are_stopped_and_nothing_else(sdk: Sdk) -> None:
    scout = {"name": "scout", "agent_type": "explore", "description": "d", "prompt": "p"}
    task = {"tools": [{"name": "task", "arguments": {**scout, "mode": "background"}}]}
    slow = {"text": "x", "delay": 60}
    async with talking_here(sdk, [task, slow, slow]) as talk:
        assert await talk.session.rpc.cancel_all_background_agents() == 0
        await talk.session.send("go")
        await talk.heard.until("subagent.started")
        await talk.server.wait_for_requests(3)
        assert await talk.session.rpc.cancel_all_background_agents() == 1
        assert (await talk.session.rpc.metadata.is_processing()).processing
        (agent,) = (await talk.session.rpc.tasks.list()).tasks
        assert agent.status.value in ("cancelled", "failed", "completed", "idle")
        await talk.session.abort()
