"""`trimtab fleet`: splits a goal among agents in worktrees, and merges their work."""

import asyncio
import difflib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping

import msgspec

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.command_table import is_word
from trimtab.cli.event_loop import run_async
from trimtab.cli.fleet_request import build_request, build_resumption
from trimtab.cli.inputs import read_prompt
from trimtab.cli.parse import Values, parse
from trimtab.cli.streams import print_json, say
from trimtab.config.paths import find_home
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.own import FleetProgress
from trimtab.contracts.ids import new_id
from trimtab.contracts.json_text import encode_json
from trimtab.contracts.processor import Stop
from trimtab.contracts.text import neutralise
from trimtab.fleet.coordinator import Coordinator
from trimtab.fleet.events import AnyEvent, Resumed, Started
from trimtab.fleet.fleets import Fleets
from trimtab.fleet.plan import read_plan
from trimtab.fleet.report import (
    build_report,
    describe_end,
    describe_event,
    describe_report,
)
from trimtab.fleet.state import FleetState
from trimtab.fleet.store import FleetFolder, read_log
from trimtab.session.projections.usage import ModelUsage
from trimtab.transports.headless.result import Clock, build_result, describe_spending

ACTIONS = ("list", "show", "tail", "stop", "undo")
FOLLOW_SECONDS = 0.1
WITH_FLAGS = ("start", "resume")
"""Actions that take the flags of a run, which their table parses."""


def add_arguments(parser: CommandParser) -> None:
    """Describe the actions. `start` and `resume` are parsed by the table of flags instead."""
    actions = parser.add_actions(default="list")
    start = actions.add("start", "start a fleet; `trimtab fleet GOAL` is the same")
    start.add_argument("goal", metavar="GOAL", help="what is to be done, in quotes")
    start.add_argument("--plan", metavar="FILE", help='JSON: {"todos": [{"id", "title", ...}]}')
    start.add_argument("--workers", metavar="N", help="agents at the same time (default 4)")
    start.add_argument("--check", metavar="CMD", help="must pass after each merge; repeatable")
    start.add_argument("--land", action="store_true", help="fast-forward your branch at the end")
    start.epilog = "All flags of a run about models, permissions and limits hold for the workers."
    listing = actions.add("list", "list the fleets")
    show = actions.add("show", "show the todos, conflicts and checks of a fleet")
    tail = actions.add("tail", "show what happened in a fleet")
    tail.add_argument("--follow", "-f", action="store_true", help="go on until it ends")
    resume = actions.add("resume", "go on with a fleet that was stopped or killed")
    stop = actions.add("stop", "stop a fleet and its workers; it can be resumed")
    undo = actions.add("undo", "take back landing, branches and worktrees of a fleet")
    for part in (show, tail, resume, stop, undo):
        part.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    for part in (parser, start, listing, show, tail, resume, stop, undo):
        part.add_json()


def takes_flags(argv: list[str]) -> bool:
    """Return True for `start`, `resume`, and a goal without the word `start`."""
    words = [word for word in argv if word != "--json"]
    return bool(words) and not {"-h", "--help"} & set(words) and words[0] not in ACTIONS


def run_flags(argv: list[str]) -> int:
    """Start or resume a fleet as the flags say."""
    clock = Clock()
    as_document = "--json" in argv
    argv = [word for word in argv if word != "--json"]
    action = argv[0] if argv[0] in WITH_FLAGS else "start"
    if action != argv[0] and len(argv) == 1 and is_word(argv[0]):
        check_action(argv[0])
    words = argv[1:] if action == argv[0] else argv
    plan, words = take_plan(words) if action == "start" else (None, words)
    if words and not words[0].startswith("-"):
        words = ["-p", *words]
    values = {**parse(words), "fleet": True}
    env = dict(os.environ)
    if "config_dir" in values:
        env["COPILOT_HOME"] = os.path.abspath(values["config_dir"])
    fleets = Fleets(find_home(env), env)
    subject = str(values.pop("prompt", None) or values.pop("words", None) or "")
    if action == "resume":
        if not subject:
            raise UsageError("ID is missing; see `trimtab fleet --help`.")
        folder = fleets.find_resumable(subject)
        again = build_resumption(values, time.time())
    else:
        folder, again = start_fleet(fleets, env, values, subject, plan), None
    style = "document" if as_document else str(values.get("output_format", "text"))
    output = FleetOutput(style, quiet="silent" in values)
    return run_async(run_fleet(fleets, folder, again, output, clock))


def run_prompt(values: Values, env: Mapping[str, str], clock: Clock) -> int:
    """Start a fleet for the prompt of a run, as `trimtab -p TEXT --fleet` does."""
    if "interactive" in values:
        raise UsageError("--fleet needs -p; in a conversation, type /fleet GOAL.")
    fleets = Fleets(find_home(env), env)
    output = FleetOutput(str(values.get("output_format", "text")), quiet="silent" in values)

    async def run() -> int:
        goal = await read_prompt(values)
        folder = await asyncio.to_thread(start_fleet, fleets, env, values, goal, None)
        return await run_fleet(fleets, folder, None, output, clock)

    return run_async(run())


def start_fleet(
    fleets: Fleets, env: Mapping[str, str], values: Values, goal: str, plan: str | None
) -> FleetFolder:
    if not goal and plan is None:
        raise UsageError('The goal is missing; write trimtab fleet "GOAL".')
    todos = read_plan(os.path.abspath(plan)) if plan is not None else ()
    return fleets.create(build_request(values, env, goal or "Carry out the plan.", todos))


async def run_fleet(
    fleets: Fleets,
    folder: FleetFolder,
    again: Resumed | None,
    output: "FleetOutput",
    clock: Clock,
) -> int:
    """Run a fleet until it ends or a signal stops it; return the exit code."""

    def on_start(coordinator: Coordinator) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            reason = (
                f"It was stopped by {number.name}; go on with: trimtab fleet resume {folder.id}"
            )
            loop.add_signal_handler(number, coordinator.halt, reason, 128 + number)

    for event in folder.read():
        output.show(event)
    state = await fleets.run(folder, output.show, resumed=again, on_start=on_start)
    return output.finish(state, fleets.usage(state), clock)


class FleetOutput:
    """Shows a fleet: lines for people, lines of JSON, or one JSON document at the end."""

    def __init__(self, style: str, *, quiet: bool) -> None:
        self._style = style
        self._fleet = ""
        self._quiet = quiet

    def show(self, event: AnyEvent) -> None:
        if isinstance(event, Started):
            self._fleet = event.id
        if self._style == "json":
            print(encode(wrap_event(self._fleet, event)).decode(), flush=True)
        elif not self._quiet and (line := describe_event(event)):
            say(f"{event.timestamp[11:19]} {line}")

    def finish(self, state: FleetState, spent: ModelUsage, clock: Clock) -> int:
        """Print the result; return the exit code."""
        code = state.exit_code
        if self._style == "text":
            print(describe_report(state), flush=True)
            return code
        result = build_fleet_result(state, spent, clock)
        if self._style == "json":
            print(json.dumps(result), flush=True)
            if code:
                say(result["error"]["message"])
        else:
            print_json(result)
        return code


def wrap_event(fleet: str, event: AnyEvent) -> Event:
    """Return an event of a fleet in the envelope of the JSON stream."""
    data = FleetProgress(
        fleet_id=fleet, event=msgspec.to_builtins(event), message=describe_event(event)
    )
    return Event(
        type=data.wire_name,
        data=data,
        id=new_id(),
        timestamp=event.timestamp,
        parent_id=None,
        ephemeral=True,
    )


def build_fleet_result(state: FleetState, spent: ModelUsage, clock: Clock) -> JsonObject:
    """Return the result of a run whose work a fleet did: the usage is that of all its agents."""
    code = state.exit_code
    reason = "aborted" if code >= 128 else "complete" if code == 0 else "fleet"
    stop = Stop(reason=reason, exit_code=code, message=describe_end(state))
    result = build_result(None, stop, clock)
    return {
        **result,
        "usage": {**result["usage"], **describe_spending(spent)},
        "fleet": build_report(state),
    }


def check_action(word: str) -> None:
    """Refuse a single word that looks like a misspelt action. Raises `UsageError`."""
    if near := difflib.get_close_matches(word, (*ACTIONS, *WITH_FLAGS), 1):
        raise UsageError(
            f"`trimtab fleet` has no action {word!r}; did you mean `trimtab fleet {near[0]}`? As a "
            f"goal, it is written `trimtab fleet start {word}`."
        )


def take_plan(words: list[str]) -> tuple[str | None, list[str]]:
    """Take `--plan FILE` out of the arguments: as a flag of a run, `--plan` has no value."""
    rest: list[str] = []
    plan = None
    left = list(words)
    while left:
        word = left.pop(0)
        name, has_value, value = word.partition("=")
        if name != "--plan":
            rest.append(word)
        elif has_value:
            plan = value
        elif left and not left[0].startswith("-"):
            plan = left.pop(0)
        else:
            raise UsageError("--plan needs a value: --plan FILE.")
    return plan, rest


def run(args: Arguments) -> int:
    """Run an action that takes no flags of a run."""
    fleets = Fleets(find_home(os.environ), os.environ)
    if args.action == "list":
        return list_fleets(fleets, as_json=args.json)
    if args.action in WITH_FLAGS:
        return run_flags(["start"])  # asks for what is missing
    folder = fleets.store.find(args.id)
    if args.action == "tail":
        return tail_fleet(folder, follow=args.follow, as_json=args.json)
    if args.action == "undo":
        return undo_fleet(fleets, folder, as_json=args.json)
    state = fleets.stop(folder) if args.action == "stop" else folder.state()
    if state.started is None:
        raise UsageError(f"The fleet {folder.id} never started; start another one.")
    running = folder.owner() is not None
    if args.json:
        print_json(build_report(state, running=running))
    elif args.action == "stop":
        print(f"The fleet {folder.id} is stopped; go on with: trimtab fleet resume {folder.id}")
    else:
        print(describe_report(state, running=running))
    return 0


def list_fleets(fleets: Fleets, *, as_json: bool) -> int:
    rows = []
    for folder in fleets.store.list():
        try:
            state = folder.state()
        except TrimtabError as error:
            say(error.message)
            continue
        if state.started is None:
            continue
        report = build_report(state, running=folder.owner() is not None)
        fields = ("id", "goal", "status", "repository", "branch", "base", "exitCode")
        merged = sum(todo["status"] in ("merged", "unchanged") for todo in report["todos"])
        counts = {"merged": merged, "todos": len(report["todos"])}
        rows.append(
            {
                **{name: report[name] for name in fields},
                "verification": report["verification"],
                **counts,
            }
        )
    if as_json:
        print_json({"fleets": rows})
        return 0
    for row in rows:
        goal = neutralise(" ".join(str(row["goal"]).split()))[:60]
        print(f"{row['id']}  {row['status']:<10} {row['merged']}/{row['todos']}  {goal}")
    if not rows:
        print('There are no fleets; start one with: trimtab fleet "GOAL"')
    return 0


def tail_fleet(folder: FleetFolder, *, follow: bool, as_json: bool) -> int:
    """Print the events of a fleet, and with `follow` the next ones until nobody runs it."""
    shown = 0
    while True:
        running = folder.owner() is not None
        found = list(read_log(folder.log))
        for event in found[shown:]:
            if as_json:
                print(encode_json(event).decode())
            elif line := describe_event(event):
                print(f"{event.timestamp[11:19]} {line}")
        shown = len(found)
        sys.stdout.flush()
        if not follow or not running:
            return 0
        time.sleep(FOLLOW_SECONDS)


def undo_fleet(fleets: Fleets, folder: FleetFolder, *, as_json: bool) -> int:
    kept = fleets.undo(folder)
    if as_json:
        print_json({"id": folder.id, "undone": True, "kept": kept})
        return 0
    print(f"The fleet {folder.id} is undone.")
    for line in kept:
        print(f"Kept {line}.")
    return 0
