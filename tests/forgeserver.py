"""A stand-in for GitHub's MCP server, stricter than it: it knows only branches that were pushed.

As a program: `forgeserver.py STATE REPOSITORY`. It keeps the pull requests in the file STATE and
looks for branches in the bare REPOSITORY. Arguments that the service does not know are refused.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ADDRESS = "https://github.com/owner/project/pull/"
TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
PLACE = {"owner": TEXT, "repo": TEXT}
TOOLS: dict[str, dict[str, Any]] = {
    "create_pull_request": {"title": TEXT, "body": TEXT, "head": TEXT, "base": TEXT, "draft": FLAG},
    "list_pull_requests": {"state": TEXT, "head": TEXT},
    "update_pull_request": {"pullNumber": NUMBER, "title": TEXT, "body": TEXT},
}


class Refused(Exception):
    """The service would answer with an error."""


def has_branch(repository: str, name: str) -> bool:
    command = ["git", "-C", repository, "rev-parse", "--verify", "-q", f"refs/heads/{name}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def answer(state: list[dict[str, Any]], repository: str, name: str, given: dict[str, Any]) -> Any:
    unknown = given.keys() - PLACE.keys() - TOOLS[name].keys()
    if unknown or (given.get("owner"), given.get("repo")) != ("owner", "project"):
        raise Refused(f"unexpected arguments: {given}")
    if name == "create_pull_request":
        if not has_branch(repository, given["head"]) or not has_branch(repository, given["base"]):
            raise Refused("Validation Failed: head or base is invalid")
        if any(request["head"]["ref"] == given["head"] for request in state):
            raise Refused("Validation Failed: a pull request already exists")
        state.append({**given, "number": len(state) + 1, "head": {"ref": given["head"]}})
        return {"id": "1", "url": f"{ADDRESS}{len(state)}"}
    if name == "list_pull_requests":
        # the service ignores a head without its owner
        owner, _, branch = given.get("head", "").rpartition(":")
        return [r for r in state if owner != "owner" or r["head"]["ref"] == branch]
    found = [request for request in state if request["number"] == given["pullNumber"]]
    if not found:
        raise Refused("Not Found")
    found[0].update(given)
    return {"id": "1", "url": f"{ADDRESS}{given['pullNumber']}"}


def call(file: Path, repository: str, params: dict[str, Any]) -> dict[str, Any]:
    state = json.loads(file.read_text())
    try:
        text = json.dumps(answer(state, repository, params["name"], params["arguments"]))
    except Refused as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    file.write_text(json.dumps(state))
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    file, repository = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        message = json.loads(line)
        method, result = message.get("method"), None
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "forge", "version": "1"},
            }
        elif method == "tools/list":
            tools = [
                {"name": name, "inputSchema": {"type": "object", "properties": {**PLACE, **fields}}}
                for name, fields in TOOLS.items()
            ]
            result = {"tools": tools}
        elif method == "tools/call":
            result = call(file, repository, message["params"])
        if "id" in message:
            reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
            if result is None:
                reply["error"] = {"code": -32601, "message": f"no method {method}"}
            print(
                json.dumps(reply | ({"result": result} if result is not None else {})), flush=True
            )


if __name__ == "__main__":
    main()
