"""Agents: how one is built, what it may do, and the sub-agents that work for it."""
