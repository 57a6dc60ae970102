"""Schedules: prompts that a session is sent at certain times."""

from collections.abc import Callable

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.schedule import SessionScheduleCreated
from trimtab.host.schedules import parse_interval
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Add(msgspec.Struct, kw_only=True, rename="camel"):
    interval: str
    prompt: str
    recurring: bool = True
    display_prompt: str | None = None


class AddCron(msgspec.Struct, kw_only=True, rename="camel"):
    cron: str
    prompt: str
    recurring: bool = True
    display_prompt: str | None = None
    tz: str | None = None


class AddAt(msgspec.Struct, kw_only=True, rename="camel"):
    at: int
    prompt: str
    recurring: bool = False
    display_prompt: str | None = None


class AddSelfPaced(msgspec.Struct, kw_only=True, rename="camel"):
    prompt: str
    display_prompt: str | None = None


class Number(msgspec.Struct):
    id: int


class Rearm(msgspec.Struct):
    id: int
    at: int


def try_to(change: Callable[[], JsonObject]) -> JsonObject:
    """Return the changed schedule, or what is wrong with the request: clients show it."""
    try:
        return {"entry": change()}
    except UsageError as error:
        return {"error": error.message}


@methods.on("session.schedule.add", Add)
async def add(call: Call, params: Add) -> JsonObject:
    schedules = call.session.schedules
    return try_to(
        lambda: schedules.add(
            SessionScheduleCreated(
                id=0,
                prompt=params.prompt,
                interval_ms=parse_interval(params.interval) * 1000,
                recurring=params.recurring,
                display_prompt=params.display_prompt,
            )
        )
    )


@methods.on("session.schedule.addCron", AddCron)
async def add_cron(call: Call, params: AddCron) -> JsonObject:
    plan = SessionScheduleCreated(
        id=0,
        prompt=params.prompt,
        cron=params.cron,
        tz=params.tz,
        recurring=params.recurring,
        display_prompt=params.display_prompt,
    )
    return try_to(lambda: call.session.schedules.add(plan))


@methods.on("session.schedule.addAt", AddAt)
async def add_at(call: Call, params: AddAt) -> JsonObject:
    """Schedule a prompt for one time, in milliseconds since the epoch."""
    plan = SessionScheduleCreated(
        id=0,
        prompt=params.prompt,
        at=params.at,
        recurring=False,
        display_prompt=params.display_prompt,
    )
    return try_to(lambda: call.session.schedules.add(plan))


@methods.on("session.schedule.addSelfPaced", AddSelfPaced)
async def add_self_paced(call: Call, params: AddSelfPaced) -> JsonObject:
    """Send a prompt now; whoever re-arms the schedule in its turn says when it runs again."""
    plan = SessionScheduleCreated(
        id=0,
        prompt=params.prompt,
        recurring=True,
        self_paced=True,
        display_prompt=params.display_prompt,
    )
    return try_to(lambda: call.session.schedules.add(plan))


@methods.on("session.schedule.rearmSelfPaced", Rearm)
async def rearm(call: Call, params: Rearm) -> JsonObject:
    return try_to(lambda: call.session.schedules.rearm(params.id, params.at))


@methods.on("session.schedule.hasSelfPaced")
async def has_self_paced(call: Call, params: Nothing) -> JsonObject:
    return {"hasSelfPaced": call.session.schedules.has_self_paced}


@methods.on("session.schedule.hydrate")
async def hydrate(call: Call, params: Nothing) -> None:
    """Do nothing: a session that is opened goes on with its schedules."""


@methods.on("session.schedule.list")
async def list_all(call: Call, params: Nothing) -> JsonObject:
    return {"entries": call.session.schedules.list()}


@methods.on("session.schedule.stop", Number)
async def stop(call: Call, params: Number) -> JsonObject:
    entry = call.session.schedules.stop(params.id)
    return {} if entry is None else {"entry": entry}
