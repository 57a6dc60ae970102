"""The sign-in settings of a server's entry, under our names and under Copilot's."""

from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.mcp.messages import ServerProblem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
AUTH_FIELDS = {
    "redirectPort": "redirectPort",
    "CLIENT_ID": "clientId",
    "CLIENT_SECRET": "clientSecret",
    "scopes": "scopes",
}
"""Fields of `auth`, as Copilot and Cursor name them."""


class IdentityProvider(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The service of an organisation that knows the person, and the person's ID token."""

    token_endpoint: str
    client_id: str
    client_secret: str = ""
    id_token: str
    """A token, or the path of a file with one."""


class OAuthSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The client that signs in, and what it asks for. Everything may be left out."""

    client_id: str = ""
    client_secret: str = ""
    public_client: bool | None = None
    """True if the client has no secret, False if it must have one."""
    client_metadata_url: str = ""
    scopes: tuple[str, ...] = ()
    grant_type: Literal["authorization_code", "client_credentials"] = "authorization_code"
    redirect_port: int = 0
    private_key: str = ""
    """A key in PEM, or the path of a file with one."""
    signing_algorithm: str = "ES256"
    identity_provider: IdentityProvider | None = None

    @property
    def needs_person(self) -> bool:
        """False if tokens are issued without anybody opening a browser."""
        return self.grant_type != "client_credentials" and self.identity_provider is None


def read_settings(server: McpServer) -> OAuthSettings:
    """Return the settings of an entry. Raises `msgspec.ValidationError`."""
    extra = server.extra
    given = extra.get("oauth")
    fields: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    auth = extra.get("auth")
    for theirs, ours in AUTH_FIELDS.items():
        if isinstance(auth, dict) and theirs in auth:
            fields.setdefault(ours, auth[theirs])
    if "callbackPort" in fields:
        fields.setdefault("redirectPort", fields["callbackPort"])
    for theirs, ours in (
        ("oauthClientId", "clientId"),
        ("oauthPublicClient", "publicClient"),
        ("oauthScopes", "scopes"),
        ("scopes", "scopes"),
        ("oauthGrantType", "grantType"),
    ):
        if theirs in extra:
            fields.setdefault(ours, extra[theirs])
    if isinstance(fields.get("scopes"), str):
        fields["scopes"] = fields["scopes"].split()
    return msgspec.convert(fields, OAuthSettings)


def is_secure(url: str) -> bool:
    """Return True for https, and for http on this machine."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in LOOPBACK
    return bool(parts.hostname) and (parts.scheme == "https" or local)


def check_settings(server: McpServer) -> OAuthSettings:
    """Return the settings of an entry. Raises `ServerProblem`."""
    try:
        settings = read_settings(server)
    except msgspec.ValidationError as error:
        raise ServerProblem(f"its oauth settings are wrong ({error}); correct them") from None
    provider = settings.identity_provider
    if provider is not None and not is_secure(provider.token_endpoint):
        raise ServerProblem(
            "oauth.identityProvider.tokenEndpoint is not an https address; correct it"
        )
    if settings.public_client:
        return msgspec.structs.replace(settings, client_secret="")
    if settings.public_client is False and not (settings.client_secret or settings.private_key):
        raise ServerProblem(
            "its client is not public, so it needs a secret; set oauth.clientSecret in its entry"
        )
    return settings
