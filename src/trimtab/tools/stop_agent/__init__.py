"""The `stop_agent` tool."""
