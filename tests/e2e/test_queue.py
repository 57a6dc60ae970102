"""The queue of prompts is edited, moved, sent now, paused; nothing that was typed is lost."""

from pathlib import Path
from typing import Any

import pytest
from copilot.generated import rpc

from clikit import bash
from livekit import Watch, opened
from sdkkit import Sdk, talking, use
from trimtab.contracts.errors import UsageError
from trimtab.session.session import replay

WAIT = bash("until [ -e go ]; do sleep 0.02; done")


def said(watch: Watch) -> list[str]:
    return [data.content for data in watch.of("user.message")]


async def test_waiting_prompts_are_edited_moved_and_dropped(tmp_path: Path) -> None:
    replies = [{"tools": [WAIT]}, *["ok"] * 4]
    async with opened(tmp_path, replies) as (live, watch, _):
        live.send("first")
        await watch.saw("tool.execution_start")
        for text in ("two", "three", "four"):
            live.send(text)
        assert await live.run_command("/queue edit 2 THREE") == "Prompt 2 was changed."
        assert await live.run_command("/queue move 3 1") == "Prompt 3 is now number 1."
        assert await live.run_command("/queue drop 2") == "1 prompt dropped."
        listed = await live.run_command("/queue")
        assert listed is not None
        assert [line.split()[-1] for line in listed.split("\n")[:2]] == ["four", "THREE"]
        for wrong in ("edit 9 x", "edit 1", "move 1 9", "turn"):
            with pytest.raises(UsageError):
                await live.run_command(f"/queue {wrong}")
        (tmp_path / "go").touch()
        await live.finished()
        assert replay(live.folder.events).queue.prompts == []
    assert said(watch) == ["first", "four", "THREE"]
    assert [data.reason for data in watch.of("trimtab.prompt_withdrawn")] == ["dropped"]


async def test_a_waiting_prompt_is_sent_to_the_running_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"tools": [WAIT]}, "ok", "ok"]) as (live, watch, _):
        live.send("first")
        await watch.saw("tool.execution_start")
        live.send("second")
        live.send("third")
        assert await live.run_command("/queue send 2") == "1 prompt sent."
        (tmp_path / "go").touch()
        await live.finished()
    deliveries = [(data.content, data.delivery) for data in watch.of("user.message")]
    assert deliveries == [("first", "idle"), ("third", "steering"), ("second", "queued")]


async def test_a_paused_queue_holds_prompts_but_not_steering(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"tools": [WAIT]}, "ok", "ok"]) as (live, watch, _):
        live.send("first")
        await watch.saw("tool.execution_start")
        await live.run_command("/queue pause")
        live.send("second")
        (tmp_path / "go").touch()
        await live.finished()
        assert said(watch) == ["first"]
        live.send("third")
        assert not live.busy
        assert "paused" in str(await live.run_command("/queue"))
        await live.run_command("/queue resume")
        await live.finished()
    assert said(watch) == ["first", "second", "third"]
    assert [data.paused for data in watch.of("trimtab.queue_paused")] == [True, False]


async def test_what_was_changed_is_the_same_after_a_crash(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"tools": [WAIT]}, "ok", "ok", "ok"]) as (live, watch, _):
        live.send("first")
        await watch.saw("tool.execution_start")
        one, two = live.send("one"), live.send("two")
        assert live.inbox.edit(one, "ONE")
        assert live.inbox.move(one, 9)
        left = [prompt.text for prompt in replay(live.folder.events).queue.prompts]
        assert left == ["two", "ONE"] == [prompt.text for prompt in live.inbox.pending]
        assert not live.inbox.edit("missing", "x")
        assert live.inbox.withdraw(two)
        assert not live.inbox.move(two, 0)
        (tmp_path / "go").touch()
        await live.finished()


async def test_clients_edit_the_queue(sdk: Sdk) -> None:
    replies: list[Any] = [use("bash", **WAIT["arguments"]), *[{"text": "ok"}] * 6]
    async with talking(sdk, replies) as talk:
        await talk.session.send("first")
        await talk.heard.until("tool.execution_start")
        queue = talk.session.rpc.queue
        for text in ("two", "three", "four"):
            await talk.session.send(text)

        async def shown() -> list[str]:
            return [item.display_text for item in (await queue.pending_items()).items]

        ids = [item.id for item in (await queue.pending_items()).items]
        assert (await queue.update_text(rpc.QueueUpdateTextRequest(id=ids[0], prompt="2"))).updated
        move = rpc.QueueMoveItemRequest(id=ids[2], to_position=0)
        assert (await queue.move_item(move)).changed
        assert not (await queue.move_item(move)).changed
        assert (await queue.remove_at(rpc.QueueRemoveAtRequest(id=ids[1]))).removed
        copied = await queue.duplicate_at(rpc.QueueDuplicateAtRequest(id=ids[0]))
        assert copied.id
        assert await shown() == ["four", "2", "2"]
        message = rpc.QueueInsertMessage(prompt="zero")
        inserted = await queue.insert_at(rpc.QueueInsertAtRequest(message=message, position=1))
        assert await shown() == ["four", "zero", "2", "2"]
        assert (await queue.remove_at(rpc.QueueRemoveAtRequest(id=inserted.id))).removed
        await queue.set_drain_paused(rpc.QueueSetDrainPausedRequest(paused=True))
        with pytest.raises(Exception, match="queue_already_paused"):
            await queue.set_drain_paused(rpc.QueueSetDrainPausedRequest(paused=True))
        assert (await queue.send_now(rpc.QueueSendNowRequest(id=ids[2]))).steered
        assert (await queue.pending_items()).steering_messages == ["four"]
        (sdk.cwd / "go").touch()
        await talk.heard.until("session.idle")
        assert await shown() == ["2", "2"]
        assert not (await queue.send_now(rpc.QueueSendNowRequest(id=ids[0]))).steered
        await queue.set_drain_paused(rpc.QueueSetDrainPausedRequest(paused=False))
        await talk.session.rpc.tasks.wait_for_pending()
        assert await shown() == []
