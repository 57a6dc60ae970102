"""Shows and changes customizations, for the commands about skills, agents, servers, plugins."""
