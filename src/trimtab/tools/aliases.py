"""Translates calls of tools that models know from editors and other agents."""

from collections.abc import Callable, Mapping
from re import escape, findall
from shlex import quote
from typing import Any

import msgspec

from trimtab.contracts.messages import ToolCall
from trimtab.contracts.tool import Tool


class Alias(msgspec.Struct, frozen=True):
    """Our tool, and how to translate the fields of the other one.

    `fields` renames fields, `ranges` makes a list of two fields, the first and the last, `words`
    replaces values, and `rewrite` handles all other cases. Fields with equal names are not listed.
    """

    tool: str
    fields: Mapping[str, str] = {}
    ranges: Mapping[str, tuple[str, str]] = {}
    words: Mapping[str, Mapping[Any, str]] = {}
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] = lambda args: args


def confirmation(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a confirmation into a question."""
    text = "\n".join(str(args[name]) for name in ("title", "message") if args.get(name))
    return {"question": text, "choices": ["Yes", "No"], "allow_freeform": False}


def task_command(args: dict[str, Any]) -> dict[str, Any]:
    """Turn an editor's task into the command that it runs."""
    task = args.get("task")
    if not isinstance(task, dict) or not task.get("command"):
        return args
    given = task.get("args")
    words = [quote(str(word)) for word in given] if isinstance(given, list) else []
    return {
        "command": " ".join((str(task["command"]), *words)),
        "description": str(task.get("label", "Run a task")),
        "mode": "async" if task.get("isBackground") is True else "sync",
    }


def editor_cell(args: dict[str, Any]) -> dict[str, Any]:
    """Translate a change of a cell as VS Code's tool writes it."""
    cell = {"TOP": "0", "BOTTOM": None}.get(str(args.get("cellId")), args.get("cellId"))
    kind = {"markdown": "markdown"}.get(str(args.get("language")), "code")
    code = args.get("newCode")
    source = "\n".join(map(str, code)) if isinstance(code, list) else code
    action = {"edit": "replace"}.get(str(args.get("editType")), args.get("editType"))
    found = {"path": args.get("filePath"), "action": action, "cell": cell, "source": source}
    if action == "insert":
        found["cell_type"] = kind
    return {name: value for name, value in found.items() if value is not None}


def claude_cell(args: dict[str, Any]) -> dict[str, Any]:
    """Translate a change of a cell as Claude Code's tool writes it."""
    action = args.get("edit_mode") or "replace"
    cell = args.get("cell_id") or ("0" if action == "insert" else None)
    names = {"notebook_path": "path", "new_source": "source", "cell_type": "cell_type"}
    found = {ours: args[theirs] for theirs, ours in names.items() if args.get(theirs) is not None}
    return {**found, "action": action} | ({} if cell is None else {"cell": cell})


def search_text(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a search, for plain text by default, into one by regular expression."""
    pattern = str(args.get("query", ""))
    if args.get("isRegexp") is not True:
        pattern = escape(pattern)
    found = {"pattern": pattern, "-i": True, "output_mode": "content", "-n": True}
    return found | ({"glob": args["includePattern"]} if args.get("includePattern") else {})


def search_meaning(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a search by meaning into one for any of its words."""
    words = [word for word in findall(r"\w+", str(args.get("query", ""))) if len(word) > MIN_WORD]
    pattern = "|".join(dict.fromkeys(words)) or escape(str(args.get("query", "")))
    return {"pattern": pattern, "-i": True, "output_mode": "files_with_matches"}


def code_errors(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a question for the errors of files into one for the first of them."""
    paths = args.get("filePaths")
    return {"action": "diagnostics", "path": str(paths[0]) if isinstance(paths, list) else ""}


def code_uses(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a search for the uses of a symbol into a question to a language server."""
    paths = args.get("filePaths")
    found = {"action": "references", "symbol": str(args.get("symbolName", ""))}
    return found | ({"path": str(paths[0])} if isinstance(paths, list) and paths else {})


def todo_statements(args: dict[str, Any]) -> dict[str, Any]:
    """Turn a whole to-do list, as editors and Claude Code write it, into statements."""
    given = args.get("todoList") or args.get("todos")
    if args.get("operation") == "read" or not isinstance(given, list):
        return {"description": "Read the todos", "query": "SELECT * FROM todos"}
    rows = [
        "({}, {}, {}, {})".format(
            *map(quote_sql, (f"todo-{number}", find_title(todo), find_note(todo), find_state(todo)))
        )
        for number, todo in enumerate(given, 1)
        if isinstance(todo, dict)
    ]
    statements = ["DELETE FROM todos;"]
    if rows:
        statements.append(" ".join((INSERT_TODOS, ", ".join(rows))) + ";")
    query = "\n".join(statements)
    return {"description": "Write the todos", "query": query}


def find_title(todo: dict[str, Any]) -> str:
    return str(todo.get("title") or todo.get("content") or "")


def find_note(todo: dict[str, Any]) -> str:
    return str(todo.get("description") or todo.get("activeForm") or "")


def find_state(todo: dict[str, Any]) -> str:
    state = str(todo.get("status", "")).replace("-", "_")
    return {"completed": "done", "in_progress": "in_progress"}.get(state, "pending")


def quote_sql(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


INSERT_TODOS = "INSERT INTO todos (id, title, description, status) VALUES"
MIN_WORD = 2
"""Shorter words are not searched for."""
ALIASES: Mapping[str, Alias] = {
    # VS Code
    "run_in_terminal": Alias(
        "bash",
        {"explanation": "description", "isBackground": "mode"},
        words={"mode": {True: "async", False: "sync"}},
    ),
    "get_terminal_output": Alias("read_bash", {"id": "shellId"}),
    "terminal_last_command": Alias("list_bash"),
    "create_and_run_task": Alias("bash", rewrite=task_command),
    "vscode_get_confirmation": Alias("ask_user", rewrite=confirmation),
    "grep_search": Alias("grep", rewrite=search_text),
    "read_file": Alias("view", {"filePath": "path"}, {"view_range": ("startLine", "endLine")}),
    "list_dir": Alias("view"),
    "create_file": Alias("create", {"filePath": "path", "content": "file_text"}),
    "replace_string_in_file": Alias(
        "edit", {"filePath": "path", "oldString": "old_str", "newString": "new_str"}
    ),
    "file_search": Alias("glob", {"query": "pattern"}),
    "semantic_search": Alias("grep", rewrite=search_meaning),
    "get_errors": Alias("lsp", rewrite=code_errors),
    "list_code_usages": Alias("lsp", rewrite=code_uses),
    "manage_todo_list": Alias("sql", rewrite=todo_statements),
    "edit_notebook_file": Alias("notebook", rewrite=editor_cell),
    # Claude Code
    "Bash": Alias("bash"),
    "Read": Alias("view", {"file_path": "path"}),
    "Write": Alias("create", {"file_path": "path", "content": "file_text"}),
    "Edit": Alias("edit", {"file_path": "path", "old_string": "old_str", "new_string": "new_str"}),
    "NotebookEdit": Alias("notebook", rewrite=claude_cell),
    "TodoWrite": Alias("sql", rewrite=todo_statements),
    "Grep": Alias("grep"),
    "Glob": Alias("glob", {"path": "paths"}),
}
INSTEAD: Mapping[str, str] = {
    "terminal_selection": "There is no editor here; use read_bash to see the output of a command.",
    "run_task": "Read .vscode/tasks.json and run the command of the task with bash.",
    "list_code_usages": "Search with grep for the name.",
    "get_vscode_api": "Look into the package's own files or its documentation.",
    "test_failure": "Run the tests with bash and read what they print.",
    "run_tests": "Run the tests with bash, with the command this project uses.",
    "get_errors": "Run the project's compiler, type checker or linter with bash.",
}
"""Tools of editors and other agents without an equivalent, and what to do instead."""
EDITOR = "str_replace_editor"
"""One tool for three of ours; its field `command` selects one."""
COMMANDS = {"view": "view", "create": "create", "str_replace": "edit"}


def translate_name(call: ToolCall, tools: Mapping[str, Tool]) -> ToolCall:
    """Return the call for our tool if it names an equivalent one; else return it unchanged.

    A tool of the session is never taken for an alias, and an alias never leads to a tool that the
    session does not have.
    """
    if call.name in tools or (call.name not in ALIASES and call.name != EDITOR):
        return call
    args = call.readable_arguments()
    if not isinstance(args, dict):
        return call
    alias = ALIASES.get(call.name) or Alias(COMMANDS.get(str(args.pop("command", "")), ""))
    if alias.tool not in tools:
        return call
    args = alias.rewrite(args)
    renamed = {alias.fields.get(name, name): value for name, value in args.items()}
    for name, (first, last) in alias.ranges.items():
        if first in renamed:
            renamed[name] = [renamed.pop(first), renamed.pop(last, -1)]
    for name, words in alias.words.items():
        if isinstance(renamed.get(name), bool):
            renamed[name] = words[renamed[name]]
    text = msgspec.json.encode(renamed).decode()
    return msgspec.structs.replace(call, name=alias.tool, arguments=text)
