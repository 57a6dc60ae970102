"""Lists the commands of the session."""
