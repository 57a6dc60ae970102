"""Changes of the plan and the todos, as events."""

from pathlib import Path
from typing import Any

from loopkit import EchoTool, call, drained, make_run
from trimtab.loop.processors.plan_watcher import PlanWatcher


class Todos:
    """A list that a call may change, or only write again."""

    def __init__(self) -> None:
        self.version = 0
        self.rows: list[str] = []

    def find_version(self) -> int:
        return self.version

    async def read_all(self) -> Any:
        return list(self.rows), []


async def test_the_todos_are_told_of_only_when_they_differ(tmp_path: Path) -> None:
    todos = Todos()

    async def work(args: Any) -> None:
        todos.version += 1
        if args["text"] != "same":
            todos.rows.append(args["text"])

    replies = [{"tools": [call(text=text)]} for text in ("same", "one", "same", "two")]
    run = make_run(
        [*replies, "done"],
        "go",
        tools=[EchoTool(on_run=work)],
        processors=[PlanWatcher(str(tmp_path / "plan.md"), todos)],
    )
    session = await drained(run)
    seen = [
        event.type
        for event in session.events
        if event.type in ("tool.execution_start", "session.todos_changed")
    ]
    start, changed = "tool.execution_start", "session.todos_changed"
    assert seen == [start, start, changed, start, start, changed]


async def test_making_changing_and_deleting_the_plan_are_told_apart(tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"

    async def work(args: Any) -> None:
        if args["text"] == "delete":
            plan.unlink()
        elif args["text"] != "look":
            plan.write_text(args["text"])

    texts = ("look", "first", "look", "second words", "delete", "look")
    replies = [{"tools": [call(text=text)]} for text in texts]
    run = make_run(
        [*replies, "done"],
        "go",
        tools=[EchoTool(on_run=work)],
        processors=[PlanWatcher(str(plan), Todos())],
    )
    told = (await drained(run)).of("session.plan_changed")
    assert [change.operation for change in told] == ["create", "update", "delete"]
