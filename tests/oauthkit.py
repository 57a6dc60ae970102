"""An MCP server that wants a sign-in, and its authorization server, on one port."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from mcpkit import HttpPeer
from trimtab.providers.http_server import Exchange, HttpServer


class SignInPeer(HttpPeer):
    """Our server behind a sign-in. Access tokens live shortly; refresh tokens are good once."""

    def __init__(self, lifetime: float) -> None:
        super().__init__()
        self.lifetime = lifetime
        self.origin = ""
        self.issued: dict[str, str] = {}
        """Access tokens: the end of their lives, and their scopes."""
        self.refresh_tokens: set[str] = set()
        self.used: list[str] = []
        """Refresh tokens in the order of their use."""
        self.logins = 0
        self.refreshes = 0
        self.codes: set[str] = set()
        self.asked: list[dict[str, str]] = []
        """The parameters of each authorization."""
        self.forms: list[dict[str, str]] = []
        self.metadata: dict[str, Any] = {}
        """Fields that replace those of the authorization server's metadata."""
        self.answer: dict[str, str] = {}
        """Parameters that replace those of the answer to the browser."""
        self.write_scope = ""
        """A scope that calls of tools need."""
        self.spoiled: dict[str, tuple[int, str, bytes]] = {}
        """Answers by path that replace its own: status, type and body."""

    async def handle(self, exchange: Exchange) -> None:
        path = exchange.request.path
        if path in self.spoiled:
            status, kind, body = self.spoiled[path]
            await exchange.answer(status, body, kind=kind)
        elif path == "/mcp":
            if await self._admit(exchange):
                await super().handle(exchange)
        elif path.startswith("/.well-known/oauth-protected-resource"):
            await self._say(
                exchange,
                {
                    "resource": f"{self.origin}/mcp",
                    "authorization_servers": [self.origin],
                    "scopes_supported": ["read"],
                },
            )
        elif path == "/.well-known/oauth-authorization-server":
            await self._say(exchange, self._describe())
        elif path == "/register":
            await self._say(exchange, {"client_id": f"client-{self.origin[-5:]}"}, 201)
        elif path == "/authorize":
            await self._authorize(exchange)
        elif path == "/token":
            await self._issue(exchange)
        else:
            await exchange.answer(404, b"")

    def _describe(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            **self.metadata,
        }

    async def _admit(self, exchange: Exchange) -> bool:
        given = exchange.request.headers.get("authorization", "").removeprefix("Bearer ")
        end, _, scopes = self.issued.get(given, "0 ").partition(" ")
        where = f'resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
        if time.time() > float(end):
            challenge = f"Bearer {where}"
            await exchange.answer(401, b"", headers=[("www-authenticate", challenge)])
            return False
        calls = b'"tools/call"' in exchange.request.body
        if calls and self.write_scope and self.write_scope not in scopes.split():
            challenge = f'Bearer error="insufficient_scope", scope="{self.write_scope}", {where}'
            await exchange.answer(403, b"", headers=[("www-authenticate", challenge)])
            return False
        return True

    async def _authorize(self, exchange: Exchange) -> None:
        query = urlsplit(exchange.request.target).query
        given = {name: values[0] for name, values in parse_qs(query).items()}
        self.asked.append(given)
        self.logins += 1
        code = f"code-{self.logins}"
        self.codes.add(code)
        answer = {"code": code, "state": given["state"], **self.answer}
        where = f"{given['redirect_uri']}?{urlencode(answer)}"
        await exchange.answer(302, b"", headers=[("location", where)])

    async def _issue(self, exchange: Exchange) -> None:
        form = {
            name: values[0] for name, values in parse_qs(exchange.request.body.decode()).items()
        }
        self.forms.append(form)
        if form["grant_type"] == "refresh_token":
            token = form["refresh_token"]
            self.used.append(token)
            if token not in self.refresh_tokens:
                self.refresh_tokens.clear()  # used twice: the grant ends
                await self._say(exchange, {"error": "invalid_grant"}, 400)
                return
            self.refresh_tokens.discard(token)
            self.refreshes += 1
        elif form["code"] not in self.codes:
            await self._say(exchange, {"error": "invalid_grant"}, 400)
            return
        scope = self.asked[-1].get("scope", "")
        number = self.logins * 1000 + self.refreshes
        access, refresh = f"access-token-{number}", f"refresh-token-{number}"
        self.issued[access] = f"{time.time() + self.lifetime} {scope}"
        self.refresh_tokens.add(refresh)
        body = {"access_token": access, "token_type": "Bearer", "expires_in": self.lifetime}
        await self._say(exchange, {**body, "refresh_token": refresh, "scope": scope})

    async def _say(self, exchange: Exchange, value: Any, status: int = 200) -> None:
        await exchange.answer(status, json.dumps(value).encode())


@asynccontextmanager
async def serving_sign_in(lifetime: float = 3600) -> AsyncIterator[SignInPeer]:
    peer = SignInPeer(lifetime)
    listener = HttpServer(peer.handle)
    port = await listener.start("127.0.0.1", 0)
    peer.origin = f"http://127.0.0.1:{port}"
    peer.url = f"{peer.origin}/mcp"
    try:
        yield peer
    finally:
        await asyncio.shield(listener.stop())
