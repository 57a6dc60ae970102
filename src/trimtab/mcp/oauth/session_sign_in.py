"""The sign-in of a session: sends tokens, renews them, and never opens a browser."""

import time
from collections.abc import Callable

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Http
from trimtab.contracts.questions import AskToken, TokenRequest
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.documents import Challenge, discover, read_challenge
from trimtab.mcp.oauth.settings import OAuthSettings, check_settings
from trimtab.mcp.oauth.store import Grant, GrantStore
from trimtab.mcp.oauth.tokens import TokenClient, TokenRefused

MAX_MARGIN = 60.0
"""Seconds before its end at which a token is renewed; less for tokens that do not live long."""


class SessionSignIn:
    """The tokens of one server. A refresh token is used once, whoever needs it."""

    def __init__(
        self,
        server: McpServer,
        http: Http,
        store: GrantStore,
        hide: Callable[[tuple[str, ...]], None],
        ask_host: AskToken | None = None,
    ) -> None:
        """Raises `ServerProblem` for wrong settings."""
        self._server = server
        self._settings = settings = check_settings(server)
        self._http = http
        self._store = store
        self._hide = hide
        self._ask_host = ask_host
        self._tokens = TokenClient(http, settings)
        self._read_at = -1
        self._grant: Grant | None = None
        self._host_token = ""
        self._host_token_ends = 0.0
        """The time at which a new token is asked for; 0 if the token's end is not known."""

    async def token(self) -> str:
        if self._host_token:
            if 0 < self._host_token_ends < time.time():
                self._host_token_ends = 0.0  # if there is no other, the server decides
                await self._ask("refresh", Challenge())
            return self._host_token
        grant = self._load()
        if grant is None or not self._ends_soon(grant):
            return "" if grant is None else grant.access_token
        try:
            await self._renew(grant.access_token)
        except ServerProblem:
            return grant.access_token  # the server decides whether it is still good
        return grant.access_token if self._grant is None else self._grant.access_token

    async def renew(self, status: int, challenge: str, token: str) -> None:
        found = read_challenge(challenge)
        if status == 403:
            await self._extend(found, token)
            return
        from_host = bool(token) and token == self._host_token
        if not from_host and await self._renew(token):
            return
        reason = "refresh" if self._host_token else "reauth" if token else "initial"
        if not await self._ask(reason, found):
            raise self._needs_login("it wants you to sign in")

    async def _extend(self, challenge: Challenge, token: str) -> None:
        """Deal with a call for which the token's scopes are not enough."""
        grant = self._load()
        wanted = tuple(dict.fromkeys((*(grant.scopes if grant else ()), *challenge.scopes)))
        if not self._settings.needs_person:
            if grant is None or set(wanted) <= set(grant.scopes):
                raise ServerProblem("it refused the call for lack of permissions", needs_auth=True)
            await self._authenticate(wanted)
            return
        if await self._ask("upscope", challenge):
            return
        if grant is not None:
            refused = tuple(dict.fromkeys((*grant.refused, *challenge.scopes)))
            self._save(msgspec.structs.replace(grant, refused=refused))
        named = f" (it wants {' '.join(challenge.scopes)[:200]})" if challenge.scopes else ""
        raise self._needs_login(f"it refused the call for lack of permissions{named}")

    async def _renew(self, token: str) -> bool:
        """Get a token other than this one; return False if a person must sign in.

        Raises `ServerProblem` if that failed and may work later.
        """
        async with self._store.lock(self._server):
            grant = self._load()
            if grant is not None and grant.access_token and grant.access_token != token:
                return True  # somebody else has renewed it
            if grant is not None and grant.refresh_token:
                try:
                    self._save(await self._tokens.refresh(grant))
                    return True
                except TokenRefused as refused:
                    if refused.code not in ("invalid_grant", "invalid_client", ""):
                        raise
                    self._save(msgspec.structs.replace(grant, access_token="", refresh_token=""))
            if not self._settings.needs_person:
                await self._authenticate(self._settings.scopes)
                return True
        return False

    async def _authenticate(self, scopes: tuple[str, ...]) -> None:
        found = await discover(self._http, self._server.url, Challenge())
        client = await self._tokens.choose_client(found, None, "")
        self._save(await self._tokens.authenticate(client, scopes or found.scopes))

    async def _ask(self, reason: str, challenge: Challenge) -> bool:
        if self._ask_host is None:
            return False
        request = TokenRequest(
            server=self._server.name,
            url=self._server.url,
            reason=reason,
            scope=" ".join(challenge.scopes),
            resource_metadata=challenge.resource_metadata,
            error=challenge.error,
            client=describe_client(self._settings),
        )
        answer = await self._ask_host(request)
        token = answer.get("accessToken") if answer is not None else None
        if not isinstance(token, str) or not token:
            return False
        self._hide((token,))
        self._host_token = token
        seconds = answer.get("expiresIn") if answer is not None else None
        self._host_token_ends = 0.0
        if isinstance(seconds, int | float) and seconds > 0:
            self._host_token_ends = time.time() + seconds - min(MAX_MARGIN, seconds / 4)
        return True

    def _ends_soon(self, grant: Grant) -> bool:
        renewable = grant.refresh_token or not self._settings.needs_person
        if not grant.expires_at or not renewable:
            return False
        return time.time() > grant.expires_at - min(MAX_MARGIN, grant.lifetime / 4)

    def _load(self) -> Grant | None:
        changed = self._store.changed(self._server)
        if changed != self._read_at:
            self._read_at, self._grant = changed, self._store.read(self._server)
            if self._grant is not None:
                self._hide_secrets(self._grant)
        return self._grant

    def _save(self, grant: Grant) -> None:
        self._hide_secrets(grant)
        self._store.write(self._server, grant)
        self._read_at, self._grant = self._store.changed(self._server), grant

    def _hide_secrets(self, grant: Grant) -> None:
        secrets = (grant.access_token, grant.refresh_token, grant.client_secret)
        self._hide(tuple(filter(None, secrets)))

    def _needs_login(self, why: str) -> ServerProblem:
        return ServerProblem(f"{why}; run `trimtab mcp login {self._server.name}`", needs_auth=True)


def describe_client(settings: OAuthSettings) -> JsonObject:
    """Return the configured client as hosts are told of it, without its secret."""
    if not settings.client_id:
        return {}
    client: JsonObject = {"clientId": settings.client_id}
    if settings.public_client is not None:
        client["publicClient"] = settings.public_client
    if settings.grant_type == "client_credentials":
        client["grantType"] = settings.grant_type
    if settings.scopes:
        client["scope"] = " ".join(settings.scopes)
    return client
