"""Signs in by the identity provider of an organisation, without a person (RFC 8693, RFC 7523).

The person's ID token is exchanged for an assertion about one server, which its authorization
server takes in place of a sign-in.
"""

import os
import re

from trimtab.config.files import read_regular
from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.settings import IdentityProvider

TYPES = "urn:ietf:params:oauth:token-type:"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ASSERTION_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION = f"{TYPES}id-jag"
SIGNED = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*")
"""A signed token; anything else is the path of a file with one."""
MAX_TOKEN_BYTES = 64 * 1024
RENEW = "; get a new ID token for oauth.identityProvider.idToken"


def build_exchange(provider: IdentityProvider, issuer: str, resource: str) -> dict[str, str]:
    """Return the fields that ask for an assertion. Raises `ServerProblem`."""
    return {
        "grant_type": EXCHANGE,
        "requested_token_type": ASSERTION,
        "subject_token": read_id_token(provider.id_token),
        "subject_token_type": f"{TYPES}id_token",
        "audience": issuer,
        "resource": resource,
        "client_id": provider.client_id,
        **({"client_secret": provider.client_secret} if provider.client_secret else {}),
    }


def read_id_token(given: str) -> str:
    """Return an ID token, or that of a file, which other programs may renew."""
    if SIGNED.fullmatch(given):
        return given
    try:
        data = read_regular(os.path.expanduser(given), MAX_TOKEN_BYTES)
    except OSError as error:
        raise ServerProblem(
            f"its ID token cannot be read from {given[:200]} ({error.strerror}); correct "
            "oauth.identityProvider.idToken",
            needs_auth=True,
        ) from None
    token = data.decode("utf-8", "replace").strip()
    if not SIGNED.fullmatch(token):
        raise ServerProblem(f"{given[:200]} contains no ID token{RENEW}", needs_auth=True)
    return token


def read_assertion(status: int, answer: JsonObject, reason: str) -> str:
    """Return the assertion that an identity provider issued. Raises `ServerProblem`."""
    token, kind = answer.get("access_token"), answer.get("issued_token_type")
    if status != 200:
        raise ServerProblem(f"the identity provider refused ({reason}){RENEW}", needs_auth=True)
    if kind != ASSERTION or not isinstance(token, str) or not SIGNED.fullmatch(token):
        raise ServerProblem(
            "the identity provider issued another kind of token; ask who runs it to allow "
            "cross-app access",
            needs_auth=True,
        )
    return token
