"""Open permission questions and denied calls. Never used to grant anything."""

from typing import ClassVar

from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage


class Approvals:
    """Open requests, the number of approvals, and the denials.

    Valid approvals are kept by the permission processor only: anybody may have written a log, so
    nothing is ever allowed because a log says that it was allowed.
    """

    reads: ClassVar[frozenset[str]] = frozenset(
        (
            "permission.requested",
            "permission.completed",
            "tool.execution_start",
            "tool.execution_complete",
            "user.message",
        )
    )

    def __init__(self) -> None:
        self.pending: dict[str, JsonObject] = {}
        self.approved = 0
        self.denials: list[JsonObject] = []
        self.unresolved: set[str] = set()
        """Tools that were denied since the person's last prompt and have not succeeded since."""
        self._names: dict[str, str] = {}

    def apply(self, event: Event) -> None:
        match event.data:
            case PermissionRequested(request_id=request_id, permission_request=request):
                self.pending[request_id] = request
            case PermissionCompleted(request_id=request_id, result=result):
                self.pending.pop(request_id, None)
                self.approved += str(result.get("kind", "")).startswith("approved")
            case ToolExecutionStart(tool_call_id=call_id, tool_name=name):
                self._names[call_id] = name
            case ToolExecutionComplete() as done:
                self._complete(done)
            case UserMessage(source=None):
                self.unresolved.clear()

    def _complete(self, done: ToolExecutionComplete) -> None:
        name = self._names.pop(done.tool_call_id, "")
        error = done.error or {}
        if done.success:
            self.unresolved.discard(name)
        elif error.get("code") in ("denied", "rejected"):
            self.unresolved.add(name)
            self.denials.append(
                {
                    "toolName": name,
                    "toolCallId": done.tool_call_id,
                    "reason": done.model_text or error.get("message"),
                }
            )
