"""Reads the log of a session in pages, and keeps the event types clients are interested in."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Literal

import msgspec

from trimtab.contracts.events.codec import peek
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.question import McpOauthRequired
from trimtab.contracts.ids import new_id
from trimtab.runtime.live import LiveSession
from trimtab.session.records import read_records
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import FAILED, RpcError

methods = Methods()
DEFAULT_PAGE = 200
MAX_PAGE = 1000
MAX_DIGITS = 12


class Read(msgspec.Struct, rename="camel"):
    """`cursor` is the end of the last page; `wait_ms` waits for events if there are none."""

    cursor: str | None = None
    max: int = DEFAULT_PAGE
    wait_ms: int = 0
    types: tuple[str, ...] | str | None = None
    direction: str = "forward"


@methods.on("session.eventLog.read", Read)
async def read(call: Call, params: Read) -> JsonObject:
    """Return a page of durable events."""
    live = call.session.live
    backward = (params.cursor or "").startswith("b") or (
        params.cursor is None and params.direction == "backward"
    )
    position, status = _position(params.cursor, live.event_count, backward=backward)
    wanted = params.types if isinstance(params.types, tuple) else None
    events = live.read_events()
    if not backward and params.wait_ms > 0 and not _has_type(events[position:], wanted):
        await _next_event(live, min(params.wait_ms, 60_000) / 1000, wanted)
        events = live.read_events()
    page = cut_page if wanted is None else partial(cut_filtered_page, wanted=wanted)
    chunk, cursor, more = page(events, position, params.max, backward=backward)
    return {
        "events": chunk,
        "cursor": cursor,
        "hasMore": more,
        "cursorStatus": status,
    }


def cut_page(
    events: Sequence[msgspec.Raw], position: int, size: int, *, backward: bool
) -> tuple[Sequence[msgspec.Raw], str, bool]:
    """Return a page of events, the cursor of the next one, and whether there is one."""
    size = max(1, min(size, MAX_PAGE))
    if backward:
        start = max(0, position - size)
        return events[start:position], f"b{start}", start > 0
    end = min(len(events), position + size)
    return events[position:end], str(end), end < len(events)


def cut_filtered_page(
    events: Sequence[msgspec.Raw],
    position: int,
    size: int,
    *,
    backward: bool,
    wanted: Collection[str],
) -> tuple[Sequence[msgspec.Raw], str, bool]:
    """Return a page of the events of some types, like `cut_page`; other events are skipped."""
    size = max(1, min(size, MAX_PAGE))
    places = range(position - 1, -1, -1) if backward else range(position, len(events))
    matching = (place for place in places if peek(events[place]).type in wanted)
    found = list(islice(matching, size))
    more = next(matching, None) is not None
    if backward:
        chunk = [events[place] for place in reversed(found)]
        return chunk, f"b{found[-1] if more else 0}", more
    end = found[-1] + 1 if more else len(events)
    return [events[place] for place in found], str(end), more


class ReadStored(msgspec.Struct):
    cursor: str | None = None
    max: int = DEFAULT_PAGE
    direction: Literal["forward", "backward"] = "forward"


@methods.on("sessions.readPersistedEvents", ReadStored)
async def read_stored(call: Call, params: ReadStored) -> JsonObject:
    """Return a page of the events of a session, without opening it.

    A cursor names the number of events that the first page saw; later events are not returned.
    """
    session_id = call.session_id or ""
    if not call.server.runtime.store.exists(session_id):
        raise RpcError(FAILED, f"Persisted event journal is unavailable for session {session_id}")
    records = read_records(call.server.archive.folder(session_id).events)
    events = [msgspec.Raw(record.line) for record in records]
    given, _, seen = (params.cursor or f"/{len(events)}").partition("/")
    backward = given.startswith("b") or (not given and params.direction == "backward")
    total = int(seen) if seen.isdecimal() and len(seen) <= MAX_DIGITS else len(events) + 1
    position, status = _position(given or None, total, backward=backward)
    if status == "expired" or total > len(events):
        return {
            "events": [],
            "cursor": params.cursor or "",
            "hasMore": False,
            "cursorStatus": "expired",
        }
    chunk, cursor, more = cut_page(events[:total], position, params.max, backward=backward)
    return {"events": chunk, "cursor": f"{cursor}/{total}", "hasMore": more, "cursorStatus": "ok"}


@methods.on("session.eventLog.tail")
async def tail(call: Call, params: Nothing) -> JsonObject:
    return {"cursor": str(call.session.live.event_count)}


class Interest(msgspec.Struct, rename="camel"):
    event_type: str


class Handle(msgspec.Struct):
    handle: str


@methods.on("session.eventLog.registerInterest", Interest)
async def register_interest(call: Call, params: Interest) -> JsonObject:
    handle = new_id()
    call.session.interests[handle] = params.event_type
    if params.event_type == McpOauthRequired.wire_name:
        call.session.live.controls.servers.retry_sign_ins()
    return {"handle": handle}


@methods.on("session.eventLog.releaseInterest", Handle)
async def release_interest(call: Call, params: Handle) -> JsonObject:
    return {"success": call.session.interests.pop(params.handle, None) is not None}


def _position(cursor: str | None, count: int, *, backward: bool) -> tuple[int, str]:
    """Return where to begin. A cursor past the end belongs to history that was cut off."""
    edge = count if backward else 0
    if cursor is None:
        return edge, "ok"
    digits = cursor.removeprefix("b")
    if not digits.isdecimal() or len(digits) > MAX_DIGITS or int(digits) > count:
        return edge, "expired"
    return int(digits), "ok"


def _has_type(events: Sequence[msgspec.Raw], wanted: Collection[str] | None) -> bool:
    return any(wanted is None or peek(line).type in wanted for line in events)


async def _next_event(live: LiveSession, seconds: float, wanted: Collection[str] | None) -> None:
    """Wait for a durable event, of one of these types if there are any."""
    arrived = asyncio.Event()

    def on_event(event: Event, _: bytes) -> None:
        if not event.ephemeral and (wanted is None or event.type in wanted):
            arrived.set()

    unsubscribe = live.subscribe(on_event)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await arrived.wait()
    finally:
        unsubscribe()
