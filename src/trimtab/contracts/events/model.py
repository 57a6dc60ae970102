"""Events about single calls to a model service."""

from trimtab.contracts.events.envelope import EventData, JsonObject


class ModelCallFailure(EventData, type="model.call_failure", ephemeral=True):
    source: str
    model: str | None = None
    parent_tool_call_id: str | None = None
    initiator: str | None = None
    api_call_id: str | None = None
    provider_call_id: str | None = None
    status_code: int | None = None
    duration_ms: int | float | None = None
    api_endpoint: str | None = None
    transport: str | None = None
    failure_kind: str | None = None
    retry_attempt: int | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    is_byok: bool | None = None
    model_provider: str | None = None
    provider_type: str | None = None
    is_auto: bool | None = None
    reasoning_effort: str | None = None
    interaction_type: str | None = None
    error_message: str | None = None
    bad_request_kind: str | None = None
    error_code: str | None = None
    error_type: str | None = None
    quota_snapshots: dict[str, JsonObject] | None = None
    request_fingerprint: JsonObject | None = None


class ModelCallFinalResult(EventData, type="model.call_final_result", ephemeral=True):
    model: str
    result: str
    is_byok: bool | None = None


class ModelCallFinished(EventData, type="model.call_finished", ephemeral=True):
    turn_id: str
    dispatch_duration_ms: int | float
    outcome: str
    edit_classifier_version: int
    interaction_id: str | None = None
    contains_built_in_file_edit_request: bool | None = None


class ModelCallStart(EventData, type="model.call_start", ephemeral=True):
    turn_id: str
    model: str | None = None
    previous_response_id: str | None = None
    parent_tool_call_id: str | None = None
