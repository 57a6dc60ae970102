"""Prompts that wait, in the order in which they will be answered."""

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import PromptChanged, PromptQueued, PromptWithdrawn
from trimtab.contracts.events.user import UserMessage
from trimtab.session.projections.queue import Queue


def queued(name: str, *, front: bool = False) -> PromptQueued:
    return PromptQueued(message_id=name, text=f"text {name}", front=front)


def fold(*events: EventData, agent: str | None = None) -> Queue:
    queue = Queue()
    for data in events:
        queue.apply(
            Event(
                type=data.wire_name,
                data=data,
                id="1",
                timestamp="t",
                parent_id=None,
                agent_id=agent,
            )
        )
    return queue


def names(queue: Queue, agent: str | None = None) -> list[str]:
    return [prompt.message_id for prompt in queue.prompts_of(agent)]


ABC = (queued("a"), queued("b"), queued("c"))


def test_prompts_wait_in_order_and_one_may_go_to_the_front() -> None:
    assert names(fold(*ABC, queued("d", front=True))) == ["d", "a", "b", "c"]


def test_a_prompt_that_was_answered_or_withdrawn_waits_no_more() -> None:
    queue = fold(*ABC, UserMessage(content="x", message_id="a"), PromptWithdrawn(message_id="c"))
    assert names(queue) == ["b"]
    assert names(fold(*ABC, UserMessage(content="x"))) == ["a", "b", "c"]


def test_a_prompt_is_moved_before_another_or_to_the_end() -> None:
    assert names(fold(*ABC, PromptChanged(message_id="c", before="a"))) == ["c", "a", "b"]
    assert names(fold(*ABC, PromptChanged(message_id="a", before=""))) == ["b", "c", "a"]
    assert names(fold(*ABC, PromptChanged(message_id="x", before="a"))) == ["a", "b", "c"]


def test_a_prompt_is_edited_in_place() -> None:
    queue = fold(*ABC, PromptChanged(message_id="b", text="new", mode="immediate"))
    assert names(queue) == ["a", "b", "c"]
    assert (queue.prompts[1].text, queue.prompts[1].mode) == ("new", "immediate")
    assert queue.prompts[0].text == "text a"


def test_each_agent_has_a_queue_of_its_own() -> None:
    queue = fold(*ABC, agent="child")
    assert names(queue) == []
    assert names(queue, "child") == ["a", "b", "c"]


def test_a_change_of_one_thing_keeps_the_others() -> None:
    first = PromptQueued(message_id="b", text="text", display="shown", mode="immediate")
    edited = fold(ABC[0], first, PromptChanged(message_id="b", text="new")).prompts[1]
    assert (edited.text, edited.display, edited.mode) == ("new", None, "immediate")
    empty = fold(ABC[0], first, PromptChanged(message_id="b", text="")).prompts[1]
    assert empty.text == ""
    steered = fold(ABC[0], first, PromptChanged(message_id="b", mode="enqueue")).prompts[1]
    assert (steered.text, steered.display, steered.mode) == ("text", "shown", "enqueue")


def test_a_prompt_is_moved_and_edited_at_once() -> None:
    queue = fold(*ABC, queued("d"), PromptChanged(message_id="b", text="new", before="d"))
    assert names(queue) == ["a", "c", "b", "d"]
    assert queue.prompts[2].text == "new"
    assert names(fold(*ABC, PromptChanged(message_id="b", before="unknown"))) == ["a", "c", "b"]
    assert names(fold(*ABC, PromptChanged(message_id="b", before="c"))) == ["a", "b", "c"]


def test_an_empty_queue_stays_empty() -> None:
    assert fold(PromptChanged(message_id="a", text="x")).prompts == []
    assert fold(PromptWithdrawn(message_id="a")).prompts == []
    assert fold().prompts == []
