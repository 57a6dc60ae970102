"""Hosts a session that a front end has opened: its socket, its requests, its fleets.

Everything but the socket is imported when it is needed, so that a short run starts without it.
"""

import asyncio
from typing import TYPE_CHECKING

from trimtab.checkout.checkout import Checkout, find_checkout
from trimtab.host.session_socket import Serve, listen

if TYPE_CHECKING:
    from trimtab.contracts.events.envelope import Event
    from trimtab.contracts.run import Prompt
    from trimtab.host.lifecycle import RequestLifecycle
    from trimtab.runtime.live import LiveSession

FOLLOWED = frozenset(
    (
        "trimtab.prompt_queued",
        "trimtab.prompt_withdrawn",
        "trimtab.checkpoint",
        "trimtab.worktree",
        "user.message",
        "assistant.turn_start",
        "session.error",
        "tool.execution_start",
        "trimtab.pull_request_opened",
        "trimtab.workspace_changed",
        "abort",
        "session.idle",
    )
)
"""Events about requests, which are kept until their metadata is."""
DELAY = 0.25
"""Seconds from the first prompt until metadata is kept: the model is awaited by then."""


def host_session(live: "LiveSession", serve: Serve) -> None:
    """Let other processes reach a session, keep its metadata, let it start fleets and schedules."""
    listen(live, serve)
    follow_requests(live)
    live.start_fleet = start_fleet
    live.schedule = schedule


def follow_requests(live: "LiveSession") -> None:
    """Keep the metadata of a session's requests, soon after the first of them.

    What a short run does is kept at its end; the state of the repository is noted before the
    first tool call may change it.
    """
    follower = _Follower(live)
    live.subscribe(follower.on_event)
    live.on_close(follower.stop)


class _Follower:
    """Collects events until it passes them and all later ones to the lifecycle."""

    def __init__(self, live: "LiveSession") -> None:
        self._live = live
        self._early: list[Event] = []
        self._before: Checkout | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lifecycle: RequestLifecycle | None = None

    def on_event(self, event: "Event", _line: bytes) -> None:
        if self._lifecycle is not None:
            self._lifecycle.on_event(event)
            return
        if event.type not in FOLLOWED:
            return
        self._early.append(event)
        if event.type in ("session.idle", "trimtab.prompt_withdrawn"):
            self._begin()
        elif event.type == "tool.execution_start" and self._before is None:
            self._before = find_checkout(self._live.controls.options.cwd)
        elif event.type == "user.message" and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY, self._begin)

    def _begin(self) -> None:
        if self._lifecycle is not None:
            return
        from trimtab.host.lifecycle import RequestLifecycle

        self._lifecycle = RequestLifecycle(self._live, self._before)
        for event in self._early:
            self._lifecycle.on_event(event)
        self._early.clear()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._early:
            self._begin()


async def start_fleet(live: "LiveSession", goal: "Prompt") -> str:
    """Start a fleet for a session."""
    from trimtab.fleet.session_fleet import start_in_session

    return await start_in_session(live, goal)


def schedule(live: "LiveSession", command: str, arguments: str) -> str:
    """Run a slash command that sends prompts later."""
    from trimtab.host.schedule_commands import run_command

    return run_command(live, command, arguments)
