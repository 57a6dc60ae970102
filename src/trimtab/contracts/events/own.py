"""Events that only Trimtab writes; other readers of a log may ignore them."""

from typing import Any

from trimtab.contracts.events.envelope import EventData, JsonObject


class ModelCall(EventData, type="trimtab.model_call"):
    """One call to a model, paid for or not: the durable record behind all usage figures.

    `purpose` is main, subagent, compaction, title, bridge or runtime; `status` success, error or
    aborted.
    Numbers the service did not report are absent, never 0. `cost_usd` is absent if the price is
    unknown. `partial_content` is the text that had arrived when a call failed or was aborted. Such
    a call may be billed at an unknown price: limits count the `estimated` figures for it.
    """

    purpose: str
    model: str
    status: str
    requested_model: str | None = None
    turn_id: str | None = None
    attempt: int = 0
    duration_ms: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    status_code: int | None = None
    partial_content: str | None = None
    estimated_tokens: int | None = None
    estimated_cost_usd: float | None = None
    client: str | None = None
    """The program that made a call through the bridge, as it names itself, or a runtime."""
    settles: int | None = None
    """The number of earlier calls that `cost_usd` pays for as well, as a runtime told it."""
    route: str | None = None
    request_id: str | None = None
    """The id of the `trimtab.bridge_request` that says what was sent."""
    premium_requests: float | None = None
    """The premium requests it cost: the model's multiplier for the first call of a prompt."""


class BridgeRequest(EventData, type="trimtab.bridge_request"):
    """A program's request to the bridge, as a difference to an earlier one.

    It has the first `kept` messages of the request with the id `continues` and then `messages`;
    its other fields are those of that request, changed by `fields` and without `removed`. So a
    growing conversation is stored once.
    """

    client: str
    route: str
    model: str
    wire: str
    kept: int = 0
    continues: str | None = None
    messages: list[Any] = []
    fields: JsonObject = {}
    removed: list[str] = []


class BridgeLeftOut(EventData, type="trimtab.bridge_left_out"):
    """Parts of a program's request that the model's service cannot take; told once each."""

    route: str
    wire: str
    items: list[str]
    message: str


class RuntimeStarted(EventData, type="trimtab.runtime_started"):
    """Another agent's program began to answer a prompt, with its own models or with the host's."""

    runtime: str
    version: str | None = None
    models: str = "own"
    program: str | None = None
    resumed: str | None = None
    """The id of the program's own session that it goes on with."""
    handed_over: int | None = None
    """The number of earlier messages that it was told as text, because it took no part in them."""


class RuntimeSession(EventData, type="trimtab.runtime_session"):
    """The id of a runtime's own session, by which a resumed session goes on with it."""

    runtime: str
    session_id: str


class RuntimeEvent(EventData, type="trimtab.runtime_event"):
    """A line that a runtime printed, as it printed it; a text if it is not a JSON object.

    Pieces of text that a later line repeats as a whole are ephemeral.
    """

    runtime: str
    event: Any


class RuntimeEnded(EventData, type="trimtab.runtime_ended"):
    """The program of a runtime ended. Figures are its own; it did not tell those that are absent.

    `success` is what its result says, whatever its exit code is.
    """

    runtime: str
    success: bool
    exit_code: int | None = None
    error: str | None = None
    turns: int | None = None
    duration_ms: int | None = None
    cost_usd: float | None = None
    premium_requests: float | None = None


class ArgumentsChanged(EventData, type="trimtab.arguments_changed"):
    """A hook changed the arguments of a tool call: the model is shown the call as it was made."""

    tool_call_id: str
    arguments: JsonObject


class ToolRunning(EventData, type="trimtab.tool_running", ephemeral=True):
    """A tool call begins to run: every question about it has been decided.

    Displays wait for it with the line of a call, so that none says "running" before a question.
    """

    tool_call_id: str


class PromptQueued(EventData, type="trimtab.prompt_queued"):
    """A prompt was accepted. It leaves the queue with the `user.message` of the same messageId."""

    message_id: str
    text: str
    mode: str = "enqueue"
    source: str = "user"
    billable: bool = True
    front: bool = False
    display: str | None = None
    attachments: list[JsonObject] | None = None
    answer_schema: JsonObject | None = None
    notification: JsonObject | None = None
    """The kind of the `system.notification` that the prompt becomes, if it is one."""


class PromptWithdrawn(EventData, type="trimtab.prompt_withdrawn"):
    """A queued prompt left the queue unanswered.

    `reason` says why it was withdrawn, or `consumed` if the program answered it, not the model.
    """

    message_id: str
    reason: str | None = None


class PromptChanged(EventData, type="trimtab.prompt_changed"):
    """A queued prompt was edited, moved or sent to the running turn. Absent fields stay.

    `before` is the prompt it now stands in front of; an empty text means the end of the queue.
    """

    message_id: str
    text: str | None = None
    display: str | None = None
    before: str | None = None
    mode: str | None = None


class QueuePaused(EventData, type="trimtab.queue_paused"):
    """Somebody paused the queue, or let it go on; steering prompts are not held up."""

    paused: bool


class RetryWait(EventData, type="trimtab.retry_wait", ephemeral=True):
    """The countdown of a wait that `assistant.turn_retry` announced, every few seconds."""

    turn_id: str
    seconds_left: float


class MessageTelemetry(EventData, type="trimtab.message_telemetry", ephemeral=True):
    """The work on a message took so much. It is shown to clients and sent to nobody.

    `destination` is `local`, or `opentelemetry` if the person has switched the export on.
    """

    stop_reason: str
    model: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    lines_added: int
    lines_removed: int
    duration_ms: int
    destination: str


class CompactionSkipped(EventData, type="trimtab.compaction_skipped", ephemeral=True):
    """The conversation was not summarised, and why; sent when the use of the window changes."""

    reason: str
    """`low_utilization`, `too_few_messages`, `little_to_gain`, `writer_failed` or `verbatim`."""
    utilization: float
    """The share of the window that is used."""
    threshold: float


class ImagesRemoved(EventData, type="trimtab.images_removed"):
    """A request was too large, so every earlier image was removed from the conversation."""

    count: int
    reason: str | None = None


class LeftOut(EventData, type="trimtab.left_out"):
    """A folder's configuration was not loaded; `reason` is untrusted or changed."""

    folder: str
    reason: str
    items: list[JsonObject]
    message: str


class ConnectionRefused(EventData, type="trimtab.connection_refused"):
    """A sandboxed command tried to connect to a host that is denied or not on its list."""

    host: str
    port: int
    reason: str
    tool_call_id: str | None = None


class PullRequestOpened(EventData, type="trimtab.pull_request_opened"):
    """A tool or command opened a pull request."""

    url: str
    tool_call_id: str | None = None


class Suspended(EventData, type="trimtab.suspended"):
    """The session was suspended while these tool calls waited for a client; they may be resumed."""

    tool_call_ids: list[str]


class AgentChanged(EventData, type="trimtab.agent_changed"):
    """A sub-agent changed otherwise than by working.

    `change` is promoted (its caller no longer waits for it), interrupted (the process that ran it
    ended) or removed (it is no longer listed).
    """

    change: str
    reason: str | None = None


class McpResourceUpdated(EventData, type="trimtab.mcp_resource_updated", ephemeral=True):
    """A resource that the session has read from an MCP server has changed there."""

    server_name: str
    uri: str


class EventsDropped(EventData, type="trimtab.events_dropped", ephemeral=True):
    """A slow subscriber missed so many ephemeral events; it received every durable one."""

    count: int
    reason: str


class FleetProgress(EventData, type="trimtab.fleet", ephemeral=True):
    """An event of a fleet, as its own log has it; `message` is a line for people, if it needs one.

    The types and fields of `event` are described in `trimtab/fleet/events.py`.
    """

    fleet_id: str
    event: JsonObject
    message: str = ""
