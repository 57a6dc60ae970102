"""Events about the context window: usage, compaction, truncation, limits."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class SessionLimitsChanged(EventData, type="session.session_limits_changed"):
    session_limits: JsonObject


class SessionTruncation(EventData, type="session.truncation"):
    token_limit: int
    pre_truncation_tokens_in_messages: int
    pre_truncation_messages_length: int
    post_truncation_tokens_in_messages: int
    post_truncation_messages_length: int
    tokens_removed_during_truncation: int
    messages_removed_during_truncation: int
    performed_by: str


class SessionUsageCheckpoint(EventData, type="session.usage_checkpoint"):
    total_nano_aiu: float
    total_premium_requests: float | None = None


class SessionUsageInfo(EventData, type="session.usage_info", ephemeral=True):
    token_limit: int
    current_tokens: int
    messages_length: int
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    is_initial: bool | None = None
    conversation_bytes: int | None = None
    """Ours: the size of the messages on the wire."""


class SessionContextCleared(EventData, type="session.context_cleared"):
    messages_cleared: int
    initial_message: str | None = None


MECHANICAL = "mechanical"
"""The outcome of a compaction that failed, so that messages were cut without a summary."""


class SessionCompactionStart(EventData, type="session.compaction_start"):
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    compaction_attempt_id: str | None = None
    model: str | None = None
    current_tokens: int | None = None
    token_limit: int | None = None
    trigger: str | None = None
    turn_id: str | None = None
    """The turn in which it began."""
    messages_length: int | None = None
    """The number of messages it covers; those that follow stay as they are."""


class SessionCompactionComplete(EventData, type="session.compaction_complete"):
    success: bool
    error: str | None = None
    pre_compaction_tokens: int | None = None
    post_compaction_tokens: int | None = None
    pre_compaction_messages_length: int | None = None
    messages_removed: int | None = None
    tokens_removed: int | None = None
    summary_content: str | None = None
    checkpoint_number: int | None = None
    checkpoint_path: str | None = None
    checkpoint_title: str | None = None
    compaction_tokens_used: JsonObject | None = None
    request_id: str | None = None
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    outcome: str | None = None
    outcome_reason: str | None = None
    failure_reason: str | None = None
    compaction_attempt_id: str | None = None
    model: str | None = None
    initial_model: str | None = None
    token_accounting_basis: str | None = None
    custom_instructions: str | None = None
    status_code: int | None = None
    token_limit: int | None = None
    trigger: str | None = None


class PromptCacheBreak(EventData, type="prompt_cache_break", ephemeral=True):
    primary_reason: str
    contributing_reasons: list[str]
    survived_tokens: int
    frontier_tokens: int
    shortfall_tokens: int
    retention_ratio: float
    before_request: Any | None = None
    after_request: Any | None = None
    model_from: str | None = None
    model_to: str | None = None
    tools_added: list[str] | None = None
    tools_removed: list[str] | None = None
    tools_redefined: list[str] | None = None
    tools_redefined_parts: list[str] | None = None
    tools_reordered: bool | None = None
    system_segments_changed: list[str] | None = None
    cache_config_changed_fields: list[str] | None = None
    rewrite_message_index: int | None = None
    rewrite_shape: str | None = None
    rewrite_source: list[str] | None = None
    agent_name: str | None = None
