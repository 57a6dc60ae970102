"""The plan and the to-do list of a session, as tools change them and clients hear of it."""

from pathlib import Path

import pytest

from clikit import Cli, bash, serving


def sql(query: str) -> dict[str, object]:
    return {"name": "sql", "arguments": {"description": "test", "query": query}}


@pytest.mark.proves("OUTER-05")
async def test_tools_that_change_the_todos_or_the_plan_are_told(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    add = sql("INSERT INTO todos (id, title) VALUES ('a', 'First')")
    replies = [
        {"tools": [add]},
        {"tools": [sql("SELECT * FROM todos")]},
        {"tools": [bash('echo plan > "$(ls -d "$COPILOT_HOME"/session-state/*/)plan.md"')]},
        {"tools": [bash("true")]},
        {"text": "done"},
    ]
    async with serving(replies) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0, outcome.notes
    assert outcome.types().count("session.todos_changed") == 1
    assert outcome.of("session.plan_changed") == [{"operation": "create"}]
    order = outcome.types()
    assert order.index("session.todos_changed") < order.index("session.plan_changed")
