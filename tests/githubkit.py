"""A stand-in for GitHub's service that is stricter than the service.

It lists models as the service does, checks the token of every request, and refuses requests that
the service would refuse or that the test did not announce. `refused` names each refusal; a test
that uses `github` fails if there is one it did not expect.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.providers.http_server import Exchange
from trimtab.testing import ModelServer, Script

if TYPE_CHECKING:
    from sdkkit import Sdk

TOKEN = "gho_first_0123456789abcdef"
OTHER_TOKEN = "gho_second_0123456789abcdef"
INVALID_TOKEN = "gho_invalid_0123456789abcdef"
DEFAULT = "scripted"


def model(name: str, **fields: Any) -> dict[str, Any]:
    """A chat model as the service lists it."""
    return {
        "id": name,
        "name": name.title(),
        "object": "model",
        "vendor": "Stand-in",
        "version": name,
        "preview": False,
        "model_picker_enabled": True,
        "is_chat_default": False,
        "is_chat_fallback": False,
        "policy": {"state": "enabled", "terms": ""},
        "supported_endpoints": ["/chat/completions"],
        "capabilities": {
            "type": "chat",
            "family": name,
            "object": "model_capabilities",
            "tokenizer": "o200k_base",
            "limits": {"max_context_window_tokens": 128_000, "max_output_tokens": 16_384},
            "supports": {"streaming": True, "tool_calls": True, "vision": True},
        },
        **fields,
    }


MODELS = [
    {
        "id": "text-embedding-3-small",
        "name": "Embedding V3 small",
        "object": "model",
        "model_picker_enabled": False,
        "capabilities": {"type": "embeddings", "family": "text-embedding-3-small"},
    },
    model("locked-model", policy={"state": "disabled", "terms": "Agree first."}),
    model("hidden-model", model_picker_enabled=False),
    model("other-model"),
    model("responses-model", supported_endpoints=["/responses"]),
    model("messages-model", supported_endpoints=["/v1/messages"]),
    model(DEFAULT, is_chat_default=True),
]
ACCOUNTS = {
    TOKEN: {"login": "first-user", "copilot_plan": "individual_pro"},
    OTHER_TOKEN: {"login": "second-user", "copilot_plan": "business"},
}
QUOTA = {
    "premium_interactions": {
        "entitlement": 300,
        "overage_count": 0,
        "overage_permitted": True,
        "percent_remaining": 75.0,
        "quota_remaining": 225.0,
        "remaining": 225,
        "unlimited": False,
    }
}
BODY_KEYS = frozenset(
    (
        "model",
        "messages",
        "tools",
        "temperature",
        "stream",
        "stream_options",
        "max_tokens",
        "tool_choice",
        "reasoning_effort",
        "response_format",
    )
)
"""The fields of a Chat Completions request that the reference sends."""
REQUIRED_HEADERS = (
    "copilot-integration-id",
    "editor-version",
    "openai-intent",
    "user-agent",
    "x-github-api-version",
    "x-initiator",
    "x-interaction-id",
    "x-interaction-type",
)


class GitHub(ModelServer):
    """GitHub's API and model service on one port."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.models = list(MODELS)
        self.refused: list[str] = []
        self.tokens: list[str] = []
        """The token of each model call, in order."""
        self.seen: list[str] = []
        """Method and path of each request, in order."""

    async def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path.startswith("/_trimtab/"):  # a test in another language
            await super()._handle(exchange)
            return
        self.seen.append(f"{request.method} {request.path}")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in ACCOUNTS:
            await self._refuse(exchange, 401, f"{request.path} with an unknown token")
            return
        route = (request.method, request.path)
        if route == ("GET", "/copilot_internal/user"):
            user = {
                **ACCOUNTS[token],
                "chat_enabled": True,
                "is_mcp_enabled": True,
                "endpoints": {"api": self.url},
                "quota_reset_date": "2030-01-01",
                "quota_snapshots": QUOTA,
            }
            await exchange.answer(200, msgspec.json.encode(user))
        elif route == ("GET", "/models"):
            listed = {"object": "list", "data": self.models}
            await exchange.answer(200, msgspec.json.encode(listed))
        elif route == ("GET", "/copilot_internal/content_exclusion"):
            await exchange.answer(200, b"[]")
        elif route == ("POST", "/models/session"):
            await exchange.answer(404, b"{}")
        elif request.method == "POST" and request.path in (
            "/chat/completions",
            "/responses",
            "/v1/messages",
        ):
            problem = self._find_problem(exchange)
            if problem:
                await self._refuse(exchange, 400, problem)
                return
            self.tokens.append(token)
            await super()._handle(exchange)
        else:
            await self._refuse(exchange, 404, f"{request.method} {request.path}")

    def _find_problem(self, exchange: Exchange) -> str:
        """Return the reason why the service would refuse a model call, or ""."""
        request = exchange.request
        body = msgspec.json.decode(request.body)
        known = {entry["id"]: entry for entry in self.models}
        entry = known.get(body.get("model"))
        if entry is None:
            return f"model {body.get('model')!r} is not listed"
        if entry.get("policy", {}).get("state") == "disabled":
            return f"model {entry['id']!r} is disabled"
        if request.path not in entry["supported_endpoints"]:
            return f"model {entry['id']!r} is not served at {request.path}"
        if missing := [name for name in REQUIRED_HEADERS if not request.headers.get(name)]:
            return f"missing headers: {', '.join(missing)}"
        return find_chat_problem(body) if request.path == "/chat/completions" else ""

    async def _refuse(self, exchange: Exchange, status: int, reason: str) -> None:
        self.refused.append(f"{status}: {reason}")
        error = {"error": {"message": f"Refused: {reason}", "code": "refused"}}
        await exchange.answer(status, msgspec.json.encode(error))


def find_chat_problem(body: dict[str, Any]) -> str:
    """Return the first thing in a Chat Completions request that the reference never sends."""
    if unknown := sorted(body.keys() - BODY_KEYS):
        return f"unknown fields: {', '.join(unknown)}"
    roles = [message["role"] for message in body["messages"]]
    if not body.get("tools") and "system" not in roles:  # a call for an MCP server
        roles.insert(0, "system")
    if roles.count("system") != 1 or roles[0] != "system":
        return f"there must be one system message, at the start: {roles}"
    open_calls: list[str] = []
    for message in body["messages"][body["messages"][0]["role"] == "system" :]:
        if message["role"] == "tool" and message.get("tool_call_id") in open_calls:
            open_calls.remove(message["tool_call_id"])
        elif open_calls or message["role"] not in ("user", "assistant"):
            return f"a {message['role']} message while these calls are open: {open_calls}"
        elif not message.get("content") and not message.get("tool_calls"):
            return f"an empty {message['role']} message"
        else:
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    return f"calls without an answer: {open_calls}" if open_calls else ""


def write_program(path: Path, script: str) -> None:
    """Write a shell script that can be run by its name."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@asynccontextmanager
async def github(
    sdk: "Sdk", replies: Any, *, refusals: int = 0, token: str | None = TOKEN
) -> AsyncIterator[GitHub]:
    """Let the clients of a test reach the stand-in, with a token in their environment.

    Without a token, a `gh` program that cannot sign in stands before the person's own.

    Exactly `refusals` requests must have been refused when the test ends.
    """
    async with GitHub(Script.of(replies)) as server:
        sdk.env |= {
            "COPILOT_DEBUG_GITHUB_API_URL": server.url,
            "TRIMTAB_RETRIES": "0",
        }
        if token is not None:
            sdk.env["GH_TOKEN"] = token
        else:
            write_program(sdk.home.parent / "bin" / "gh", "exit 1")
            sdk.env["PATH"] = f"{sdk.home.parent / 'bin'}{os.pathsep}{sdk.env['PATH']}"
        yield server
        assert len(server.refused) == refusals, server.refused
