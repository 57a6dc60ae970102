"""The table of built-in tools."""

import os

import trimtab.tools
from trimtab.tools.catalog import NAMES, builtin_tools, load_tool


def test_tools_come_in_the_order_of_the_wire() -> None:
    assert list(builtin_tools())[:16] == [
        "bash",
        "read_bash",
        "write_bash",
        "stop_bash",
        "list_bash",
        "view",
        "create",
        "edit",
        "apply_patch",
        "web_fetch",
        "skill",
        "sql",
        "grep",
        "rg",
        "glob",
        "task",
    ]


def test_only_named_tools_are_given() -> None:
    assert list(builtin_tools({"view", "bash", "unheard"})) == ["bash", "view"]


def test_every_tool_folder_is_in_the_table_and_has_a_description() -> None:
    folder = os.path.dirname(trimtab.tools.__file__)
    names = {name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/tool.py")}
    assert names == set(NAMES)
    for name, tool in builtin_tools().items():
        assert tool.spec.name == name
        assert tool.spec.description
        assert tool.spec == load_tool(name).spec, "run make docs"
