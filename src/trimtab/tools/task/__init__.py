"""The `skill` tool."""
