"""The `task` tool."""
