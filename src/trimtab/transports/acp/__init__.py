"""Serves the Agent Client Protocol, by which editors drive sessions."""
