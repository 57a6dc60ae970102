"""Serves MCP: this program's own tools, or the servers of a configuration."""
