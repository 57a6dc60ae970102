"""Tasks that clients work on outside of the session: registered, followed, cancelled."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id, timestamp
from trimtab.host.ports import ClientError, ClientGone, ClientPort

MAX_TASKS = 1000
RECENT = 20
"""The number of messages that the progress of a task shows."""
CANCEL_SECONDS = 30.0
"""The time that a client has to end its work."""
ENDED = frozenset(("completed", "failed", "cancelled"))
TaskFailure = Literal["TASK_NOT_FOUND", "TASK_NOT_OWNER", "TASK_CONFLICT"]


class TaskProblem(UsageError):
    """Raised when a task cannot be registered or updated; the protocol has names for the cases."""

    def __init__(self, name: TaskFailure, message: str, **data: Any) -> None:
        super().__init__(message)
        self.name = name
        self.data = {key: value for key, value in data.items() if value is not None}


class Registration(msgspec.Struct, kw_only=True, rename="camel"):
    """A client's description of a task. `client_task_id` names it among the client's tasks."""

    client_task_id: str
    description: str
    cancellable: bool
    type: Literal["client"] = "client"
    display_name: str | None = None
    expected_sequence: int | None = None


class Update(msgspec.Struct, kw_only=True, rename="camel"):
    """Progress of a task, or its end."""

    kind: Literal["progress", "completed", "failed", "cancelled"]
    message: str | None = None
    percentage: float | msgspec.UnsetType | None = msgspec.UNSET
    phase: str | msgspec.UnsetType | None = msgspec.UNSET
    status: Literal["running", "idle"] | None = None
    result: Any = None
    error: str | None = None
    code: str | None = None
    reason: str | None = None


class ClientTask:
    """A task, its owner and its state."""

    def __init__(self, owner: ClientPort, registration: Registration) -> None:
        self.id = new_id()
        self.owner: ClientPort | None = owner
        self.participant = new_id()
        self.join = new_id()
        self.registration = registration
        self.status = "running"
        self.sequence = 0
        self.last: Update | None = None
        self.activity: list[JsonObject] = []
        self.percentage: float | None = None
        self.phase: str | None = None
        self.fields: JsonObject = {}
        """Times and the outcome, in the words of the protocol."""
        self.started = self.updated = timestamp()
        self.left = ""
        """The time at which its client disconnected."""
        self._active_since: float | None = time.monotonic()
        self._active_from = self.started
        self._active = 0.0

    def move(self, status: str) -> None:
        """Change the status, and count the time spent at work."""
        if self._active_since is not None:
            self._active += time.monotonic() - self._active_since
        self._active_since = time.monotonic() if status == "running" else None
        self.status, self.updated = status, timestamp()
        self._active_from = self.updated if status == "running" else ""
        self.fields.pop("idleSince", None)
        if status == "idle":
            self.fields["idleSince"] = self.updated
        elif status in ENDED:
            self.fields["completedAt"] = self.updated

    def apply(self, update: Update) -> None:
        self.last, self.updated = update, timestamp()
        if update.message:
            self.activity.append({"message": update.message, "timestamp": self.updated})
            del self.activity[:-RECENT]
        if update.percentage is not msgspec.UNSET:
            self.percentage = update.percentage
        if update.phase is not msgspec.UNSET:
            self.phase = update.phase
        if update.kind != "progress":
            outcome = {
                "result": update.result,
                "error": update.error,
                "errorCode": update.code,
                "cancellationReason": update.reason,
            }
            self.fields |= {name: value for name, value in outcome.items() if value is not None}
            self.move(update.kind)
        elif update.status is not None and update.status != self.status:
            self.move(update.status)

    def describe(self) -> JsonObject:
        """Return the task as the protocol describes it."""
        connected, active = self.owner is not None, self._active
        if self._active_since is not None:
            active += time.monotonic() - self._active_since
        owner = {
            "kind": "sdk",
            "participantId": self.participant,
            "joinId": self.join,
            "presence": "connected" if connected else "disconnected",
        }
        if not connected:
            owner["disconnectedAt"] = self.left
        about: JsonObject = {
            "type": "client",
            "id": self.id,
            "clientTaskId": self.registration.client_task_id,
            "description": self.registration.description,
            "executionMode": "background",
            "status": self.status,
            "sequence": self.sequence,
            "startedAt": self.started,
            "updatedAt": self.updated,
            "activeTimeMs": int(active * 1000),
            "canCancel": connected and self.registration.cancellable and self.status not in ENDED,
            "owner": owner,
            **self.fields,
        }
        if self._active_from:
            about["activeStartedAt"] = self._active_from
        if self.registration.display_name is not None:
            about["displayName"] = self.registration.display_name
        return about

    def describe_progress(self) -> JsonObject:
        progress: JsonObject = {
            "type": "client",
            "status": self.status,
            "sequence": self.sequence,
            "updatedAt": self.updated,
            "recentActivity": list(self.activity),
        }
        if self.activity:
            progress["lastMessage"] = self.activity[-1]["message"]
        if self.percentage is not None:
            progress["percentage"] = self.percentage
        if self.phase is not None:
            progress["phase"] = self.phase
        return progress


class ClientTasks:
    """The tasks that the clients of one session registered."""

    def __init__(self, on_change: Callable[[], object]) -> None:
        self._tasks: dict[str, ClientTask] = {}
        self._on_change = on_change

    def list(self) -> list[JsonObject]:
        return [task.describe() for task in self._tasks.values()]

    def find(self, task_id: str) -> ClientTask | None:
        return self._tasks.get(task_id)

    def register(self, owner: ClientPort, registration: Registration) -> JsonObject:
        """Add a task, or return to one that its client left. Raises `UsageError`."""
        if not registration.client_task_id.strip():
            raise UsageError("The task's clientTaskId is empty; give it one.")
        known = self._find_own(owner, registration)
        if known is None:
            if len(self._tasks) >= MAX_TASKS:
                raise UsageError(f"A session has at most {MAX_TASKS} tasks; remove some.")
            task = ClientTask(owner, registration)
            self._tasks[task.id] = task
            self._on_change()
            return {"created": True, "reclaimed": False, "task": task.describe()}
        self._check_same(known, registration)
        reclaimed = known.owner is None
        if reclaimed:
            known.owner, known.join = owner, new_id()
            if known.status not in ENDED:
                known.move("running")
            known.fields["reclaimedAt"] = timestamp()
            self._on_change()
        return {"created": False, "reclaimed": reclaimed, "task": known.describe()}

    def _find_own(self, owner: ClientPort, given: Registration) -> ClientTask | None:
        """Return the client's task of this name, or one that its client left.

        Clients have no identity beyond their connection, so the number of the last update shows
        that a client knows the task that it takes up.
        """
        named = [
            task
            for task in self._tasks.values()
            if task.registration.client_task_id == given.client_task_id
        ]
        left = (
            task
            for task in named
            if task.owner is None
            and task.sequence == given.expected_sequence
            and task.registration.description == given.description
        )
        return next((task for task in named if task.owner is owner), next(left, None))

    def _check_same(self, known: ClientTask, given: Registration) -> None:
        before, expected = known.registration, given.expected_sequence
        if (before.description, before.cancellable) != (given.description, given.cancellable):
            raise TaskProblem(
                "TASK_CONFLICT",
                "The task is registered with another description; use another clientTaskId.",
                reason="descriptor_mismatch",
                clientTaskId=before.client_task_id,
            )
        if expected is not None and expected != known.sequence:
            raise _wrong_sequence(known, expected)

    def update(self, owner: ClientPort, task_id: str, sequence: int, update: Update) -> JsonObject:
        """Apply an update of a task's owner. Raises `TaskProblem`."""
        task = self._tasks.get(task_id)
        if task is None:
            message = f"Unknown task {task_id!r}; register it first."
            raise TaskProblem("TASK_NOT_FOUND", message, taskId=task_id)
        if task.owner is not owner:
            message = f"Another client works on the task {task_id!r}; register your own."
            raise TaskProblem("TASK_NOT_OWNER", message, taskId=task_id)
        if sequence == task.sequence and update == task.last:
            return {"applied": False, "duplicate": True, "task": task.describe()}
        if task.status in ENDED:
            message = f"The task {task_id!r} has ended; register another one."
            raise TaskProblem("TASK_CONFLICT", message, reason="task_ended", taskId=task_id)
        if sequence != task.sequence + 1:
            raise _wrong_sequence(task, task.sequence + 1, sequence)
        task.sequence = sequence
        task.apply(update)
        self._on_change()
        return {"applied": True, "duplicate": False, "task": task.describe()}

    def leave(self, owner: ClientPort) -> None:
        """Mark the tasks of a client that disconnected; it can register them again."""
        for task in self._tasks.values():
            if task.owner is owner:
                task.owner, task.left = None, timestamp()
                if task.status not in ENDED:
                    task.move("orphaned")
                    task.fields["orphanedAt"] = task.updated
                    self._on_change()

    async def cancel(self, session_id: str, task: ClientTask) -> bool:
        """Ask a task's owner to end it; return True once the owner says that it has."""
        if task.owner is None or not task.registration.cancellable or task.status in ENDED:
            return False
        params = {
            "sessionId": session_id,
            "id": task.id,
            "clientTaskId": task.registration.client_task_id,
            "cancellationId": new_id(),
            "reason": "cancel_requested",
        }
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                reply = await task.owner.ask("tasks.cancel", params)
        except (ClientGone, ClientError, TimeoutError):
            return False
        cancelled = isinstance(reply, dict) and reply.get("cancelled") is True
        if cancelled and task.status not in ENDED:
            task.move("cancelled")
            self._on_change()
        return cancelled

    def remove(self, task_id: str) -> bool:
        """Take a task that ended, or that nobody works on, off the list."""
        task = self._tasks.get(task_id)
        if task is None or task.status not in (*ENDED, "orphaned"):
            return False
        del self._tasks[task_id]
        self._on_change()
        return True


def _wrong_sequence(task: ClientTask, expected: int, received: int | None = None) -> TaskProblem:
    return TaskProblem(
        "TASK_CONFLICT",
        f"The task is at sequence {task.sequence}; count on from there.",
        reason="sequence_mismatch",
        taskId=task.id,
        clientTaskId=task.registration.client_task_id,
        currentSequence=task.sequence,
        expectedSequence=expected,
        receivedSequence=received,
    )
