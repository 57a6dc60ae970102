"""Events about prompts that are sent at certain times."""

from trimtab.contracts.events.envelope import EventData


class SessionScheduleCreated(EventData, type="session.schedule_created"):
    """A schedule by interval, by cron expression, for one time, or paced by whoever runs it.

    `at` is in milliseconds since the epoch.
    """

    id: int
    prompt: str
    interval_ms: int | None = None
    cron: str | None = None
    tz: str | None = None
    at: int | None = None
    recurring: bool | None = None
    self_paced: bool | None = None
    display_prompt: str | None = None


class SessionScheduleCancelled(EventData, type="session.schedule_cancelled"):
    id: int


class SessionScheduleRearmed(EventData, type="session.schedule_rearmed"):
    """`next_run_at` is in milliseconds since the epoch."""

    id: int
    next_run_at: int
