"""The `read_agent` tool."""
