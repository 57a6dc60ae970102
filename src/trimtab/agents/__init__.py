"""Agents: builds the main agent from its parts, and runs its sub-agents."""
