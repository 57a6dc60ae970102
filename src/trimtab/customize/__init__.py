"""Finds what people put on disk for agents: instructions, skills, commands, agents, servers, hooks."""
