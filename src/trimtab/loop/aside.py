"""Answers a question beside the conversation: neither it nor the answer becomes part of it."""

from collections.abc import Collection, Sequence
from importlib.resources import files

from trimtab.contracts.errors import UsageError
from trimtab.contracts.messages import AssistantMessage, Message, UserMessage
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Run
from trimtab.loop.sample import visible_messages
from trimtab.loop.side_calls import SideCall, Writer, call_model

ANSWER_TOKENS = 1000
"""The expected output tokens of an answer."""


async def ask_aside(run: Run, question: str, running: Collection[str]) -> str:
    """Return the answer of the run's model; no tool runs. Raises `ModelError` and `UsageError`.

    The call counts towards the budget. `running` are the tool calls that the agent waits for:
    they and what follows them are left out.
    """
    if not question.strip():
        raise UsageError("The question is empty; ask something.")
    if run.agent.responder is not None:
        raise UsageError("Another program answers in this session; ask it with a prompt.")
    instruction = files(__package__).joinpath("aside.md").read_text("utf-8").strip()
    model, conversation = run.agent.model, run.session.conversation
    messages = find_complete(visible_messages(run), running)
    request = Request(
        model=model.name,
        system=conversation.system,
        messages=(*messages, UserMessage.of(f"{instruction}\n\n{question}")),
        tools=run.agent.specs,
        tool_choice="none" if run.agent.specs else None,
        stream=model.stream,
        effort=model.effort,
        cache_key=run.session.id,
    )
    size = run.measured.total if run.measured is not None else len(conversation.system) // 4
    call = SideCall(purpose="aside", prompt=size, answer=ANSWER_TOKENS)
    reply = await call_model(run, Writer.of(run), call, request)
    return reply.message.text.strip() or "The model gave no answer; ask again, or send a prompt."


def find_complete(messages: Sequence[Message], running: Collection[str]) -> Sequence[Message]:
    """Return the messages before the tool calls that still run."""
    for number, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and any(
            call.id in running for call in message.tool_calls
        ):
            return messages[:number]
    return messages
