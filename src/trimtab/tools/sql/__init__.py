"""The `sql` tool: the database of a session."""
