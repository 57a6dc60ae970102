"""Names that models know our tools by from elsewhere: editors and other agents."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.contracts.messages import ToolCall
from trimtab.contracts.tool import Tool


class Alias(msgspec.Struct, frozen=True):
    """The tool that is meant, and what its fields are called under the other name.

    `ranges` makes one field of two, the first and the last; `words` gives a field's values other
    words. Fields that are called alike on both sides are not listed.
    """

    tool: str
    fields: Mapping[str, str] = {}
    ranges: Mapping[str, tuple[str, str]] = {}
    words: Mapping[str, Mapping[Any, str]] = {}


ALIASES: Mapping[str, Alias] = {
    # VS Code
    "run_in_terminal": Alias(
        "bash",
        {"explanation": "description", "isBackground": "mode"},
        words={"mode": {True: "async", False: "sync"}},
    ),
    "get_terminal_output": Alias("read_bash", {"id": "shellId"}),
    "read_file": Alias("view", {"filePath": "path"}, {"view_range": ("startLine", "endLine")}),
    "list_dir": Alias("view"),
    "create_file": Alias("create", {"filePath": "path", "content": "file_text"}),
    "replace_string_in_file": Alias(
        "edit", {"filePath": "path", "oldString": "old_str", "newString": "new_str"}
    ),
    "file_search": Alias("glob", {"query": "pattern"}),
    # Claude Code
    "Bash": Alias("bash"),
    "Read": Alias("view", {"file_path": "path"}),
    "Write": Alias("create", {"file_path": "path", "content": "file_text"}),
    "Edit": Alias("edit", {"file_path": "path", "old_string": "old_str", "new_string": "new_str"}),
    "Grep": Alias("grep"),
    "Glob": Alias("glob", {"path": "paths"}),
}
EDITOR = "str_replace_editor"
"""One tool for three of ours; its field `command` says which."""
COMMANDS = {"view": "view", "create": "create", "str_replace": "edit"}


def translate_name(call: ToolCall, tools: Mapping[str, Tool]) -> ToolCall:
    """The call in our words, if its tool goes by another name here; else the call as it is.

    A tool that is there under its own name is always that one, and one that is not there for this
    session cannot be reached by another name either.
    """
    if call.name in tools or (call.name not in ALIASES and call.name != EDITOR):
        return call
    args = call.readable_arguments()
    if not isinstance(args, dict):
        return call
    alias = ALIASES.get(call.name) or Alias(COMMANDS.get(str(args.pop("command", "")), ""))
    if alias.tool not in tools:
        return call
    renamed = {alias.fields.get(name, name): value for name, value in args.items()}
    for name, (first, last) in alias.ranges.items():
        if first in renamed:
            renamed[name] = [renamed.pop(first), renamed.pop(last, -1)]
    for name, words in alias.words.items():
        if isinstance(renamed.get(name), bool):
            renamed[name] = words[renamed[name]]
    text = msgspec.json.encode(renamed).decode()
    return msgspec.structs.replace(call, name=alias.tool, arguments=text)
