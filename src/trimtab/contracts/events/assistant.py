"""Events about the model's answers, streamed and final."""

from trimtab.contracts.events.envelope import EventData, JsonObject


class AssistantTurnStart(EventData, type="assistant.turn_start"):
    turn_id: str
    interaction_id: str | None = None
    model: str | None = None
    parent_tool_call_id: str | None = None


class AssistantTurnRetry(EventData, type="assistant.turn_retry", ephemeral=True):
    turn_id: str
    model: str | None = None
    reason: str | None = None
    retry_in_seconds: float | None = None
    """Ours, like the two below: the wait, the number of this retry, and of how many."""
    retry: int | None = None
    max_retries: int | None = None


class AgentInterrupted(EventData, type="agent.interrupted", ephemeral=True):
    activity: str
    elapsed_ms: int | float
    turn: int
    model: str | None = None
    api_endpoint: str | None = None
    transport: str | None = None
    reasoning_effort: str | None = None
    cancel_phase: str | None = None
    output_ttft_ms: int | float | None = None
    tool_names: list[str] | None = None
    tool_call_ids: list[str] | None = None
    safe_tool_names: list[str] | None = None
    interrupted_agent_count: int | None = None


class AssistantIntent(EventData, type="assistant.intent", ephemeral=True):
    intent: str


class AssistantReasoning(EventData, type="assistant.reasoning"):
    reasoning_id: str
    content: str
    reasoning_opaque: str | None = None
    """Ours: the opaque form, for models without a readable one."""
    duration_ms: int | None = None
    """Ours: the time from its first delta to its end; absent if it was not streamed."""


class AssistantReasoningDelta(EventData, type="assistant.reasoning_delta", ephemeral=True):
    reasoning_id: str
    delta_content: str


class AssistantToolCallDelta(EventData, type="assistant.tool_call_delta", ephemeral=True):
    tool_call_id: str
    input_delta: str
    tool_name: str | None = None
    tool_type: str | None = None


class AssistantStreamingDelta(EventData, type="assistant.streaming_delta", ephemeral=True):
    total_response_size_bytes: int


class AssistantMessage(EventData, type="assistant.message"):
    message_id: str
    content: str
    tool_requests: list[JsonObject] | None = None
    reasoning_opaque: str | None = None
    reasoning_text: str | None = None
    encrypted_content: str | None = None
    phase: str | None = None
    output_tokens: int | None = None
    interaction_id: str | None = None
    request_id: str | None = None
    parent_tool_call_id: str | None = None
    originating_message_id: str | None = None
    model: str | None = None
    provider_id: str | None = None
    reasoning_wire_field: str | None = None
    api_call_id: str | None = None
    reasoning_blocks: JsonObject | None = None
    turn_id: str | None = None
    citations: JsonObject | None = None


class AssistantMessageStart(EventData, type="assistant.message_start", ephemeral=True):
    message_id: str
    phase: str | None = None


class AssistantMessageDelta(EventData, type="assistant.message_delta", ephemeral=True):
    message_id: str
    delta_content: str
    parent_tool_call_id: str | None = None


class AssistantTurnEnd(EventData, type="assistant.turn_end"):
    turn_id: str
    model: str | None = None
    parent_tool_call_id: str | None = None


class AssistantIdle(EventData, type="assistant.idle", ephemeral=True):
    aborted: bool | None = None


class AssistantUsage(EventData, type="assistant.usage", ephemeral=True):
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    duration: int | float | None = None
    inter_token_latency_ms: int | float | None = None
    initiator: str | None = None
    api_call_id: str | None = None
    provider_call_id: str | None = None
    parent_tool_call_id: str | None = None
    quota_snapshots: dict[str, JsonObject] | None = None
    copilot_usage: JsonObject | None = None
    reasoning_effort: str | None = None
    provider: JsonObject | None = None
    model_display_name: str | None = None
    time_to_first_token_ms: int | float | None = None
    output_ttft_ms: int | float | None = None
    interaction_type: str | None = None
    is_byok: bool | None = None
    model_provider: str | None = None
    provider_type: str | None = None
    is_auto: bool | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    transport: str | None = None
    api_endpoint: str | None = None
    available_tool_count: int | None = None
    tool_token_count: int | None = None
    num_tool_calls: int | None = None
    tool_counts: dict[str, int] | None = None
    finish_reason: str | None = None
    content_filter_triggered: bool | None = None


class Abort(EventData, type="abort"):
    reason: str
