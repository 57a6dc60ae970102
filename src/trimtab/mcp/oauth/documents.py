"""Finds out how to sign in to a server: its challenge, and the documents that it leads to."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Http
from trimtab.mcp.http_requests import explain_unreachable, read_body
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.settings import LOOPBACK

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_REDIRECTS = 3
REQUEST_SECONDS = 30.0
MAX_URL_LENGTH = 2000
MAX_SCOPES = 100
PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
WELL_KNOWN = "/.well-known/"


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a `WWW-Authenticate` header."""

    scopes: tuple[str, ...] = ()
    resource_metadata: str = ""
    error: str = ""


class AuthorizationServer(msgspec.Struct, frozen=True, kw_only=True):
    """The service that issues tokens, as its metadata describes it."""

    issuer: str
    authorization_endpoint: str = ""
    token_endpoint: str
    registration_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    challenge_methods: tuple[str, ...] | None = None
    """The supported methods of PKCE; None if there is no metadata that could name them."""
    names_issuer: bool = False
    """True if its answers carry the parameter `iss`."""
    takes_metadata_url: bool = False
    """True if the address of a document is a client id."""


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """The resource that tokens are for, its scopes, and the service that issues them."""

    resource: str
    scopes: tuple[str, ...] = ()
    server: AuthorizationServer


def read_challenge(header: str) -> Challenge:
    """Return the parameters of a challenge; unknown ones are ignored."""
    found = {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in PARAMETER.findall(header[:8192])
    }
    return Challenge(
        scopes=tuple(found.get("scope", "").split())[:MAX_SCOPES],
        resource_metadata=found.get("resource_metadata", ""),
        error=found.get("error", ""),
    )


async def discover(http: Http, server_url: str, challenge: Challenge) -> Discovery:
    """Return how to sign in to a server. Raises `ServerProblem`."""
    reader = _DocumentReader(http, server_url)
    document = await reader.find_resource(challenge.resource_metadata)
    if document is None:  # servers of 2025-03-26 issue their own tokens
        origin = urlunsplit((*urlsplit(server_url)[:2], "", "", ""))
        return Discovery(
            resource=_canonical(server_url),
            server=await reader.find_server(origin) or _default_server(origin),
        )
    resource = document.get("resource")
    if not isinstance(resource, str) or not _covers(resource, server_url):
        raise ServerProblem(
            f"its metadata is for another resource, {str(resource)[:200]!r}; ask who runs it to "
            "correct that",
            needs_auth=True,
        )
    issuers = document.get("authorization_servers")
    issuer = issuers[0] if isinstance(issuers, list) and issuers else None
    if not isinstance(issuer, str):
        raise ServerProblem(
            "its metadata names no authorization server; ask who runs it to correct that",
            needs_auth=True,
        )
    found = await reader.find_server(issuer)
    if found is None:
        raise ServerProblem(
            f"its authorization server {issuer[:200]} has no metadata; try again later",
            needs_auth=True,
        )
    return Discovery(resource=resource, scopes=_texts(document, "scopes_supported"), server=found)


class _DocumentReader:
    """Fetches documents for one server; addresses must be acceptable for it."""

    def __init__(self, http: Http, server_url: str) -> None:
        self._http = http
        self._server_url = server_url

    async def find_resource(self, named: str) -> JsonObject | None:
        """Return the metadata of the resource, from the named address or the usual ones."""
        base = urlsplit(self._server_url)
        path = base.path.rstrip("/")
        usual = [f"{WELL_KNOWN}oauth-protected-resource{path}"]
        if path:
            usual.append(f"{WELL_KNOWN}oauth-protected-resource")
        places = [urlunsplit((base.scheme, base.netloc, place, "", "")) for place in usual]
        for url in dict.fromkeys([named, *places] if named else places):
            if (document := await self._fetch(url)) is not None:
                return document
        return None

    async def find_server(self, issuer: str) -> AuthorizationServer | None:
        """Return an authorization server; None if it has no metadata. Raises `ServerProblem`."""
        check_address(issuer, self._server_url)
        for url in _metadata_addresses(issuer):
            document = await self._fetch(url)
            if document is None:
                continue
            if document.get("issuer") != issuer:
                raise ServerProblem(
                    f"the metadata of its authorization server {issuer[:200]} names another "
                    f"issuer, {str(document.get('issuer'))[:200]!r}; do not sign in there",
                    needs_auth=True,
                )
            return self._read_server(document)
        return None

    def _read_server(self, document: JsonObject) -> AuthorizationServer:
        endpoints = {}
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            url = document.get(name)
            if isinstance(url, str) and url:
                check_address(url, self._server_url)
                endpoints[name] = url
        if "token_endpoint" not in endpoints:
            raise ServerProblem(
                "its authorization server has no token endpoint; ask who runs it to correct that",
                needs_auth=True,
            )
        return AuthorizationServer(
            issuer=document["issuer"],
            **endpoints,
            scopes=_texts(document, "scopes_supported"),
            auth_methods=_texts(document, "token_endpoint_auth_methods_supported"),
            challenge_methods=_texts(document, "code_challenge_methods_supported"),
            names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            takes_metadata_url=document.get("client_id_metadata_document_supported") is True,
        )

    async def _fetch(self, url: str) -> JsonObject | None:
        """Return the object at an address; None if there is none. Raises `ServerProblem`."""
        for _ in range(MAX_REDIRECTS + 1):
            check_address(url, self._server_url)
            answer = await exchange(self._http, "GET", url, {"Accept": "application/json"})
            if answer.status in (301, 302, 303, 307, 308):
                target = urljoin(url, answer.headers.get("location", ""))
                if urlsplit(target)[:2] != urlsplit(url)[:2]:
                    return None  # a document of another host says nothing about this one
                url = target
                continue
            return read_object(answer.body) if answer.status == 200 else None
        return None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer to a request of the sign-in."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def exchange(
    http: Http, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
) -> Answer:
    """Send a request of the sign-in and read its answer, within limits.

    Raises `ServerProblem`.
    """
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            answer = await http.request(method, url, headers, [body] if body else [])
            try:
                data = await read_body(answer, MAX_DOCUMENT_BYTES)
            finally:
                answer.close()
    except ModelError as error:
        raise explain_unreachable(url, error) from None
    except TimeoutError:
        host = urlsplit(url).netloc
        raise ServerProblem(
            f"{host} did not answer the sign-in within {REQUEST_SECONDS:g} s; try again later"
        ) from None
    return Answer(status=answer.status, headers=dict(answer.headers), body=data)


def read_object(body: bytes) -> JsonObject | None:
    """Return the JSON object in a body, or None."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def check_address(url: str, server_url: str) -> None:
    """Raise `ServerProblem` unless an address may be used for the sign-in to a server.

    Plain HTTP is for this machine, and for the server's own host; a server elsewhere must not
    send us to this machine.
    """
    parts, server = urlsplit(url), urlsplit(server_url)
    own = parts.hostname == server.hostname
    local = parts.hostname in LOOPBACK
    allowed = (
        (parts.scheme == "https" and (not local or server.hostname in LOOPBACK))
        or (parts.scheme == "http" and own)
        or (parts.scheme == "http" and local and server.hostname in LOOPBACK)
    )
    plain = url.isascii() and url.isprintable() and " " not in url
    if not (allowed and plain and parts.hostname) or parts.username or len(url) > MAX_URL_LENGTH:
        raise ServerProblem(
            f"its sign-in leads to {url[:200]!r}, which is not a secure address; do not use it",
            needs_auth=True,
        )


def _metadata_addresses(issuer: str) -> Iterator[str]:
    """Yield the places of an authorization server's metadata, the usual one first."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    yield f"{origin}{WELL_KNOWN}oauth-authorization-server{path}"
    yield f"{origin}{WELL_KNOWN}openid-configuration{path}"
    if path:
        yield f"{origin}{path}{WELL_KNOWN}openid-configuration"


def _default_server(origin: str) -> AuthorizationServer:
    """Return the endpoints that a server of 2025-03-26 without metadata has."""
    return AuthorizationServer(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
    )


def _canonical(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))


def _covers(resource: str, server_url: str) -> bool:
    """Return True if a resource is a server's address, or a folder that contains it."""
    given, server = urlsplit(resource), urlsplit(server_url)
    if (given.scheme, given.netloc.lower()) != (server.scheme, server.netloc.lower()):
        return False
    folder = given.path.rstrip("/")
    return server.path.rstrip("/") == folder or server.path.startswith(f"{folder}/")


def _texts(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = document.get(name)
    found = values[:MAX_SCOPES] if isinstance(values, list) else []
    return tuple(value for value in found if isinstance(value, str))
