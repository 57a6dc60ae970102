"""Names models know our tools by from elsewhere: what they mean here, and what they never mean."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolkit import open_bench
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.tool import ToolResult
from trimtab.tools.aliases import ALIASES
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import builtin_tools, translate

TOOLS = builtin_tools()


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=msgspec.json.encode(args).decode())


@pytest.mark.proves("AMREC-07")
@pytest.mark.parametrize(
    ("written", "tool", "args"),
    [
        (
            call("run_in_terminal", command="ls", explanation="look", isBackground=True),
            "bash",
            {"command": "ls", "description": "look", "mode": "async"},
        ),
        (call("get_terminal_output", id="7"), "read_bash", {"shellId": "7"}),
        (
            call("read_file", filePath="a", startLine=2, endLine=5),
            "view",
            {"path": "a", "view_range": [2, 5]},
        ),
        (
            call("read_file", filePath="a", startLine=2),
            "view",
            {"path": "a", "view_range": [2, -1]},
        ),
        (call("list_dir", path="a"), "view", {"path": "a"}),
        (call("create_file", filePath="a", content="x"), "create", {"path": "a", "file_text": "x"}),
        (
            call("replace_string_in_file", filePath="a", oldString="x", newString="y"),
            "edit",
            {"path": "a", "old_str": "x", "new_str": "y"},
        ),
        (call("file_search", query="**/*.py"), "glob", {"pattern": "**/*.py"}),
        (
            call("Bash", command="ls", description="d"),
            "bash",
            {"command": "ls", "description": "d"},
        ),
        (call("Read", file_path="a"), "view", {"path": "a"}),
        (call("Write", file_path="a", content="x"), "create", {"path": "a", "file_text": "x"}),
        (
            call("Edit", file_path="a", old_string="x", new_string="y"),
            "edit",
            {"path": "a", "old_str": "x", "new_str": "y"},
        ),
        (
            call("semantic_search", query="where is the price of a rounded item"),
            "grep",
            {
                "pattern": "where|the|price|rounded|item",
                "-i": True,
                "output_mode": "files_with_matches",
            },
        ),
        (call("get_errors", filePaths=["a"]), "lsp", {"action": "diagnostics", "path": "a"}),
        (
            call("list_code_usages", symbolName="x", filePaths=["a"]),
            "lsp",
            {"action": "references", "symbol": "x", "path": "a"},
        ),
        (
            call(
                "manage_todo_list",
                operation="write",
                todoList=[{"id": 1, "title": "It's", "description": "d", "status": "in-progress"}],
            ),
            "sql",
            {
                "description": "Write the todos",
                "query": "DELETE FROM todos;\nINSERT INTO todos (id, title, description, status) "
                "VALUES ('todo-1', 'It''s', 'd', 'in_progress');",
            },
        ),
        (
            call("TodoWrite", todos=[{"content": "x", "status": "completed", "activeForm": "y"}]),
            "sql",
            {
                "description": "Write the todos",
                "query": "DELETE FROM todos;\nINSERT INTO todos (id, title, description, status) "
                "VALUES ('todo-1', 'x', 'y', 'done');",
            },
        ),
        (
            call("manage_todo_list", operation="read"),
            "sql",
            {"description": "Read the todos", "query": "SELECT * FROM todos"},
        ),
        (call("Grep", pattern="x", path="a"), "grep", {"pattern": "x", "path": "a"}),
        (call("Glob", pattern="*", path="a"), "glob", {"pattern": "*", "paths": ["a"]}),
        (
            call("str_replace_editor", command="str_replace", path="a", old_str="x", new_str="y"),
            "edit",
            {"path": "a", "old_str": "x", "new_str": "y"},
        ),
        (
            call("str_replace_editor", command="create", path="a", file_text="x"),
            "create",
            {"path": "a", "file_text": "x"},
        ),
        (call("str_replace_editor", command="view", path="a"), "view", {"path": "a"}),
    ],
)
def test_a_call_by_another_name_is_the_call_that_is_meant(
    written: ToolCall, tool: str, args: dict[str, Any]
) -> None:
    meant = translate(written, TOOLS)
    assert (meant.name, meant.id) == (tool, written.id)
    assert read_arguments(TOOLS[tool].spec, meant.arguments) == args


def test_every_other_name_leads_to_a_tool_that_is_there() -> None:
    assert {alias.tool for alias in ALIASES.values()} <= TOOLS.keys()
    assert not ALIASES.keys() & TOOLS.keys()


@pytest.mark.proves("AMREC-07")
def test_what_a_session_lacks_cannot_be_had_by_another_name() -> None:
    without = {name: tool for name, tool in TOOLS.items() if name != "bash"}
    written = call("run_in_terminal", command="ls")
    assert translate(written, without) is written


@pytest.mark.proves("AMREC-07")
def test_a_tool_that_has_the_name_itself_is_meant() -> None:
    own = {**TOOLS, "read_file": TOOLS["sql"]}
    written = call("read_file", filePath="a")
    assert translate(written, own) is written


@pytest.mark.parametrize(
    "written",
    [
        call("str_replace_editor", command="undo_edit", path="a"),
        call("str_replace_editor"),
        call("unheard_of", path="a"),
        ToolCall(id="1", name="read_file", arguments='{"filePath": '),
        ToolCall(id="1", name="read_file", arguments="[1]"),
    ],
)
def test_what_means_nothing_stays_as_it_is(written: ToolCall) -> None:
    assert translate(written, TOOLS) is written


def test_a_wrong_argument_is_named_as_our_tool_has_it() -> None:
    meant = translate(call("read_file", filePath=["a"]), TOOLS)
    refused = read_arguments(TOOLS["view"].spec, meant.arguments)
    assert isinstance(refused, ToolResult)
    assert '"path": Expected string' in refused.text


async def test_a_to_do_list_of_another_agent_is_kept_in_the_table(tmp_path: Path) -> None:
    todos = [{"content": "It's one; DROP TABLE todos", "status": "pending"}, {"content": "two"}]
    async with open_bench(tmp_path) as bench:
        written = translate(call("TodoWrite", todos=todos), bench.tools)
        args = msgspec.json.decode(written.arguments)
        assert (await bench.call("sql", **args)).kind == "success"
        again = translate(call("TodoWrite", todos=todos[:1]), bench.tools)
        await bench.call("sql", **msgspec.json.decode(again.arguments))
        shown = await bench.text("sql", description="x", query="SELECT title, status FROM todos")
    assert "It's one; DROP TABLE todos" in shown
    assert "two" not in shown
