"""The result of a fleet: the object for scripts, and the text for people."""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.text import count, neutralise
from trimtab.fleet import events
from trimtab.fleet.events import AnyEvent, CheckRun
from trimtab.fleet.plan import Todo
from trimtab.fleet.repository import name_todo_branch
from trimtab.fleet.state import GOOD, FleetState, TodoState

SHOWN_LINES = 20


def build_report(state: FleetState, *, running: bool = False) -> JsonObject:
    """Return the `fleet` of a result; `running` if a process works on it."""
    started = state.started
    assert started is not None
    return {
        "id": started.id,
        "goal": started.goal,
        "status": "running" if running else find_status(state),
        "exitCode": state.exit_code if state.over else None,
        "repository": started.repository,
        "base": started.base,
        "branch": started.branch,
        "tip": state.tip,
        "todos": [_report_todo(state, each) for each in state.todos.values()],
        "conflicts": [
            {
                "todo": each.todo,
                "files": list(each.files),
                "with": list(each.others),
                "resolved": each.resolved,
                "kept": each.kept,
            }
            for each in state.conflicts.values()
        ],
        "checks": [_report_check(check) for check in state.tip_checks],
        "verification": judge(state),
        "landed": state.landed is not None and not state.landed.refused,
        "usage": {"tokens": state.spent.tokens, "costUsd": state.spent.usd},
        "sessions": list(state.sessions),
        "notes": list(state.notes),
        "reason": describe_end(state),
    }


def find_status(state: FleetState) -> str:
    if state.undone:
        return "undone"
    if state.finished:
        return "finished"
    return "stopped" if state.stopped else "unfinished"


def judge(state: FleetState) -> str:
    """Return verified, partly or unverified, from the checks that ran on the tip."""
    runs = state.tip_checks
    if not state.merged or not any(run.passed for run in runs):
        return "unverified"
    complete = all(each.status == "merged" for each in state.todos.values())
    return "verified" if complete and all(run.passed for run in runs) else "partly"


def describe_end(state: FleetState) -> str:
    """Return a sentence about why the fleet did not succeed; empty if it did."""
    if state.stopped is not None:
        return state.stopped.reason
    if state.landed is not None and state.landed.refused:
        return f"Nothing was landed: {state.landed.refused}."
    left = [name for name, each in state.todos.items() if each.status not in GOOD]
    if left:
        return f"{count(len(left), 'todo')} not merged: {', '.join(left)}."
    red = [run.command for run in state.tip_checks if not run.passed]
    return f"Red on the branch: {', '.join(red)}." if red else ""


def _report_todo(state: FleetState, each: TodoState) -> JsonObject:
    assert state.started is not None
    name = each.todo.id
    blocked = state.blocked.get(name)
    status = "blocked" if blocked else _STATUS.get(each.status, each.status)
    report: JsonObject = {
        "id": name,
        "title": each.todo.title,
        "status": status,
        "branch": name_todo_branch(state.started.id, name) if each.commit else None,
        "commit": each.commit,
        "attempts": each.attempts,
    }
    if blocked:
        report["reason"] = f"It depends on {blocked}."
    elif each.status == "failed":
        report["reason"] = each.reason
        report["files"] = list(each.files)
        report["checks"] = [_report_check(check) for check in each.checks]
    return report


_STATUS = {"ended": "running", "done": "running", "merging": "running"}


def _report_check(check: CheckRun) -> JsonObject:
    return {
        "command": check.command,
        "passed": check.passed,
        "exitCode": check.exit_code,
        "output": check.output,
        "seconds": check.seconds,
    }


def describe_report(state: FleetState, *, running: bool = False) -> str:
    """Return the result for people."""
    report = build_report(state, running=running)
    assert state.started is not None
    lines = [f"Fleet {report['id']}: {report['status']}, {report['verification']}."]
    width = max((len(todo["id"]) for todo in report["todos"]), default=0)
    for todo in report["todos"]:
        commit = (todo["commit"] or "-")[:12]
        tries = f", {todo['attempts']} attempts" if todo["attempts"] > 1 else ""
        lines.append(
            f"  {todo['status']:<10}{todo['id']:<{width}}  {commit:<12}  {todo['title']}{tries}"
        )
        if todo.get("reason"):
            lines.append(f"            {todo['reason']}")
        if todo.get("files"):
            lines.append(f"            files: {', '.join(todo['files'])}")
        if todo["status"] == "failed" and todo["branch"]:
            lines.append(f"            the work is on {todo['branch']}")
        for check in todo.get("checks", ()):
            lines += [f"            $ {check['command']}", *_indent(check["output"])]
    for conflict in report["conflicts"]:
        end = "resolved" if conflict["resolved"] else "not resolved"
        files = ", ".join(conflict["files"])
        others = ", ".join(conflict["with"]) or "the branch"
        lines.append(f"  conflict of {conflict['todo']} with {others} in {files}: {end}")
    for check in report["checks"]:
        lines.append(f"  {'passed' if check['passed'] else 'FAILED':<10}{check['command']}")
    if state.merged:
        landed = ", landed on your branch" if report["landed"] else ""
        lines.append(f"Branch {report['branch']} at {state.tip[:12]}{landed}.")
    lines += [f"Note: {note}" for note in report["notes"]]
    if report["reason"] and not running:
        lines.append(report["reason"])
    return neutralise("\n".join(lines))


def _indent(output: str) -> list[str]:
    return [f"              {line}" for line in output.rstrip().splitlines()[-SHOWN_LINES:]]


def describe_event(event: AnyEvent) -> str:
    """Return a line about an event for people; empty for one that needs none."""
    match event:
        case events.Started():
            text = f"fleet {event.id} started at {event.base[:12]}"
            if event.todos:
                text += f" with {_name_todos(event.todos)}"
            text = "\n".join((text, *event.notes))
        case events.Planned():
            text = _name_todos(event.todos)
        case events.WorkerStarted():
            doing = {"plan": "planning", "work": "started", "repair": "repair started"}
            text = f"{event.todo or 'plan'}: {doing[event.kind]} (session {event.session[:8]})"
        case events.WorkerEnded():
            text = f"worker {event.job} ended: {event.message}" if event.message else ""
        case events.WorkCommitted():
            done = f"committed {event.commit[:12]}" if event.commit else "nothing changed"
            text = f"{event.todo}: {done}" + (f"; failed: {event.failed}" if event.failed else "")
        case _:
            text = _describe_merge(event)
    return neutralise(text)


def _name_todos(todos: tuple[Todo, ...]) -> str:
    return f"{count(len(todos), 'todo')}: {', '.join(todo.id for todo in todos)}"


def _describe_merge(event: AnyEvent) -> str:
    match event:
        case events.ConflictFound():
            text = f"{event.todo}: conflict in {', '.join(event.files)}"
        case events.Checked():
            red = [check.command for check in event.checks if not check.passed]
            what = event.todo or "base"
            text = f"{what}: checks " + (f"failed: {', '.join(red)}" if red else "passed")
            text = text if event.checks else ""
        case events.MergeKept():
            text = f"{event.todo}: merged, branch at {event.commit[:12]}"
        case events.MergeTakenBack():
            text = f"{event.todo}: not merged: {event.reason}"
        case _:
            text = _describe_rest(event)
    return text


def _describe_rest(event: AnyEvent) -> str:
    match event:
        case events.Noted():
            text = event.message
        case events.Stopped():
            text = f"stopped: {event.reason}"
        case events.Finished():
            text = "finished"
        case events.Landed():
            text = f"not landed: {event.refused}" if event.refused else "landed"
        case events.Undone():
            text = "undone"
        case _:
            text = ""
    return text
