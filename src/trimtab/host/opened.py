"""Hosts a session that a front end has opened: its socket, its requests, its fleets.

Everything but the socket is imported when it is needed, so that a short run starts without it.
"""

from typing import TYPE_CHECKING

from trimtab.host.session_socket import Serve, listen

if TYPE_CHECKING:
    from trimtab.contracts.events.envelope import Event
    from trimtab.contracts.run import Prompt
    from trimtab.host.lifecycle import RequestLifecycle
    from trimtab.runtime.live import LiveSession

WAITING = frozenset(("trimtab.prompt_queued", "trimtab.checkpoint", "user.message"))
"""Events about requests that may come before anything has been done for them."""
WORKING = frozenset(("tool.execution_start", "trimtab.prompt_withdrawn", "session.idle"))
"""Events that say that something was done, or will be next."""


def host_session(live: "LiveSession", serve: Serve) -> None:
    """Let other processes reach a session, keep its metadata, and let it start fleets."""
    listen(live, serve)
    follow_requests(live)
    live.start_fleet = start_fleet


def follow_requests(live: "LiveSession") -> None:
    """Keep the metadata of a session's requests from its first tool call or idle moment on."""
    waiting: list[Event] = []
    lifecycle: RequestLifecycle | None = None

    def on_event(event: "Event", _line: bytes) -> None:
        nonlocal lifecycle
        if lifecycle is not None:
            lifecycle.on_event(event)
            return
        if event.type in WAITING or event.type in WORKING:
            waiting.append(event)
        if event.type in WORKING:
            from trimtab.host.lifecycle import RequestLifecycle

            lifecycle = RequestLifecycle(live)
            for early in waiting:
                lifecycle.on_event(early)
            waiting.clear()

    live.subscribe(on_event)


async def start_fleet(live: "LiveSession", goal: "Prompt") -> str:
    """Start a fleet for a session."""
    from trimtab.fleet.session_fleet import start_in_session

    return await start_in_session(live, goal)
