"""Signs a person in to a server, by the browser and a port of this machine."""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import Http
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.callback import Callback
from trimtab.mcp.oauth.documents import AuthorizationServer, Challenge, discover, read_challenge
from trimtab.mcp.oauth.settings import check_settings
from trimtab.mcp.oauth.store import Grant
from trimtab.mcp.oauth.tokens import TokenClient

MAX_ATTEMPTS = 3
LOGIN_SECONDS = 300.0
"""The time a person has for the sign-in."""
OFFLINE = "offline_access"


Connected = TypeVar("Connected")


class Login:
    """A sign-in under way: the server's challenges lead to the browser, at most three times.

    `show` is called with each address that the person must open.
    """

    def __init__(
        self,
        server: McpServer,
        http: Http,
        show: Callable[[str], None],
        before: Grant | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        self._server = server
        self._settings = settings = check_settings(server)
        self._http = http
        self._show = show
        self._before = before
        self._scopes = scopes or settings.scopes
        self._tokens = TokenClient(http, settings)
        self._attempts = 0
        self._challenge: Challenge | None = None
        self.grant: Grant | None = None

    async def token(self) -> str:
        return "" if self.grant is None else self.grant.access_token

    async def renew(self, status: int, challenge: str, token: str) -> None:
        """End the connection, since a person may take longer than a connection may."""
        if token and token != await self.token():
            return  # another request has signed in meanwhile
        self._challenge = read_challenge(challenge)
        raise ServerProblem("it wants you to sign in", needs_auth=True)

    async def run(self, connect: Callable[[], Awaitable[Connected]]) -> Connected:
        """Connect, and sign in whenever the server wants it; return the last result.

        Raises `ServerProblem`.
        """
        while True:
            result = await connect()
            challenge, self._challenge = self._challenge, None
            if challenge is None:
                return result
            await self.authorize(challenge)

    async def authorize(self, challenge: Challenge) -> None:
        """Sign in for a challenge. Raises `ServerProblem`."""
        self._attempts += 1
        if self._attempts > MAX_ATTEMPTS:
            raise ServerProblem(
                f"it refused the token after {MAX_ATTEMPTS} sign-ins; ask who runs it which "
                "permissions your account has",
                needs_auth=True,
            )
        found = await discover(self._http, self._server.url, challenge)
        if not self._settings.needs_person:
            client = await self._tokens.choose_client(found, None, "")
            scopes = self._choose_scopes(challenge, found.scopes, found.server)
            self.grant = await self._tokens.authenticate(client, scopes)
            return
        _check_service(found.server)
        before = self.grant or self._before
        port = self._settings.redirect_port or _port_of(before)
        callback = await Callback().open(port, fixed=bool(self._settings.redirect_port))
        try:
            client = await self._tokens.choose_client(found, before, callback.redirect_uri)
            scopes = self._choose_scopes(challenge, found.scopes, found.server)
            client = msgspec.structs.replace(client, scopes=scopes)
            verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
            self._show(_build_address(found.server, client, verifier, state))
            try:
                answer = await callback.receive(state, LOGIN_SECONDS)
            except TimeoutError:
                raise ServerProblem(
                    f"nobody signed in within {LOGIN_SECONDS:g} s; try again", needs_auth=True
                ) from None
        finally:
            await callback.aclose()
        code = _read_code(found.server, answer)
        self.grant = await self._tokens.redeem(client, code, verifier)

    def _choose_scopes(
        self, challenge: Challenge, supported: tuple[str, ...], server: AuthorizationServer
    ) -> tuple[str, ...]:
        """Return the scopes to request: the previous ones and those required now."""
        before = self.grant or self._before
        same = before is not None and before.issuer == server.issuer
        kept = (*before.scopes, *before.refused) if before is not None and same else ()
        wanted = [*kept, *(self._scopes or challenge.scopes or supported)]
        if self._attempts > 1 or kept:
            wanted += challenge.scopes
        if OFFLINE in server.scopes:
            wanted.append(OFFLINE)
        return tuple(dict.fromkeys(wanted))


def _check_service(server: AuthorizationServer) -> None:
    if not server.authorization_endpoint:
        raise ServerProblem(
            f"{server.issuer} has no address to sign in at; set oauth.grantType if nobody should",
            needs_auth=True,
        )
    methods = server.challenge_methods
    if methods is not None and "S256" not in methods:
        raise ServerProblem(
            f"{server.issuer} does not protect its codes (PKCE with S256), so that others could "
            "use them; do not sign in there",
            needs_auth=True,
        )


def _build_address(server: AuthorizationServer, grant: Grant, verifier: str, state: str) -> str:
    digest = sha256(verifier.encode()).digest()
    fields = {
        "response_type": "code",
        "client_id": grant.client_id,
        "redirect_uri": grant.redirect_uri,
        "state": state,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": grant.resource,
    }
    if grant.scopes:
        fields["scope"] = " ".join(grant.scopes)
        if OFFLINE in grant.scopes:
            fields["prompt"] = "consent"
    mark = "&" if urlsplit(server.authorization_endpoint).query else "?"
    return f"{server.authorization_endpoint}{mark}{urlencode(fields)}"


def _read_code(server: AuthorizationServer, answer: dict[str, str]) -> str:
    """Return the code of an answer. Raises `ServerProblem` if it is not that of this service."""
    issuer = answer.get("iss")
    if (issuer is None and server.names_issuer) or (issuer is not None and issuer != server.issuer):
        raise ServerProblem(
            f"the answer came from {issuer or 'an unnamed service'} instead of {server.issuer}; "
            "it is not used, try again",
            needs_auth=True,
        )
    if "error" in answer:
        why = ": ".join(filter(None, (answer["error"], answer.get("error_description"))))
        raise ServerProblem(
            f"{server.issuer} refused the sign-in ({why[:300]}); try again", needs_auth=True
        )
    if not answer.get("code"):
        raise ServerProblem(f"{server.issuer} answered without a code; try again", needs_auth=True)
    return answer["code"]


def _port_of(grant: Grant | None) -> int:
    """Return the port that a registered client used, so that its registration holds."""
    if grant is None or not grant.registered or not grant.redirect_uri:
        return 0
    return urlsplit(grant.redirect_uri).port or 0
