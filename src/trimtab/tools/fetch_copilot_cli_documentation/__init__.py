"""The `fetch_copilot_cli_documentation` tool: this program's own documentation."""
