"""Fleets: agents in worktrees that carry out the todos of a session."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Prompt
from trimtab.fleet.session_fleet import can_have_worktrees, share_folder
from trimtab.transports.rpc.dispatch import Call, Methods
from trimtab.transports.rpc.methods.session import name_attachment

methods = Methods()


class Start(msgspec.Struct):
    """`wait` answers when the fleet has ended and the session has reported it."""

    prompt: str | None = None
    attachments: tuple[JsonObject, ...] = ()
    billable: bool | None = None
    wait: bool = False


@methods.on("session.fleet.start", Start)
async def start(call: Call, params: Start) -> JsonObject:
    live = call.session.live
    if live.start_fleet is None:
        raise UsageError("This process cannot start a fleet; use `trimtab fleet`.")
    goal = Prompt(
        text=params.prompt or "",
        attachments=tuple(map(name_attachment, params.attachments)),
        billable=params.billable is not False,
    )
    if can_have_worktrees(live):
        await live.start_fleet(live, goal)
    else:
        share_folder(live, goal)
    if params.wait:
        await live.tasks.wait_quiet()
    return {"started": True}
