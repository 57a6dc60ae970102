"""The `write_agent` tool."""
