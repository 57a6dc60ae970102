"""Events about prompts of the person or of an automatic sender."""

from trimtab.contracts.events.envelope import EventData, JsonObject


class UserMessage(EventData, type="user.message"):
    content: str
    transformed_content: str | None = None
    attachments: list[JsonObject] | None = None
    source: str | None = None
    agent_mode: str | None = None
    interaction_id: str | None = None
    message_id: str | None = None
    delivery: str | None = None
    is_autopilot_continuation: bool | None = None
    turn_id: str | None = None
    parent_agent_task_id: str | None = None


class PendingMessagesModified(EventData, type="pending_messages.modified", ephemeral=True):
    pass
