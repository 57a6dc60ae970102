"""GitHub tokens that a client supplies for a session, and renews before they end."""

import asyncio
from typing import Any

import msgspec

from trimtab.config.accounts import GITHUB
from trimtab.contracts.errors import AuthenticationError, ModelError, TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.hosted import HostedSession
from trimtab.host.ports import ClientError, ClientGone
from trimtab.models.choose import NoService
from trimtab.providers.auth import Key
from trimtab.providers.copilot import Copilot
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.server import Server
from trimtab.transports.rpc.setup import SessionSettings

MARGIN = 3600.0
"""Seconds before its end at which a token is renewed; a short one is renewed at half its time."""


class SuppliedToken(msgspec.Struct, rename="camel"):
    kind: str = "token"
    access_token: str = ""
    expires_in: float = 0.0


async def ask_for_token(peer: Peer, registration: str, reason: str) -> SuppliedToken:
    """Ask a client for a token. Raises `AuthenticationError` if it gives none."""
    params = {"registrationId": registration, "host": GITHUB, "reason": reason}
    try:
        reply = msgspec.convert(await peer.ask("gitHubToken.getToken", params), SuppliedToken)
    except (ClientGone, ClientError, msgspec.ValidationError) as error:
        raise AuthenticationError(
            f"The client's token provider failed ({error}); check github_token_provider."
        ) from None
    if reply.kind != "token" or not reply.access_token:
        raise AuthenticationError(
            "The client's token provider gave no token; sign in, or create the session without it."
        )
    return reply


class TokenProvider:
    """The provider that a client registers for a session, and the life of its last token."""

    def __init__(self, peer: Peer, registration: str) -> None:
        self._peer = peer
        self._registration = registration
        self._seconds = 0.0

    @classmethod
    def of(cls, peer: Peer, settings: SessionSettings) -> "TokenProvider | None":
        """Return the provider that the settings name, if they do."""
        registration = settings.git_hub_token_provider_registration_id
        return None if registration is None else cls(peer, registration)

    async def ask(self, reason: str) -> str:
        """Return a token. Raises `AuthenticationError`."""
        supplied = await ask_for_token(self._peer, self._registration, reason)
        self._seconds = supplied.expires_in
        return supplied.access_token

    @property
    def delay(self) -> float:
        """The seconds until the last token should be renewed; 0 if its end is not known."""
        return max(self._seconds - MARGIN, self._seconds / 2, 0.0)


async def fill_in_token(
    provider: TokenProvider | None, settings: SessionSettings
) -> SessionSettings:
    """Return the settings with the client's token, if it supplies one for the session."""
    if provider is None:
        return settings
    return msgspec.structs.replace(settings, git_hub_token=await provider.ask("initial"))


def renew_in_time(server: Server, hosted: HostedSession, provider: TokenProvider | None) -> None:
    """Have the session's token renewed before it ends, for as long as the session is open."""
    if provider is None:
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def plan() -> None:
        nonlocal timer
        if provider.delay:
            timer = loop.call_later(provider.delay, lambda: server.background(renew()))

    async def renew() -> None:
        try:
            await use_token(server, hosted, await provider.ask("refresh"))
        except TrimtabError as error:
            hosted.live.warn("token_not_renewed", error.message)
            return
        plan()

    plan()
    hosted.live.on_close(lambda: timer.cancel() if timer is not None else None)


async def use_token(server: Server, hosted: HostedSession, token: str | None) -> JsonObject:
    """Use another GitHub token for the session's model calls; return its account.

    Raises `AuthenticationError` for an invalid one.
    """
    user: JsonObject = {}
    if token is not None:
        hosted.live.hide([token])
        try:
            user = await server.fetch_user(Key(value=token, source="the session"))
        except AuthenticationError:
            raise
        except ModelError:
            user = {}  # the next model call reports what is wrong with the service
    hosted.token, hosted.user = token, user
    controls = hosted.live.controls
    provider: Any = controls.agent.model.provider
    if isinstance(getattr(provider, "provider", provider), (Copilot, NoService)):
        options = msgspec.structs.replace(controls.options, model=hosted.live.model or None)
        controls.use(await server.runtime_for(token).models.choose(options))
    return user
