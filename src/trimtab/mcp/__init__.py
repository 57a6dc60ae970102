"""MCP servers: the client, the transports, and the tools of a session's servers."""
