"""Prompts that a session is sent at certain times: by interval, by cron, once, or self-paced.

Schedules are events of the log: a session that is resumed goes on with them. They run while a
process has the session open.
"""

import asyncio
import re
import time
from datetime import UTC, datetime

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.schedule import (
    SessionScheduleCancelled,
    SessionScheduleCreated,
    SessionScheduleRearmed,
)
from trimtab.contracts.run import Prompt
from trimtab.host.cron import find_zone, parse_cron
from trimtab.runtime.live import LiveSession
from trimtab.session.open_schedules import recorded_schedules

UNITS = {"s": 1, "": 60, "m": 60, "h": 3600, "d": 86_400}
SHORTEST = 10
LONGEST = 86_400
MAX_SCHEDULES = 50
_INTERVAL = re.compile(r"(\d{1,9})\s*([smhd]?)")


def parse_interval(text: str) -> int:
    """Return the seconds of an interval such as `30s`, or `5` for minutes. Raises `UsageError`."""
    found = _INTERVAL.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(f"Invalid interval {text!r}; write 30s, 5m, 2h or 1d.")
    seconds = int(found[1]) * UNITS[found[2]]
    if not SHORTEST <= seconds <= LONGEST:
        raise UsageError(f"The interval {text!r} is not between {SHORTEST}s and 1d; change it.")
    return seconds


class Entry(msgspec.Struct):
    """An active schedule and the time of its next run, in seconds since the epoch."""

    plan: SessionScheduleCreated
    next_run: float
    timer: asyncio.TimerHandle | None = None
    waiting: bool = False
    """True while a self-paced schedule has run and nobody has said when it runs again."""

    def describe(self) -> JsonObject:
        plan = self.plan
        moment = datetime.fromtimestamp(self.next_run, UTC).isoformat(timespec="milliseconds")
        fields: JsonObject = {
            "id": plan.id,
            "intervalMs": plan.interval_ms,
            "cron": plan.cron,
            "tz": plan.tz,
            "at": plan.at,
            "prompt": plan.prompt,
            "recurring": bool(plan.recurring),
            "selfPaced": plan.self_paced,
            "displayPrompt": plan.display_prompt,
            "nextRunAt": moment.replace("+00:00", "Z"),
        }
        return {name: value for name, value in fields.items() if value is not None}


def schedules_of(live: LiveSession) -> "Schedules":
    """Return the schedules of a session."""
    if live.schedules is None:
        live.schedules = Schedules(live)
    assert isinstance(live.schedules, Schedules)
    return live.schedules


class Schedules:
    """The schedules of an open session."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._entries: dict[int, Entry] = {}
        self._last_id = 0
        self._unsubscribe = live.subscribe(self._on_event)
        live.on_close(self.close)

    def restore(self) -> None:
        """Go on with the schedules in the session's log; a time that has passed counts as now."""
        recorded = recorded_schedules(self._live.folder.events)
        self._last_id = recorded.last_id
        for plan in recorded.active.values():
            moment = recorded.rearmed.get(plan.id)
            self._start(plan, moment / 1000 if moment is not None else self._first_run(plan))

    def list(self) -> list[JsonObject]:
        return [entry.describe() for entry in self._entries.values()]

    @property
    def has_self_paced(self) -> bool:
        return any(entry.plan.self_paced for entry in self._entries.values())

    def add(self, plan: SessionScheduleCreated) -> JsonObject:
        """Begin a schedule, whose id is chosen here. Raises `UsageError`."""
        if not plan.prompt.strip():
            raise UsageError("Prompt cannot be empty; say what to do.")
        if len(self._entries) >= MAX_SCHEDULES:
            raise UsageError(f"A session has at most {MAX_SCHEDULES} schedules; stop one first.")
        plan = msgspec.structs.replace(plan, id=self._last_id + 1)
        if plan.cron is not None:
            zone = plan.tz or str(self._zone(plan))
            plan = msgspec.structs.replace(plan, tz=zone)
        first = self._first_run(plan)
        self._live.emit(plan)
        return self._start(plan, first).describe()

    def rearm(self, number: int, moment: int) -> JsonObject:
        """Set when a self-paced schedule runs again. Raises `UsageError`."""
        entry = self._entries.get(number)
        if entry is None:
            raise UsageError(f"No active schedule with id {number}; see session.schedule.list.")
        if not entry.plan.self_paced:
            raise UsageError(f"Schedule #{number} is not self-paced and cannot be re-armed.")
        self._live.emit(SessionScheduleRearmed(id=number, next_run_at=moment))
        entry.waiting = False
        self._arm(entry, moment / 1000)
        return entry.describe()

    def stop(self, number: int) -> JsonObject | None:
        """End a schedule and return it; None if there is none."""
        entry = self._entries.pop(number, None)
        if entry is None:
            return None
        if entry.timer is not None:
            entry.timer.cancel()
        self._live.emit(SessionScheduleCancelled(id=number))
        return entry.describe()

    def close(self) -> None:
        """Let no timer run any more."""
        self._unsubscribe()
        for entry in self._entries.values():
            if entry.timer is not None:
                entry.timer.cancel()

    def _start(self, plan: SessionScheduleCreated, first: float) -> Entry:
        self._last_id = max(self._last_id, plan.id)
        entry = self._entries[plan.id] = Entry(plan, first)
        self._arm(entry, first)
        return entry

    def _arm(self, entry: Entry, moment: float) -> None:
        entry.next_run = moment
        if entry.timer is not None:
            entry.timer.cancel()
        delay = min(max(0.0, moment - time.time()), LONGEST)
        entry.timer = asyncio.get_running_loop().call_later(delay, self._run, entry)

    def _zone(self, plan: SessionScheduleCreated) -> object:
        try:
            return find_zone(plan.tz, self._live.controls.setup.env)
        except ValueError as error:
            raise UsageError(f"Invalid cron expression {plan.cron!r}: {error}.") from None

    def _first_run(self, plan: SessionScheduleCreated) -> float:
        """Return when a schedule runs next, as seen from now."""
        if plan.interval_ms is not None:
            return time.time() + plan.interval_ms / 1000
        if plan.cron is not None:
            try:
                zone = find_zone(plan.tz, self._live.controls.setup.env)
                return parse_cron(plan.cron).next_run(datetime.now(zone)).timestamp()
            except ValueError as error:
                raise UsageError(
                    f"Invalid cron expression {plan.cron!r}: {error}; write five fields."
                ) from None
        return plan.at / 1000 if plan.at is not None else time.time()

    def _run(self, entry: Entry) -> None:
        """Send the prompt if its time has come, and plan the next run."""
        if entry.next_run - time.time() > 1:  # a timer waits a day at most
            self._arm(entry, entry.next_run)
            return
        plan, source = entry.plan, f"schedule-{entry.plan.id}"
        if not any(prompt.source == source for prompt in self._live.inbox.pending):
            label = f"[Scheduled prompt #{plan.id}]\n"
            shown = plan.display_prompt
            self._live.send(
                Prompt(
                    text=label + plan.prompt,
                    display=label + shown if shown else None,
                    source=source,
                    billable=False,
                )
            )
        if plan.self_paced:
            entry.waiting = True
        elif plan.recurring:
            self._arm(entry, self._first_run(plan))
        else:
            self.stop(plan.id)

    def _on_event(self, event: Event, _: bytes) -> None:
        """End self-paced schedules that nobody set anew by the end of their run."""
        if event.type == "session.idle":
            for entry in [entry for entry in self._entries.values() if entry.waiting]:
                asyncio.get_running_loop().call_soon(self._end_unless_rearmed, entry)

    def _end_unless_rearmed(self, entry: Entry) -> None:
        if entry.waiting:
            self.stop(entry.plan.id)
