"""Requests to an authorization server: registration, and tokens of every kind."""

import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
from trimtab.contracts.mcp import Http
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.assertion import sign_assertion
from trimtab.mcp.oauth.documents import (
    AuthorizationServer,
    Discovery,
    exchange,
    read_object,
)
from trimtab.mcp.oauth.identity import ASSERTION_GRANT, build_exchange, read_assertion
from trimtab.mcp.oauth.settings import OAuthSettings
from trimtab.mcp.oauth.store import Grant

CLIENT_NAME = "Trimtab"
BEARER_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
MAX_TOKEN_LENGTH = 64 * 1024


class TokenRefused(ServerProblem):
    """Raised when an authorization server refuses to issue a token; `code` is its reason."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, needs_auth=True)
        self.code = code


class TokenClient:
    """Sends a server's requests for tokens, authenticated as its settings say."""

    def __init__(self, http: Http, settings: OAuthSettings) -> None:
        self._http = http
        self._settings = settings

    async def choose_client(
        self, found: Discovery, before: Grant | None, redirect_uri: str
    ) -> Grant:
        """Return the client to sign in with, without tokens. Raises `ServerProblem`.

        The configured one comes first; then the address of a document, if the service takes one;
        then the client that registered with this service before; then a new registration.
        """
        settings, server = self._settings, found.server
        base = Grant(
            id=new_id(),
            issuer=server.issuer,
            resource=found.resource,
            token_endpoint=server.token_endpoint,
            redirect_uri=redirect_uri,
        )
        if settings.client_id:
            return msgspec.structs.replace(
                base,
                client_id=settings.client_id,
                client_secret=settings.client_secret,
                auth_method=self._configured_method(server),
            )
        if server.takes_metadata_url and settings.client_metadata_url:
            return msgspec.structs.replace(base, client_id=settings.client_metadata_url)
        if before is not None and before.registered:
            same = (before.issuer, before.redirect_uri) == (server.issuer, redirect_uri)
            if same and before.client_id:
                return msgspec.structs.replace(
                    base,
                    client_id=before.client_id,
                    client_secret=before.client_secret,
                    auth_method=before.auth_method,
                    registered=True,
                )
        return await self._register(base, server)

    def _configured_method(self, server: AuthorizationServer) -> str:
        if self._settings.private_key:
            return "private_key_jwt"
        if not self._settings.client_secret:
            return "none"
        methods = server.auth_methods
        if methods and "client_secret_basic" not in methods and "client_secret_post" in methods:
            return "client_secret_post"
        return "client_secret_basic"

    async def _register(self, base: Grant, server: AuthorizationServer) -> Grant:
        if not server.registration_endpoint:
            raise ServerProblem(
                f"{server.issuer} does not let clients register; set oauth.clientId in its entry",
                needs_auth=True,
            )
        methods = server.auth_methods
        wanted = "none"
        if methods and "none" not in methods:
            known = ("client_secret_basic", "client_secret_post")
            wanted = next((method for method in known if method in methods), "none")
        body = {
            "client_name": CLIENT_NAME,
            "redirect_uris": [base.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted,
            "application_type": "native",
        }
        status, answer = await self._post(
            server.registration_endpoint, JSON, msgspec.json.encode(body)
        )
        client_id = answer.get("client_id")
        if status not in (200, 201) or not isinstance(client_id, str) or not client_id:
            raise ServerProblem(
                f"{server.issuer} refused to register a client ({_reason(status, answer)}); set "
                "oauth.clientId in its entry",
                needs_auth=True,
            )
        method, secret = answer.get("token_endpoint_auth_method"), answer.get("client_secret")
        return msgspec.structs.replace(
            base,
            client_id=client_id,
            client_secret=secret if isinstance(secret, str) else "",
            auth_method=method if isinstance(method, str) else wanted,
            registered=True,
        )

    async def redeem(self, grant: Grant, code: str, verifier: str) -> Grant:
        """Return the tokens for an authorization code. Raises `ServerProblem`."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": grant.redirect_uri,
            "code_verifier": verifier,
        }
        return await self._request_tokens(grant, fields)

    async def refresh(self, grant: Grant) -> Grant:
        """Return new tokens for a refresh token, which may be used only once."""
        fields = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
        return await self._request_tokens(grant, fields)

    async def authenticate(self, grant: Grant, scopes: tuple[str, ...]) -> Grant:
        """Return a token for the client itself, or by the identity provider, without a person."""
        fields = {"grant_type": "client_credentials"}
        if (provider := self._settings.identity_provider) is not None:
            wanted = build_exchange(provider, grant.issuer, grant.resource)
            if scopes:
                wanted["scope"] = " ".join(scopes)
            status, answer = await self._post(
                provider.token_endpoint, FORM, urlencode(wanted).encode()
            )
            assertion = read_assertion(status, answer, _reason(status, answer))
            fields = {"grant_type": ASSERTION_GRANT, "assertion": assertion}
        if scopes:
            fields["scope"] = " ".join(scopes)
        return await self._request_tokens(msgspec.structs.replace(grant, scopes=scopes), fields)

    async def _request_tokens(self, grant: Grant, fields: Mapping[str, str]) -> Grant:
        headers, proof = await self._prove(grant)
        form = {**fields, "resource": grant.resource, **proof}
        status, answer = await self._post(
            grant.token_endpoint, {**FORM, **headers}, urlencode(form).encode()
        )
        if status >= 500:
            raise ServerProblem(f"{grant.issuer} answered with {status}; try again later")
        if status != 200 or ("error" in answer and "access_token" not in answer):
            code = answer.get("error")
            raise TokenRefused(
                f"{grant.issuer} refused to issue a token ({_reason(status, answer)}); try again",
                code if isinstance(code, str) else "",
            )
        return read_tokens(grant, answer)

    async def _prove(self, grant: Grant) -> tuple[dict[str, str], dict[str, str]]:
        """Return the headers and the fields by which the client proves who it is."""
        match grant.auth_method:
            case "client_secret_basic":
                pair = f"{quote(grant.client_id, safe='')}:{quote(grant.client_secret, safe='')}"
                return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}
            case "client_secret_post":
                secret = {"client_secret": grant.client_secret}
                return {}, {"client_id": grant.client_id, **secret}
            case "private_key_jwt":
                settings = self._settings
                assertion = await sign_assertion(
                    grant.client_id, grant.issuer, settings.private_key, settings.signing_algorithm
                )
                named = {"client_assertion_type": BEARER_ASSERTION, "client_assertion": assertion}
                return {}, {"client_id": grant.client_id, **named}
            case _:
                return {}, {"client_id": grant.client_id}

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, JsonObject]:
        answer = await exchange(self._http, "POST", url, headers, body)
        found = read_object(answer.body)
        if found is None and 200 <= answer.status < 300:
            kind = answer.headers.get("content-type", "").partition(";")[0][:60] or "no type"
            raise ServerProblem(
                f"{urlsplit(url).netloc} answered the sign-in with something that is not JSON "
                f"({kind}); ask who runs it to correct that",
                needs_auth=True,
            )
        return answer.status, found or {}


def read_tokens(grant: Grant, answer: JsonObject) -> Grant:
    """Return a grant with the tokens of an answer. Raises `ServerProblem`."""
    token, kind = answer.get("access_token"), answer.get("token_type", "bearer")
    usable = isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token
    if not usable or not 0 < len(token or "") <= MAX_TOKEN_LENGTH or _lower(kind) != "bearer":
        raise ServerProblem(
            f"{grant.issuer} issued no bearer token; ask who runs it to correct that",
            needs_auth=True,
        )
    refresh, scope = answer.get("refresh_token"), answer.get("scope")
    lifetime = _read_seconds(answer.get("expires_in"))
    return msgspec.structs.replace(
        grant,
        access_token=token,
        refresh_token=refresh if isinstance(refresh, str) and refresh else grant.refresh_token,
        lifetime=lifetime,
        expires_at=time.time() + lifetime if lifetime else 0.0,
        scopes=tuple(scope.split()) if isinstance(scope, str) and scope else grant.scopes,
    )


def _read_seconds(value: Any) -> float:
    """Return the lifetime of a token; some services send it as text. 0 if it is unknown."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:12])
    return float(value) if isinstance(value, int | float) and 0 < value < 1e12 else 0.0


def _lower(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


def _reason(status: int, answer: JsonObject) -> str:
    words = [answer.get("error"), answer.get("error_description")]
    text = ": ".join(word for word in words if isinstance(word, str))
    return text[:300] if text else f"status {status}"
