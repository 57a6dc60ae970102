"""Signing in to MCP servers, and forms of servers, over the official SDK."""

import asyncio
import sys
from typing import Any

import pytest
from copilot import rpc

import mcp_browser
from mcpkit import PATIENT, entry
from oauthkit import serving_sign_in
from sdkkit import Sdk, bash, talking, use

DONE = {"text": "Done."}


async def test_a_client_supplies_the_token_that_a_server_wants(sdk: Sdk) -> None:
    async with serving_sign_in() as peer:
        peer.issued["from-the-host-0123"] = "9999999999 read"
        asked: list[Any] = []

        async def supply(request: Any, _: Any = None) -> Any:
            asked.append(request)
            return {"kind": "token", "accessToken": "from-the-host-0123"}

        servers = {"far": {"type": "http", "url": peer.url, "tools": ["*"], **PATIENT}}
        script = [use("far-echo", text="hi"), DONE]
        async with talking(sdk, script, mcp_servers=servers, on_mcp_auth_request=supply) as talk:
            states = "session.mcp_server_status_changed"
            await talk.session.rpc.mcp.list()
            await talk.heard.until(
                lambda: [one.status.value for one in talk.heard.of(states)][-1:] == ["connected"]
            )
            await talk.say("go")
            assert talk.heard.of("tool.execution_complete")[0].result.content == "hi"
            assert talk.heard.of("mcp.oauth_completed")[0].outcome.value == "token"
        assert asked[0]["serverName"] == "far"
        assert asked[0]["reason"] == "initial"
        assert not peer.logins


async def test_a_token_of_a_client_is_renewed_before_it_ends(sdk: Sdk) -> None:
    async with serving_sign_in() as peer:
        asked: list[Any] = []

        async def supply(request: Any, _: Any = None) -> Any:
            asked.append(request)
            token = f"from-the-host-{len(asked)}-0123"
            peer.issued[token] = "9999999999 read"
            return {"kind": "token", "accessToken": token, "expiresIn": 600 if asked[1:] else 3}

        servers = {"far": {"type": "http", "url": peer.url, "tools": ["*"], **PATIENT}}
        servers["far"] |= {"oauthClientId": "mine", "oauthPublicClient": True}
        script = [use("far-echo", text="one"), bash("sleep 3.1"), use("far-echo", text="two"), DONE]
        async with talking(sdk, script, mcp_servers=servers, on_mcp_auth_request=supply) as talk:
            await talk.say("go")
            ends = talk.heard.of("tool.execution_complete")
            assert [ends[0].result.content, ends[2].result.content] == ["one", "two"]
        assert [request["reason"] for request in asked] == ["initial", "refresh"]
        assert asked[0]["staticClientConfig"] == {"clientId": "mine", "publicClient": True}


async def test_a_client_that_has_no_token_leaves_the_server_waiting_for_a_login(sdk: Sdk) -> None:
    async with serving_sign_in() as peer:
        servers = {"far": {"type": "http", "url": peer.url, "tools": ["*"], **PATIENT}}

        async def refuse(request: Any, _: Any = None) -> Any:
            return {"kind": "cancelled"}

        async with talking(sdk, [DONE], mcp_servers=servers, on_mcp_auth_request=refuse) as talk:
            await talk.say("go")
            await talk.heard.until("mcp.oauth_completed")
            assert talk.heard.of("mcp.oauth_completed")[0].outcome.value == "cancelled"
            states = "session.mcp_server_status_changed"
            await talk.heard.until(lambda: talk.heard.of(states)[-1].status.value == "needs-auth")
            params = {"sessionId": talk.session.session_id, "serverName": "far"}
            with pytest.raises(Exception, match='MCP server "far" requires authentication'):
                await talk.client._client.request("session.mcp.restartServer", params)


async def test_a_client_opens_the_address_and_the_server_connects(sdk: Sdk) -> None:
    async with serving_sign_in() as peer:
        servers = {"far": {"type": "http", "url": peer.url, "tools": ["*"], **PATIENT}}
        async with talking(
            sdk, [DONE, use("far-echo", text="in"), DONE], mcp_servers=servers
        ) as talk:
            await talk.say("go")
            login = await talk.session.rpc.mcp.oauth.login(
                rpc.MCPOauthLoginRequest(server_name="far")
            )
            assert login.authorization_url.startswith(f"{peer.origin}/authorize?")
            browser = await asyncio.create_subprocess_exec(
                sys.executable, mcp_browser.__file__, login.authorization_url
            )
            assert await browser.wait() == 0
            await talk.heard.until(
                lambda: (
                    talk.heard.of("session.mcp_server_status_changed")[-1].status.value
                    == "connected"
                )
            )
            await talk.say("again")
            assert talk.heard.of("tool.execution_complete")[0].result.content == "in"
            again = await talk.session.rpc.mcp.oauth.login(
                rpc.MCPOauthLoginRequest(server_name="far")
            )
            assert again.authorization_url is None


async def test_a_form_of_a_server_is_shown_by_the_client(sdk: Sdk) -> None:
    given = entry("asks")
    servers = {
        "small": {
            "type": "local",
            "command": given["command"],
            "args": given["args"],
            "tools": ["*"],
            **PATIENT,
        }
    }
    shown: list[Any] = []

    async def fill(context: Any, _: Any = None) -> Any:
        shown.append(context)
        return {"action": "accept", "content": {"count": 4}}

    script = [use("small-ask"), DONE]
    async with talking(sdk, script, mcp_servers=servers, on_elicitation_request=fill) as talk:
        await talk.say("go")
        (end,) = talk.heard.of("tool.execution_complete")
        assert end.result.content == (
            '{"action": "accept", "content": {"colour": "red", "count": 4}}'
        )
    assert shown[0]["message"] == "Which colour?"
    assert shown[0]["elicitationSource"] == "small"
