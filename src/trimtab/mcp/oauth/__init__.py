"""OAuth 2.1 for MCP servers: discovery, sign-in, tokens and their store."""
