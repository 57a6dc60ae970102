"""Finds what people put on disk for agents: instructions, skills, agents, servers, hooks."""
