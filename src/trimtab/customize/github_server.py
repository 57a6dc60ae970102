"""GitHub's own MCP server: built in, and used when there is a token for GitHub."""

from collections.abc import Mapping
from typing import Any

from trimtab.contracts.options import GitHubServerOptions
from trimtab.customize.github_token import find_github_token
from trimtab.customize.server_entry import ServerFile

NAME = "github-mcp-server"
SERVICE = "https://api.githubcopilot.com"


def github_server(
    options: GitHubServerOptions, tools: list[str], toolsets: list[str], env: Mapping[str, str]
) -> ServerFile | None:
    """Return the server as if a file configured it; None without a token.

    `tools` and `toolsets` are those of the settings; the options add to them. Unless more is asked
    for, its tools only read.
    """
    token = find_github_token(env)
    if not token:
        return None
    headers = {"Authorization": f"Bearer {token}"}
    tools, toolsets = [*tools, *options.tools], [*toolsets, *options.toolsets]
    if options.all_tools:
        headers["X-MCP-Toolsets"] = "all"
    else:
        if toolsets:
            headers["X-MCP-Toolsets"] = ",".join(dict.fromkeys(("default", *toolsets)))
        if tools:
            headers["X-MCP-Tools"] = ",".join(dict.fromkeys(tools))
        if not tools and not toolsets:
            headers["X-MCP-Readonly"] = "true"
    entry: dict[str, Any] = {
        "type": "http",
        "url": env.get("COPILOT_API_URL", SERVICE).rstrip("/") + "/mcp/",
        "headers": headers,
        "disabled": not options.enabled,
    }
    content = {"mcpServers": {NAME: entry}}
    return ServerFile(path="", source="builtin", content=content, literal=True)
