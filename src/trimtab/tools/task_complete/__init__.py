"""The `task_complete` tool."""
