"""The client that the official MCP suite drives: the installed program, with a scripted model.

The suite starts `python mcp_suite_client.py URL` for each scenario. Servers that want a sign-in get
`trimtab mcp login`, with a browser that agrees to everything; then a run calls the tools of the
scenario, and signs in again if a call was refused. Questions of servers need somebody to answer
them, so those scenarios run over the SDK's protocol.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from clikit import Cli, Outcome, serving
from rpckit import Raw, request

NAME = "suite"
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "initialize": [],
    "request-metadata": [],
    "json-schema-ref-no-deref": [],
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
    "http-standard-headers": [("test_headers", {}), ("my-hyphenated-tool", {})],
    "http-invalid-tool-headers": [("valid_tool", {"region": "us-west1"})],
}
"""Scenario → the tools that the model calls; `test-tool` where a scenario is not named."""
ASKING = ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state")
"""Scenarios whose servers ask a person something."""
UNATTENDED = ("auth/client-credentials", "auth/cross-app", "auth/enterprise")
"""Scenarios in which nobody signs in."""
CIMD = "https://conformance-test.local/client-metadata.json"
"""The client id that the suite expects where the server takes the address of a document."""
MAX_LOGINS = 3
BROWSER = f"{sys.executable} {Path(__file__).with_name('mcp_browser.py')} %s"


def settings(scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    """The `oauth` of the server's entry, from what the suite says a person would know."""
    found: dict[str, Any] = {"clientMetadataUrl": CIMD}
    if "client_id" in context:
        found = {"clientId": context["client_id"]}
    if "client_secret" in context:
        found["clientSecret"] = context["client_secret"]
    if "private_key_pem" in context:
        found["privateKey"] = context["private_key_pem"]
        found["signingAlgorithm"] = context.get("signing_algorithm", "ES256")
    if "idp_id_token" in context:
        found["identityProvider"] = {
            "tokenEndpoint": context["idp_token_endpoint"],
            "clientId": context["idp_client_id"],
            "idToken": context["idp_id_token"],
        }
    if "client-credentials" in scenario:
        found["grantType"] = "client_credentials"
    return found


def choose_calls(scenario: str, context: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    given = context.get("toolCalls")
    if given:
        return [(call["name"], call["arguments"]) for call in given]
    return CALLS.get(scenario, [("test-tool", {})])


def script(calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    replies = [
        {"tools": [{"name": f"{NAME}-{name}", "arguments": arguments}]} for name, arguments in calls
    ]
    return [*replies, {"text": "Done."}]


async def run(cli: Cli, calls: list[tuple[str, dict[str, Any]]]) -> Outcome:
    async with serving(script(calls)) as model:
        return await cli.use(model).ask("go")


def worked(outcome: Outcome) -> bool:
    return all(end["success"] for end in outcome.of("tool.execution_complete"))


async def sign_in_and_run(cli: Cli, calls: list[tuple[str, dict[str, Any]]]) -> int:
    """Sign in and call; again if a call is refused, as a person would who reads what it says."""
    for _ in range(MAX_LOGINS):
        login = await cli.run("mcp", "login", NAME, env={"BROWSER": BROWSER})
        print(login.text, login.notes, file=sys.stderr)
        if login.code:
            return login.code
        outcome = await run(cli, calls)
        print(outcome.text, outcome.notes, file=sys.stderr)
        if worked(outcome):
            return 0
    return 1


async def run_asked(cli: Cli, calls: list[tuple[str, dict[str, Any]]]) -> int:
    """Run over the SDK's protocol, and accept every form without filling it in."""
    async with serving(script(calls)) as model:
        raw = await Raw.start(cli.use(model))
        await raw.call("connect", 1, protocolVersion=3)
        created = await raw.call(
            "session.create",
            2,
            requestElicitation=True,
            enableConfigDiscovery=True,
            requestPermission=True,
            sessionId="suite-1",
        )
        assert "result" in created, created
        await raw.send(request("session.send", 3, sessionId="suite-1", prompt="go"))
        number = 10
        while True:
            message = await raw.read()
            event = (message.get("params") or {}).get("event") or {}
            print(json.dumps(message), file=sys.stderr)
            if event.get("type") == "elicitation.requested":
                number += 1
                answer = {"action": "accept", "content": {}}
                await raw.send(
                    request(
                        "session.ui.handlePendingElicitation",
                        number,
                        sessionId="suite-1",
                        requestId=event["data"]["requestId"],
                        result=answer,
                    )
                )
            elif message.get("method") == "permission.request":
                raise AssertionError("permissions are not asked for")
            elif event.get("type") == "permission.requested":
                number += 1
                await raw.send(
                    request(
                        "session.permissions.handlePendingPermissionRequest",
                        number,
                        sessionId="suite-1",
                        requestId=event["data"]["requestId"],
                        result={"kind": "approve-once"},
                    )
                )
            elif event.get("type") == "session.idle":
                return await raw.end()


async def main(url: str) -> int:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory(prefix="trimtab-suite-") as folder:
        cli = Cli(Path(folder))
        entry = {"type": "http", "url": url, "slowConnectionThresholdMs": 10_000}
        if scenario.startswith("auth/"):
            entry["oauth"] = settings(scenario, context)
        config = {"mcpServers": {NAME: entry}}
        (cli.home / "mcp-config.json").write_text(json.dumps(config))
        calls = choose_calls(scenario, context)
        if scenario in ASKING:
            return await run_asked(cli, calls)
        if scenario.startswith("auth/") and not scenario.startswith(UNATTENDED):
            return await sign_in_and_run(cli, calls)
        outcome = await run(cli, calls)
        print(outcome.text, outcome.notes, file=sys.stderr)
        return 0 if worked(outcome) and not outcome.code else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
