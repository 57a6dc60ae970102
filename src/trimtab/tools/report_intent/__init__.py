"""Says what the agent is about to do."""
