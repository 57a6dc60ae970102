"""The `session_store_sql` tool: a search over past sessions."""
