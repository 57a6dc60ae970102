"""Takes the next prompt, and records it as a message to the model."""

from trimtab.contracts.events.system import SystemNotification
from trimtab.contracts.events.user import PendingMessagesModified, UserMessage
from trimtab.contracts.run import Prompt, Run

PENDING = Prompt(text="", source="pending", billable=False)


def next_prompt(run: Run) -> Prompt | None:
    """Return the next prompt; the open tool calls of a suspended run come first."""
    return PENDING if run.pending_calls else run.inbox.take()


def record_prompt(run: Run, prompt: Prompt, *, delivery: str) -> None:
    """Emit the `user.message` or notification of a prompt. Its text never changes afterwards."""
    if prompt.notification is not None:
        run.session.emit(SystemNotification(content=prompt.text, kind=prompt.notification))
        run.inbox.consume(prompt)
        run.prompt = prompt
        return
    automatic = prompt.source == "autopilot"
    if prompt.mode == "immediate":  # it arrived when the run was about to stop
        delivery = "steering"
    run.session.emit(
        UserMessage(
            content="" if automatic else prompt.display or prompt.text,
            transformed_content=prompt.transformed or prompt.text,
            attachments=list(prompt.attachments),
            source=None if prompt.source == "user" else prompt.source,
            agent_mode=run.agent.mode,
            interaction_id=run.interaction_id,
            message_id=prompt.id,
            delivery=delivery,
            is_autopilot_continuation=automatic or None,
        )
    )
    run.session.emit(PendingMessagesModified())
    run.prompt = prompt
    if prompt.source == "user" and delivery != "steering":
        run.origin = prompt
