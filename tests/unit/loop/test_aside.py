"""Questions beside the conversation."""

from typing import Any

import pytest

from loopkit import EchoTool, change_agent, make_run
from trimtab.contracts.errors import UsageError
from trimtab.contracts.messages import AssistantMessage, Message, ToolCall, UserMessage
from trimtab.contracts.run import Measured, Run
from trimtab.loop.aside import ANSWER_TOKENS, ask_aside, find_complete
from trimtab.loop.ledger import Allowance, Ledger, Spending


def requests(run: Run) -> list[Any]:
    return run.agent.model.provider.requests  # type: ignore[attr-defined, no-any-return]


async def test_the_answer_is_returned_and_the_conversation_stays_as_it_was() -> None:
    run = make_run([" It is 4. "], tools=[EchoTool()], effort="low", stream=False)
    assert await ask_aside(run, "2 + 2?", ()) == "It is 4."
    assert run.session.conversation.messages == []
    (request,) = requests(run)
    assert str(request.messages[-1]).count("2 + 2?") == 1
    assert (request.tool_choice, request.effort, request.stream) == ("none", "low", False)
    assert [tool.name for tool in request.tools] == ["echo"]
    assert request.cache_key == run.session.id
    (recorded,) = run.session.of("trimtab.model_call")  # type: ignore[attr-defined]
    assert (recorded.purpose, recorded.status) == ("aside", "success")


async def test_without_tools_there_is_nothing_to_choose() -> None:
    run = make_run(["Yes."])
    await ask_aside(run, "Well?", ())
    assert requests(run)[0].tool_choice is None


async def test_an_empty_answer_is_said_to_be_one() -> None:
    run = make_run([{"text": " "}])
    assert await ask_aside(run, "Well?", ()) == (
        "The model gave no answer; ask again, or send a prompt."
    )


async def test_an_empty_question_and_another_program_are_refused() -> None:
    run = make_run(["never"])
    with pytest.raises(UsageError, match="empty"):
        await ask_aside(run, " \n", ())

    async def respond(run: Run) -> Any:
        """Never called."""

    change_agent(run, responder=respond)
    with pytest.raises(UsageError, match="Another program"):
        await ask_aside(run, "Well?", ())
    assert requests(run) == []


@pytest.mark.parametrize(("measured", "reserved"), [(700, 700), (None, 100)])
async def test_the_budget_reserves_the_size_of_the_context(
    measured: int | None, reserved: int
) -> None:
    from trimtab.contracts.events.system import SystemMessage

    run = make_run(["Yes.", "Yes."])
    run.session.emit(SystemMessage(role="system", content="x" * 400))
    if measured is not None:
        run.measured = Measured(system=measured, tools=0, conversation=0)
    asked: list[tuple[str, int, int]] = []

    class Noting(Ledger):
        def reserve_call(self, purpose: str, prompt: int, output: int, price: Any) -> bool:
            asked.append((purpose, prompt, output))
            return super().reserve_call(purpose, prompt, output, price)

    usage = run.session.projections.usage  # type: ignore[attr-defined]
    change_agent(run, budget=Noting(Allowance(tokens=100_000), lambda: Spending(calls=usage.calls)))
    await ask_aside(run, "Well?", ())
    assert asked == [("aside", reserved, ANSWER_TOKENS)]


def test_messages_end_before_the_calls_that_still_run() -> None:
    def calling(*ids: str) -> AssistantMessage:
        calls = tuple(ToolCall(id=each, name="echo", arguments="") for each in ids)
        return AssistantMessage(text="", tool_calls=calls)

    messages: list[Message] = [
        UserMessage.of("go"),
        calling("a"),
        UserMessage.of("on"),
        calling("b", "c"),
    ]
    assert find_complete(messages, ()) == messages
    assert find_complete(messages, {"x"}) == messages
    assert find_complete(messages, {"c"}) == messages[:3]
    assert find_complete(messages, {"a", "c"}) == messages[:1]
