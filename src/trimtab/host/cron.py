"""Times by cron expressions: minute, hour, day of the month, month, day of the week."""

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = 5
SEARCHED = 366 * 8
"""Days that are searched for the next run: 29 February may be eight years away."""


class Cron(msgspec.Struct, frozen=True):
    """The minutes, hours, days, months and weekdays that an expression names.

    If both kinds of days are limited, a day of either kind counts.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next_run(self, after: datetime) -> datetime:
        """Return the first matching minute after a time, in its zone. Raises `ValueError`."""
        moment = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(SEARCHED):
            if self._matches_day(moment):
                for hour in sorted(hour for hour in self.hours if hour >= moment.hour):
                    first = moment.minute if hour == moment.hour else 0
                    minutes = [minute for minute in self.minutes if minute >= first]
                    if minutes:
                        return moment.replace(hour=hour, minute=min(minutes))
            moment = (moment + timedelta(days=1)).replace(hour=0, minute=0)
        raise ValueError("no day matches it")

    def _matches_day(self, moment: datetime) -> bool:
        if moment.month not in self.months:
            return False
        by_date, by_weekday = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return (by_date or by_weekday) if self.either_day else (by_date and by_weekday)


def parse_cron(text: str) -> Cron:
    """Return the times that an expression names. Raises `ValueError`."""
    fields = SHORTCUTS.get(text.strip().lower(), text).lower().split()
    if len(fields) != FIELDS:
        raise ValueError(f"it has {len(fields)} fields instead of {FIELDS}")
    minute, hour, day, month, weekday = fields
    return Cron(
        minutes=_parse(minute, 0, 59),
        hours=_parse(hour, 0, 23),
        days=_parse(day, 1, 31),
        months=_parse(month, 1, 12, MONTHS, 1),
        weekdays=frozenset(number % 7 for number in _parse(weekday, 0, 7, DAYS)),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
    )


def find_zone(name: str | None, env: Mapping[str, str]) -> ZoneInfo:
    """Return a time zone; without a name that of the machine. Raises `ValueError`."""
    if name is None:
        name = env.get("TZ", "").lstrip(":") or _zone_of_machine()
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"there is no time zone {name!r}") from None


def _zone_of_machine() -> str:
    path = os.path.realpath("/etc/localtime")
    return path.partition("/zoneinfo/")[2] or "UTC"


def _parse(
    field: str, low: int, high: int, names: tuple[str, ...] = (), first: int = 0
) -> frozenset[int]:
    """Return the numbers that a field names: lists of ranges, with steps."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        begin, dash, end = span.partition("-")
        if span == "*":
            start, stop = low, high
        else:
            start = _number(begin, names, first)
            stop = _number(end, names, first) if dash else (high if step else start)
        width = _number(step, (), 0) if step else 1
        if not low <= start <= stop <= high or width < 1:
            raise ValueError(f"{part!r} is outside of {low} to {high}")
        found.update(range(start, stop + 1, width))
    return frozenset(found)


def _number(text: str, names: tuple[str, ...], first: int) -> int:
    if text in names:
        return names.index(text) + first
    if not text.isdecimal() or len(text) > 2:
        raise ValueError(f"{text!r} is not a number")
    return int(text)
