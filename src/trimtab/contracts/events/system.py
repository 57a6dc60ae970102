"""Events that put the runtime's own text before the model: prompt, skills, notifications."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class SkillInvoked(EventData, type="skill.invoked"):
    name: str
    path: str
    content: str
    allowed_tools: list[str] | None = None
    plugin_name: str | None = None
    plugin_version: str | None = None
    description: str | None = None
    invoked_at_turn: int | None = None
    model: str | None = None
    disable_model_invocation: bool | None = None
    source: str | None = None
    trigger: str | None = None


class SessionBinaryAsset(EventData, type="session.binary_asset"):
    asset_id: str
    type: str
    mime_type: str
    byte_length: int
    data: str
    description: str | None = None
    metadata: dict[str, Any] | None = None


class SystemMessage(EventData, type="system.message"):
    content: str
    role: str
    name: str | None = None
    metadata: JsonObject | None = None
    content_blocks: list[JsonObject] | None = None
    interaction_id: str | None = None


class SystemNotification(EventData, type="system.notification"):
    content: str
    kind: JsonObject


class SessionCustomNotification(EventData, type="session.custom_notification", ephemeral=True):
    source: str
    name: str
    payload: Any
    version: int | None = None
    subject: dict[str, str] | None = None
