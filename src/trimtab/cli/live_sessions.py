"""The live sessions of this home, and the tasks in them, found through their sockets."""

import asyncio
import os
from collections.abc import Mapping

import msgspec

from trimtab.config.paths import find_home
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.session_socket import NAME
from trimtab.session.folder import SessionFolder
from trimtab.session.store import SessionStore
from trimtab.transports.rpc.visitor import Visitor

ANSWERING = 5.0
"""Seconds that a process has to answer; one that is stopped or overloaded is passed over."""
SHORTEST_PREFIX = 4


class FoundTask(msgspec.Struct, frozen=True):
    """A task, and the connection to the process that runs it."""

    visitor: Visitor
    task: JsonObject

    @property
    def id(self) -> str:
        return str(self.task["id"])


async def reach_sessions(env: Mapping[str, str]) -> list[Visitor]:
    """Connect to every live session of this home. Sockets that killed processes left are passed."""
    found = []
    for folder in find_sockets(env):
        try:
            found.append(await Visitor.reach(folder.id, folder.path))
        except OSError:
            continue
    return found


def find_sockets(env: Mapping[str, str]) -> list[SessionFolder]:
    """Return the folders of sessions that have a socket, whether anybody listens or not."""
    folders = SessionStore(find_home(env)).folders()
    return [folder for folder in folders if os.path.exists(os.path.join(folder.path, NAME))]


async def list_tasks(visitors: list[Visitor]) -> list[FoundTask]:
    """Return the tasks of sessions, main agents first in each."""

    async def ask(visitor: Visitor) -> list[FoundTask]:
        try:
            async with asyncio.timeout(ANSWERING):
                reply = await visitor.call("trimtab.tasks.list")
        except (TimeoutError, TrimtabError):
            return []
        return [FoundTask(visitor, task) for task in reply.get("tasks", ())]

    answers = await asyncio.gather(*map(ask, visitors))
    return [task for answer in answers for task in answer]


def show_status(task: JsonObject) -> str:
    return "interrupted" if task.get("interrupted") else str(task.get("status", ""))


def find_task(tasks: list[FoundTask], wanted: str) -> FoundTask:
    """Return the task with an id, a prefix of one, or `SESSION/ID`. Raises `UsageError`."""
    session, _, rest = wanted.rpartition("/")
    inside = [task for task in tasks if str(task.task["sessionId"]).startswith(session)]
    found = [task for task in inside if task.id == rest]
    if not found and len(rest) >= SHORTEST_PREFIX:
        found = [task for task in inside if task.id.startswith(rest)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"Several tasks match {wanted!r}; write SESSION/ID.")
    raise UsageError(
        f"No task of a live session has the id {wanted!r}; it may have ended: see `trimtab tasks`."
    )
