"""The prompts of the agents of a fleet."""

import os
from collections.abc import Sequence

from trimtab.fleet.events import CheckRun
from trimtab.fleet.plan import Todo
from trimtab.fleet.state import FleetState

_FOLDER = os.path.join(os.path.dirname(__file__), "prompts")
SHOWN_OUTPUT = 4000
"""The number of characters an agent is shown of a check's output."""


def write_plan_prompt(goal: str) -> str:
    return _read("plan").format(goal=goal)


def write_share_prompt(goal: str) -> str:
    """Return the prompt of an agent whose sub-agents share its folder."""
    return _read("share").format(goal=goal)


def write_work_prompt(state: FleetState, name: str) -> str:
    """Return the prompt of a worker: the goal, its own todo, and the titles of the others."""
    assert state.started is not None
    todo, each = state.todos[name].todo, state.todos[name]
    titles = [f"- {other.todo.title}" for other in state.todos.values() if other.todo.id != name]
    others = f"Others do these parts:\n{chr(10).join(titles)}\n\n" if titles else ""
    checks = "".join(f"\n- `{command}`" for command in state.checks)
    before = f"\n\nAn earlier attempt ended without success ({each.reason})." if each.reason else ""
    if each.attempts:
        before += " Changes that it made may be in the folder: look at them, and go on from there."
    return _read("work").format(
        goal=state.started.goal,
        id=todo.id,
        title=todo.title,
        description=todo.description or todo.title,
        others=others,
        checks=f" After the merge these checks must pass:{checks}" if checks else "",
        before=before,
    )


def write_conflict_prompt(
    state: FleetState, name: str, files: Sequence[str], others: Sequence[str]
) -> str:
    listed = "\n".join(f"- {file}" for file in files)
    return _write_repair(
        state,
        name,
        others,
        trouble="A merge has conflicts, and you resolve them.",
        detail=f"Files with conflict markers:\n{listed}\n",
    )


def write_check_prompt(
    state: FleetState, name: str, red: Sequence[CheckRun], others: Sequence[str]
) -> str:
    outputs = "\n".join(
        f"$ {check.command}\n{check.output[-SHOWN_OUTPUT:]}\n[exit code {check.exit_code}]"
        for check in red
    )
    return _write_repair(
        state,
        name,
        others,
        trouble="A merge had no textual conflict, but a check fails after it, and you repair that.",
        detail=f"<output>\n{outputs}\n</output>\n\nDo not weaken the check.\n",
    )


def _write_repair(
    state: FleetState, name: str, others: Sequence[str], *, trouble: str, detail: str
) -> str:
    assert state.started is not None
    todo = state.todos[name].todo
    met = [_show_todo(state.todos[other].todo) for other in others]
    return _read("repair").format(
        trouble=trouble,
        goal=state.started.goal,
        id=todo.id,
        title=todo.title,
        description=todo.description or todo.title,
        others="\n".join(met) or "The files as they were when the fleet started.\n",
        detail=detail,
    )


def _show_todo(todo: Todo) -> str:
    text = todo.description or todo.title
    return f'<todo id="{todo.id}" title="{todo.title}">\n{text}\n</todo>\n'


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, f"{name}.md"), encoding="utf-8") as file:
        return file.read()
