"""Slash commands that send prompts later: `/every` and `/after`."""

import time
from datetime import datetime

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.schedule import SessionScheduleCreated
from trimtab.host.schedules import parse_interval, schedules_of
from trimtab.runtime.live import LiveSession

USAGE = "write /every 10m PROMPT, /after 1h PROMPT, or /every stop NUMBER"


def run_command(live: LiveSession, command: str, arguments: str) -> str:
    """List, begin or stop schedules; return a sentence about it. Raises `UsageError`."""
    first, _, rest = arguments.strip().partition(" ")
    if not first:
        return list_schedules(live)
    if first == "stop":
        return stop_schedule(live, rest.strip())
    seconds = parse_interval(first)
    if not rest.strip():
        raise UsageError(f"There is no prompt to send; {USAGE}.")
    recurs = command == "every"
    plan = SessionScheduleCreated(
        id=0,
        prompt=rest.strip(),
        recurring=recurs,
        interval_ms=seconds * 1000 if recurs else None,
        at=None if recurs else int((time.time() + seconds) * 1000),
    )
    return f"Scheduled {describe(schedules_of(live).add(plan))}"


def list_schedules(live: LiveSession) -> str:
    entries = schedules_of(live).list()
    if not entries:
        return f"Nothing is scheduled; {USAGE}."
    return "\n".join(map(describe, entries))


def stop_schedule(live: LiveSession, number: str) -> str:
    """Stop a schedule by its number."""
    entry = schedules_of(live).stop(int(number)) if number.isdecimal() else None
    if entry is None:
        raise UsageError(f"There is no schedule {number!r}; /every lists them.")
    return f"Stopped #{entry['id']}."


def describe(entry: JsonObject) -> str:
    """Return a row about a schedule: its number, when it runs, and its prompt."""
    moment = datetime.fromisoformat(entry["nextRunAt"]).astimezone()
    when = f"next at {moment:%H:%M:%S}"
    if interval := entry.get("intervalMs"):
        when = f"every {name_interval(interval // 1000)}, {when}"
    return f"#{entry['id']} ({when}): {entry.get('displayPrompt') or entry['prompt']}"


def name_interval(seconds: int) -> str:
    """Return an interval as a person writes it: 90s, 10m, 2h."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
