"""Finds and loads the files that customize agents: instructions, skills, agents, servers, hooks."""
