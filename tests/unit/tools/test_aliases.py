"""Names models know our tools by from elsewhere: what they mean here, and what they never mean."""

from typing import Any

import msgspec
import pytest

from trimtab.contracts.messages import ToolCall
from trimtab.contracts.tool import ToolResult
from trimtab.tools.aliases import ALIASES
from trimtab.tools.arguments import read_arguments
from trimtab.tools.catalog import builtin_tools, translate

TOOLS = builtin_tools()


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=msgspec.json.encode(args).decode())


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


def test_what_a_session_lacks_cannot_be_had_by_another_name() -> None:
    without = {name: tool for name, tool in TOOLS.items() if name != "bash"}
    written = call("run_in_terminal", command="ls")
    assert translate(written, without) is written


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
