"""`trimtab tasks`: shows, follows, writes to and stops agents and commands of live sessions."""

import asyncio
import os
import sys

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.live_sessions import FoundTask, find_task, list_tasks, reach_sessions, show_status
from trimtab.cli.streams import print_json, say
from trimtab.config.paths import find_home
from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.text import neutralise
from trimtab.host.agent_lines import AgentLines
from trimtab.session.records import read_records
from trimtab.session.store import SessionStore

LAST_EVENTS = 20
"""The number of things that `tail` shows of an agent's past."""
WAIT_MS = 1000


def add_arguments(parser: CommandParser) -> None:
    actions = parser.add_actions(default="list")
    listing = actions.add("list", "list the agents and commands of all live sessions")
    tail = actions.add("tail", "show what an agent did last, or the output of a command")
    tail.add_argument("--follow", "-f", action="store_true", help="go on until it ends")
    send = actions.add("send", "send an agent a message")
    stop = actions.add("stop", "stop an agent and its commands, or a command")
    for part in (tail, send, stop):
        part.add_argument("id", metavar="ID", help="its id, the start of one, or SESSION/ID")
    send.add_argument("text", metavar="TEXT")
    for part in (parser, listing, tail, send, stop):
        part.add_json()


def run(args: Arguments) -> int:
    return run_async(_run(args))


async def _run(args: Arguments) -> int:
    visitors = await reach_sessions(os.environ)
    try:
        tasks = await list_tasks(visitors)
        if args.action == "list":
            return print_list(tasks, as_json=args.json)
        found = find_task(tasks, args.id)
        if args.action == "tail":
            return await tail(found, follow=args.follow, as_json=args.json)
        if args.action == "send":
            return await send(found, args.text, as_json=args.json)
        return await stop(found, as_json=args.json)
    except UsageError as error:
        if args.json:
            print_json({"error": {"message": error.message}}, indent=None)
        say(error.message)
        return ExitCode.FAILURE
    finally:
        for visitor in visitors:
            visitor.close()


def print_list(tasks: list[FoundTask], *, as_json: bool) -> int:
    if as_json:
        rows = [{**found.task, "status": show_status(found.task)} for found in tasks]
        print_json({"tasks": rows}, indent=None)
        return 0
    if not tasks:
        print("No live sessions.")
    for found in tasks:
        task = found.task
        about = task.get("description") or task.get("command") or task.get("prompt") or ""
        kind = str(task.get("agentType") or task["type"])
        line = neutralise(" ".join(str(about).split()), "approval")[:80]
        indent = "" if task["id"] == task["sessionId"] else "  "
        print(f"{indent}{task['id']}  {show_status(task):<11}  {kind:<16}  {line}")
    return 0


async def send(found: FoundTask, text: str, *, as_json: bool) -> int:
    reply = await found.visitor.call("session.tasks.sendMessage", id=found.id, message=text)
    if not reply.get("sent"):
        raise UsageError(str(reply.get("error") or f"{found.id} takes no messages."))
    if as_json:
        print_json({"id": found.id, "sessionId": found.visitor.session_id, "sent": True}, None)
    else:
        print(f"Sent to {found.id}.")
    return 0


async def stop(found: FoundTask, *, as_json: bool) -> int:
    reply = await found.visitor.call("session.tasks.cancel", id=found.id)
    if not reply.get("cancelled"):
        state = show_status(found.task)
        raise UsageError(f"{found.id} is not running (it is {state}); see `trimtab tasks`.")
    if as_json:
        print_json({"id": found.id, "sessionId": found.visitor.session_id, "stopped": True}, None)
    else:
        print(f"{found.id} was stopped.")
    return 0


async def tail(found: FoundTask, *, follow: bool, as_json: bool) -> int:
    if found.task["type"] == "shell":
        return await tail_shell(found, follow=follow, as_json=as_json)
    is_main = found.id == found.visitor.session_id
    wanted = None if is_main else found.id
    shown = EventLines(as_json=as_json)
    ended = asyncio.Event()
    ends = ("assistant.idle",) if is_main else ("subagent.completed", "subagent.failed")

    def on_event(event: Event, line: bytes) -> None:
        if event.agent_id == wanted:
            if not event.ephemeral:
                shown.show(event, line)
            if event.type in ends:
                ended.set()

    folder = SessionStore(find_home(os.environ)).folder(found.visitor.session_id)
    if follow:
        found.visitor.on_event = on_event
        await found.visitor.join()
    records = [(decode(record.line), record.line) for record in read_records(folder.events)]
    past = [
        text
        for event, line in records
        if event.agent_id == wanted
        for text in shown.read(event, line)
    ]
    for text in past[-LAST_EVENTS:]:
        print(text, flush=True)
    if follow and show_status(found.task) == "running":
        gone = asyncio.ensure_future(found.visitor.gone.wait())
        end = asyncio.ensure_future(ended.wait())
        await asyncio.wait((gone, end), return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        end.cancel()
    return 0


async def tail_shell(found: FoundTask, *, follow: bool, as_json: bool) -> int:
    cursor = "0"
    while True:
        try:
            reply = await found.visitor.call(
                "session.tasks.readOutput",
                id=found.id,
                cursor=cursor,
                waitMs=WAIT_MS if follow else 0,
            )
        except TrimtabError as error:
            say(error.message)
            return ExitCode.FAILURE
        cursor = reply["cursor"]
        if as_json and (reply["text"] or "exit" in reply):
            print_json({"id": found.id, **reply}, None)
        elif reply["text"]:
            sys.stdout.write(neutralise(reply["text"]))
        sys.stdout.flush()
        if "exit" in reply or not (follow or reply["text"]):
            return 0


class EventLines:
    """Prints the events of an agent: as lines of JSON, or as lines for a person."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lines = AgentLines()
        self._seen: set[str] = set()

    def read(self, event: Event, line: bytes) -> list[str]:
        """Return the lines of an event; none if it was read before."""
        if event.id in self._seen:
            return []
        self._seen.add(event.id)
        if self._as_json:
            return [line.decode("utf-8", "replace").rstrip("\n")]
        return self._lines.read(event)

    def show(self, event: Event, line: bytes) -> None:
        for text in self.read(event, line):
            print(text, flush=True)
