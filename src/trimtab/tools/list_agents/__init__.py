"""The `list_agents` tool."""
