"""MCP servers: a client of our own, and tools of what it finds."""
