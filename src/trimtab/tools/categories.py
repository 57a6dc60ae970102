"""The categories of tools, by which displays group and mark calls."""

from typing import Literal

Category = Literal[
    "file", "shell", "search", "agent", "interaction", "review", "data", "security", "other"
]

CATEGORIES: dict[Category, tuple[str, ...]] = {
    "file": ("view", "create", "edit", "apply_patch", "notebook", "str_replace_editor"),
    "shell": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "search": (
        "grep",
        "rg",
        "glob",
        "lsp",
        "web_search",
        "web_fetch",
        "fetch_copilot_cli_documentation",
    ),
    "agent": (
        "task",
        "read_agent",
        "write_agent",
        "list_agents",
        "stop_agent",
        "skill",
        "report_intent",
        "task_complete",
    ),
    "interaction": ("ask_user", "exit_plan_mode"),
    "review": ("code_review", "create_pull_request", "update_pull_request", "reply_to_comment"),
    "data": ("sql", "session_store_sql", "store_memory", "read_memories"),
    "security": ("codeql_checker", "gh-advisory-database", "secret_scanning"),
}
"""The tools of each category: built-in ones, and those that other agents' logs have."""

_BY_NAME = {name: category for category, names in CATEGORIES.items() for name in names}


def find_category(name: str, *, is_remote: bool = False) -> Category:
    """Return the category of a tool; one of an MCP server is `data` unless its name says more."""
    return _BY_NAME.get(name, "data" if is_remote else "other")
