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


SEARCH = {
    "name": "session_store_sql",
    "arguments": {"description": "test", "query": "SELECT user_message FROM turns"},
}
ELSEWHERE: list[tuple[str, tuple[str, ...], bool]] = [
    ("nothing said", (), False),
    ("tools", ("--allow-all-tools",), False),
    ("paths", ("--allow-all-paths",), True),
    ("all", ("--allow-all",), True),
    ("the folder", ("--add-dir", "{home}/session-state"), True),
    ("a rule", ("--allow-tool", "read({home}/session-state)"), True),
    ("denied", ("--allow-all", "--deny-tool", "read({home}/session-state)"), False),
    ("denied by name", ("--allow-all", "--deny-tool", "session_store_sql"), False),
]


@pytest.mark.parametrize(("_", "flags", "found"), ELSEWHERE, ids=[row[0] for row in ELSEWHERE])
async def test_past_sessions_are_read_only_where_reading_there_is_allowed(
    tmp_path: Path, _: str, flags: tuple[str, ...], found: bool
) -> None:
    cli = Cli(tmp_path)
    async with serving(["Yes.", {"tools": [SEARCH]}, "done"]) as server:
        await cli.use(server).ask("the marmot speaks")
        given = ["--disallow-temp-dir", *(flag.format(home=cli.home) for flag in flags)]
        outcome = await cli.run("-p", "go", "--output-format", "json", *given)
        (result,) = [one for one in server.requests[-1].json["messages"] if one["role"] == "tool"]
    assert ("the marmot speaks" in result["content"]) == found
    assert outcome.code == (0 if found else 4)
    if not found:
        assert "Permission denied" in result["content"]
