"""Folds the events of a session into the details of its requests, also of those that overlap."""

from collections.abc import Callable
from typing import Any

from trimtab.contracts.events.assistant import Abort, AssistantTurnStart
from trimtab.contracts.events.changes import Checkpoint, WorkspaceChanged
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import PromptQueued, PromptWithdrawn, PullRequestOpened
from trimtab.contracts.events.session import SessionError, SessionIdle, SessionShutdown
from trimtab.contracts.events.tool import ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.host.metadata import RequestDetails

MAX_PROMPT = 200
"""Characters of a prompt that its details keep."""


class RequestFold:
    """The requests of a session by the id of their prompt.

    A prompt that steers joins the requests that are being answered: all of them end when the next
    prompt of the queue begins or the session is idle. Tool calls belong to the request that was
    delivered last. An error fails the requests if nothing is done after it.
    """

    def __init__(self, requests: dict[str, RequestDetails]) -> None:
        self.requests = requests
        self.current = ""
        """The id of the request that was delivered last, while it is being answered."""
        self._start: Checkpoint | None = None
        self._error = ""
        self._answered = ""
        """The id of the slash command that was answered last, until something else is done."""

    @property
    def running(self) -> list[RequestDetails]:
        return [request for request in self.requests.values() if request.state == "running"]

    def apply(self, event: Event) -> None:
        case = CASES.get(type(event.data))
        if case is not None and (event.agent_id is None or type(event.data) in OF_ALL_AGENTS):
            case(self, event, event.data)

    def queued(self, event: Event, data: PromptQueued) -> None:
        if data.source == "user" and data.notification is None:
            prompt = shorten(data.display or data.text)
            details = RequestDetails(prompt=prompt, queued=event.timestamp)
            self.requests.setdefault(data.message_id, details)

    def delivered(self, event: Event, data: UserMessage) -> None:
        if data.source not in (None, "user"):
            return
        key = data.message_id or event.id
        steers = data.delivery == "steering"
        if not steers:
            self._end(event)
        request = self.requests.setdefault(key, RequestDetails(prompt=shorten(data.content)))
        request.state, request.started = "running", event.timestamp
        request.steers = self.current if steers else ""
        if self._start is not None:
            request.turn, request.checkpoints.start = self._start.turn, self._start.ref
            self._start = None
        self.current = key
        self.went_on(event, data)

    def withdrawn(self, event: Event, data: PromptWithdrawn) -> None:
        request = self.requests.get(data.message_id)
        if request is None:
            return
        if data.reason == "rewind":
            self._cut(data.message_id)
        elif data.reason == "consumed":  # a slash command, which the program answered
            request.state, request.ended = "completed", event.timestamp
            self._answered = data.message_id
        elif request.state == "queued":
            request.state, request.ended = "withdrawn", event.timestamp

    def _cut(self, first: str) -> None:
        """Forget a request and all later ones, which a rewind removed from the log."""
        ids = list(self.requests)
        for key in ids[ids.index(first) :]:
            del self.requests[key]

    def went_on(self, _event: Event, _data: EventData) -> None:
        """Forget an error that did not end the work."""
        self._error = self._answered = ""

    def failed(self, _event: Event, data: SessionError) -> None:
        self._error = data.message
        command = self.requests.get(self._answered)
        if command is not None:  # its error follows its answer
            command.state, command.error = "failed", data.message
            self.went_on(_event, data)

    def called(self, _event: Event, data: ToolExecutionStart) -> None:
        self.went_on(_event, data)
        request = self._find_current()
        if request is not None:
            request.tool_calls[data.tool_call_id] = data.tool_name

    def _find_current(self) -> RequestDetails | None:
        """Return the request at work; a slash command is at work while it is first in the queue."""
        if self.current:
            return self.requests.get(self.current)
        waiting = (request for request in self.requests.values() if request.state == "queued")
        return next(waiting, None)

    def saved(self, _event: Event, data: Checkpoint) -> None:
        if data.at == "start":  # its prompt is delivered next
            self._start = data
            return
        for request in self.requests.values():
            if request.turn == data.turn:
                request.checkpoints.end = data.ref

    def proposed(self, _event: Event, data: PullRequestOpened) -> None:
        owners = (
            request for request in self.requests.values() if data.tool_call_id in request.tool_calls
        )
        request = next(owners, None) or self._find_current()
        if request is not None and data.url not in request.pull_requests:
            request.pull_requests.append(data.url)

    def changed(self, _event: Event, data: WorkspaceChanged) -> None:
        request = self._find_current()
        if data.reason == "person" and request is not None:
            request.files_changed_by_others += data.count

    def idle(self, event: Event, _data: SessionIdle | SessionShutdown) -> None:
        """End the requests. Idle events are not stored; in a log others tell of the end."""
        self._end(event)

    def aborted(self, event: Event, _data: Abort) -> None:
        for request in self.running:
            request.state, request.ended = "interrupted", event.timestamp
        self.current = ""

    def _end(self, event: Event) -> None:
        for request in self.running:
            request.state, request.error = "failed" if self._error else "completed", self._error
            request.ended = event.timestamp
        self.current = self._error = ""


def shorten(text: str) -> str:
    """Return a text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_PROMPT else f"{line[: MAX_PROMPT - 1]}…"


CASES: dict[type[EventData], Callable[[RequestFold, Event, Any], None]] = {
    PromptQueued: RequestFold.queued,
    PromptWithdrawn: RequestFold.withdrawn,
    UserMessage: RequestFold.delivered,
    AssistantTurnStart: RequestFold.went_on,
    ToolExecutionStart: RequestFold.called,
    Checkpoint: RequestFold.saved,
    PullRequestOpened: RequestFold.proposed,
    WorkspaceChanged: RequestFold.changed,
    SessionError: RequestFold.failed,
    SessionIdle: RequestFold.idle,
    SessionShutdown: RequestFold.idle,
    Abort: RequestFold.aborted,
}
OF_ALL_AGENTS = (ToolExecutionStart, PullRequestOpened, WorkspaceChanged)
"""Events of sub-agents that count for the request they work for."""
