"""A question about the conversation that does not become part of it."""

from collections.abc import Collection, Sequence

from trimtab.contracts.errors import UsageError
from trimtab.contracts.messages import AssistantMessage, Message, ToolMessage, UserMessage
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Run
from trimtab.loop.side_calls import SideCall, Writer, call_model

ANSWER_TOKENS = 1000
CHARACTERS_PER_TOKEN = 4


async def ask_aside(run: Run, question: str, running: Collection[str]) -> str:
    """Ask the session's model about the conversation; no tool runs. Raises `ModelError`.

    The call counts towards the budget. `running` are the tool calls that the agent waits for:
    they and what follows them are left out.
    """
    if not question.strip():
        raise UsageError("The question is empty; ask something.")
    conversation = run.session.conversation
    complete = find_complete(conversation.messages, running)
    messages = (*complete, UserMessage.of(question))
    # Some services refuse a conversation with tool calls without the tools.
    needs_tools = any(isinstance(message, ToolMessage) for message in messages)
    request = Request(
        model=run.agent.model.name,
        system=conversation.system,
        messages=messages,
        tools=run.agent.specs if needs_tools else (),
        tool_choice="none" if needs_tools else None,
        stream=run.agent.model.stream,
        cache_key=run.session.id,
    )
    size = conversation.characters + len(conversation.system) + len(question)
    call = SideCall(purpose="question", prompt=size // CHARACTERS_PER_TOKEN, answer=ANSWER_TOKENS)
    reply = await call_model(run, Writer.of(run), call, request)
    return reply.message.text


def find_complete(messages: Sequence[Message], running: Collection[str]) -> Sequence[Message]:
    """Return the messages before the tool calls that still run."""
    for number, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and any(
            call.id in running for call in message.tool_calls
        ):
            return messages[:number]
    return messages
