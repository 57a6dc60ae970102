"""Answers a question beside the conversation: neither it nor the answer becomes part of it."""

from importlib.resources import files

from trimtab.contracts.errors import UsageError
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Run
from trimtab.loop.sample import visible_messages
from trimtab.loop.side_calls import SideCall, Writer, call_model

ANSWER_TOKENS = 1000
"""The expected output tokens of an answer."""


async def ask_aside(run: Run, question: str) -> str:
    """Return the answer of the run's model. Raises `ModelError` and `UsageError`."""
    if run.agent.responder is not None:
        raise UsageError("Another program answers in this session; ask it with a prompt.")
    instruction = files(__package__).joinpath("prompts", "ask.md").read_text("utf-8").strip()
    model, conversation = run.agent.model, run.session.conversation
    request = Request(
        model=model.name,
        system=conversation.system,
        messages=(*visible_messages(run), UserMessage.of(f"{instruction}\n\n{question}")),
        tools=run.agent.specs,
        tool_choice="none",
        stream=model.stream,
        effort=model.effort,
        cache_key=run.session.id,
    )
    size = run.measured.total if run.measured is not None else len(conversation.system) // 4
    call = SideCall(purpose="aside", prompt=size, answer=ANSWER_TOKENS)
    reply = await call_model(run, Writer.of(run), call, request)
    return reply.message.text.strip() or "The model gave no answer; ask again, or send a prompt."
