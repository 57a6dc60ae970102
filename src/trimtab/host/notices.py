"""The level, kind and text of events that faces show as a remark."""

from collections.abc import Callable
from typing import Any, Literal

from trimtab.contracts.events.assistant import Abort, AssistantTurnRetry
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.own import LeftOut, PullRequestOpened
from trimtab.contracts.events.session import (
    SessionError,
    SessionInfo,
    SessionTaskComplete,
    SessionWarning,
)
from trimtab.contracts.events.system import SystemNotification

NOTIFICATION = ("<system_notification>\n", "\n</system_notification>")
"""Marks for the model around our own notifications."""
NoticeText = tuple[Literal["info", "warning", "error", "answer"], str, str]
NOTICES: dict[type[EventData], Callable[[Any], NoticeText]] = {
    SessionInfo: lambda data: (
        "answer" if data.info_type == "command" else "info",
        data.info_type,
        data.message,
    ),
    SessionWarning: lambda data: ("warning", data.warning_type, data.message),
    SessionError: lambda data: ("error", data.error_type, data.message),
    SessionTaskComplete: lambda data: (
        "warning" if data.success is False else "info",
        "task_complete",
        data.summary or "",
    ),
    SystemNotification: lambda data: (
        "info",
        str(data.kind.get("type") or "notification"),
        data.content.removeprefix(NOTIFICATION[0]).removesuffix(NOTIFICATION[1]),
    ),
    AssistantTurnRetry: lambda data: (
        "warning",
        "retry",
        data.reason or "The model call is being retried.",
    ),
    PullRequestOpened: lambda data: ("info", "pull_request", f"Pull request: {data.url}"),
    LeftOut: lambda data: ("warning", "left_out", data.message),
    Abort: lambda _: ("warning", "abort", "Stopped by the user."),
}
"""The level, kind and text of the notice for each event type."""
