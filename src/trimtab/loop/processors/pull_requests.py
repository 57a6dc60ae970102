"""Records the pull requests that tools and commands open."""

import re

from trimtab.contracts.events.own import PullRequestOpened
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult

TOOLS = ("create_pull_request", "create_merge_request")
ADDRESS = r"https?://[^\s\"'<>\\]+?/(?:pull|merge_requests|pull-requests)/\d+"
COMMAND = r"\b(?:gh\s+pr\s+create|glab\s+mr\s+create|hub\s+pull-request)\b"


def find_address(text: str) -> str:
    """Return the first address of a pull request in a text; empty if there is none."""
    match = re.search(ADDRESS, text)
    return match[0] if match else ""


class PullRequests(Processor):
    """Looks for the address in the answer of what opened a pull request."""

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        failed = result.shell is not None and result.shell.exit_code not in (None, 0)
        if result.kind == "success" and not failed and may_open(pending):
            address = find_address(result.text)
            if address:
                run.session.emit(PullRequestOpened(url=address, tool_call_id=pending.call.id))
        return result


def may_open(pending: PendingCall) -> bool:
    """Return True if a call could have opened a pull request."""
    origin = origin_of(pending.tool)
    if origin is not None:
        return origin.tool in TOOLS
    command = pending.args.get("command")
    return isinstance(command, str) and re.search(COMMAND, command) is not None
