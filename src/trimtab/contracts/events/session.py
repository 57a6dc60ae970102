"""Events about a session as a whole: its start and end, model, mode, title, plan, errors."""

from trimtab.contracts.events.envelope import EventData, JsonObject

LOG_VERSION = 1
"""The version of the log's format, in `session.start`: the latest that this program reads."""


class SessionStart(EventData, type="session.start"):
    session_id: str
    version: int
    producer: str
    copilot_version: str
    start_time: str
    selected_model: str | None = None
    reasoning_effort: str | None = None
    context: JsonObject | None = None
    already_in_use: bool | None = None
    remote_steerable: bool | None = None
    provider_id: str | None = None
    reasoning_effort_model: str | None = None
    context_tier: str | None = None
    session_limits: JsonObject | None = None


class SessionResume(EventData, type="session.resume"):
    resume_time: str
    event_count: int
    selected_model: str | None = None
    reasoning_effort: str | None = None
    context: JsonObject | None = None
    already_in_use: bool | None = None
    remote_steerable: bool | None = None
    events_file_size_bytes: int | None = None
    provider_id: str | None = None
    reasoning_effort_model: str | None = None
    context_tier: str | None = None
    session_limits: JsonObject | None = None
    session_was_active: bool | None = None
    continue_pending_work: bool | None = None


class SessionRemoteSteerableChanged(EventData, type="session.remote_steerable_changed"):
    remote_steerable: bool


class SessionError(EventData, type="session.error"):
    error_type: str
    message: str
    stack: str | None = None
    status_code: int | None = None
    provider_call_id: str | None = None
    url: str | None = None
    originating_message_id: str | None = None
    error_code: str | None = None
    provider_error_type: str | None = None
    provider_error_param: str | None = None
    eligible_for_auto_switch: bool | None = None
    remediation: str | None = None


class SessionIdle(EventData, type="session.idle", ephemeral=True):
    aborted: bool | None = None
    mode: str | None = None


class SessionAutopilotStopped(EventData, type="session.autopilot_stopped", ephemeral=True):
    reason: str
    request_id: str | None = None


class SessionTitleChanged(EventData, type="session.title_changed", ephemeral=True):
    title: str


class SessionInfo(EventData, type="session.info"):
    info_type: str
    message: str
    url: str | None = None
    tip: str | None = None


class SessionWarning(EventData, type="session.warning"):
    warning_type: str
    message: str
    url: str | None = None
    originating_message_id: str | None = None
    remediation: str | None = None


class SessionModelChange(EventData, type="session.model_change"):
    new_model: str
    previous_model: str | None = None
    previous_reasoning_effort: str | None = None
    reasoning_effort: str | None = None
    provider_id: str | None = None
    previous_provider_id: str | None = None
    reasoning_effort_model: str | None = None
    context_tier: str | None = None
    cause: str | None = None
    source: str | None = None


class SessionModeChanged(EventData, type="session.mode_changed"):
    previous_mode: str
    new_mode: str


class SessionModeNoticeDelivered(EventData, type="session.mode_notice_delivered"):
    mode: str
    content: str | None = None


class SessionPermissionsChanged(EventData, type="session.permissions_changed"):
    previous_mode: str | None = None
    mode: str | None = None
    assisted_approval_model: str | None = None


class SessionPlanChanged(EventData, type="session.plan_changed"):
    operation: str


class SessionTodosChanged(EventData, type="session.todos_changed", ephemeral=True):
    pass


class SessionWorkspaceFileChanged(EventData, type="session.workspace_file_changed"):
    path: str
    operation: str


class SessionHandoff(EventData, type="session.handoff"):
    handoff_time: str
    source_type: str
    repository: JsonObject | None = None
    context: str | None = None
    summary: str | None = None
    remote_session_id: str | None = None
    host: str | None = None


class SessionSnapshotRewind(EventData, type="session.snapshot_rewind", ephemeral=True):
    up_to_event_id: str
    events_removed: int
    event_ids: list[str] | None = None


class SessionShutdown(EventData, type="session.shutdown"):
    shutdown_type: str
    total_api_duration_ms: int | float
    session_start_time: int
    code_changes: JsonObject
    model_metrics: dict[str, JsonObject]
    error_reason: str | None = None
    total_premium_requests: float | None = None
    current_model: str | None = None
    current_tokens: int | None = None
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    total_nano_aiu: float | None = None
    token_details: dict[str, JsonObject] | None = None
    events_file_size_bytes: int | None = None
    agent_metrics: dict[str, JsonObject] | None = None


class SessionContextChanged(EventData, type="session.context_changed"):
    cwd: str
    git_root: str | None = None
    repository: str | None = None
    host_type: str | None = None
    repository_host: str | None = None
    branch: str | None = None
    head_commit: str | None = None
    base_commit: str | None = None
    pending_git_context: bool | None = None


class SessionTaskComplete(EventData, type="session.task_complete"):
    summary: str | None = None
    success: bool | None = None
    outcome: str | None = None
    reason: str | None = None
    objective_id: int | None = None
    blocker: JsonObject | None = None


class SessionCompletionReceipt(EventData, type="session.completion_receipt"):
    schema_version: int
    attempt: int
    source_event_id: str
    event_range: JsonObject
    stop_reason: str
    successful_tool_count: int
    failed_tool_count: int
    final_tool: JsonObject | None = None


class SessionAutoModeResolved(EventData, type="session.auto_mode_resolved"):
    chosen_model: str
    available_models: list[str] | None = None
    fallback: bool | None = None
    fallback_reason: str | None = None
