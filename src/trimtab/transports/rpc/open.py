"""Opens sessions for clients: new ones, stored ones, and sessions that other clients share."""

import os
from collections.abc import Iterator
from typing import cast

import msgspec

from trimtab.config.trust import Trust
from trimtab.contracts.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelError,
    SessionNotFound,
)
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionResume, SessionWarning
from trimtab.contracts.events.setup import SessionManagedSettingsResolved
from trimtab.contracts.ids import timestamp
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.sql import SqlDatabase
from trimtab.host.hosted import HostedSession
from trimtab.host.participants import Participant
from trimtab.host.resumed_schedules import restore_schedules
from trimtab.models.catalog import SessionCatalog
from trimtab.models.choose import find_github_key
from trimtab.providers.auth import Key
from trimtab.providers.copilot import Copilot, Transports
from trimtab.providers.endpoints import ProviderChoice, from_environment
from trimtab.providers.http import HttpClient
from trimtab.providers.service import Service
from trimtab.runtime.live import LiveSession
from trimtab.session.pending_calls import waiting_calls
from trimtab.transports.rpc.changes import apply_changes, changes_of
from trimtab.transports.rpc.client_telemetry import ClientTelemetry
from trimtab.transports.rpc.inference import ClientHttp, ClientSockets
from trimtab.transports.rpc.mirror import ClientFiles, Mirror, fetch_session
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import FAILED, RpcError, Then
from trimtab.transports.rpc.server import Server
from trimtab.transports.rpc.setup import (
    CapiSettings,
    SessionSettings,
    build_options,
    find_ignored,
)

MANAGED = SessionManagedSettingsResolved(
    source="none",
    server_managed=False,
    device_managed=False,
    fail_closed=False,
    bypass_permissions_disabled=False,
    managed_keys=[],
)


async def create(server: Server, peer: Peer, settings: SessionSettings) -> Then:
    """Create a session; its first events follow the reply."""
    forward_telemetry(peer, settings)
    options = build_options(settings, server.session_defaults, server.cwd)
    if settings.trust_working_directory == "user":
        Trust(server.runtime.home).trust(options.cwd)
    async with server.opening:
        session_id = options.session_id or ""
        if session_id in server.sessions or server.runtime.store.exists(session_id):
            raise ConfigurationError(
                f"Session {session_id} exists already; resume it, or choose another id."
            )
        hosted = HostedSession(session_id, server.tell_updated)
        participant = hosted.join(peer, settings.capabilities())
        participant.hold()
        await check_token(server, hosted, settings)
        options = await equip(server, hosted, settings, options, peer)
        live = await server.runtime_for(settings.git_hub_token).create(options, hosted.as_client())
        hosted.id = live.id
        hosted.attach(live)
        live.emit(MANAGED)
        report_ignored(live, settings)
        keep_store_choice(live, settings)
        server.add(hosted)
        mirror(hosted, peer)
        await connect(hosted, settings)
    server.tell("created", live.id, server.times(live.id))
    return Then(describe(hosted), lambda: participant.release(hosted.id))


def forward_telemetry(peer: Peer, settings: SessionSettings) -> None:
    """Send a client telemetry about its sessions if it asked for that."""
    if peer.wants_telemetry or settings.enable_git_hub_telemetry_forwarding:
        peer.telemetry = peer.telemetry or ClientTelemetry()


async def resume(server: Server, peer: Peer, settings: SessionSettings) -> Then:
    """Join an open session, or reopen a stored one."""
    forward_telemetry(peer, settings)
    session_id = settings.session_id or ""
    async with server.opening:
        hosted = server.sessions.get(session_id)
        if hosted is None:
            hosted, participant = await _reopen(server, peer, settings)
        else:
            participant = await _join(hosted, peer, settings)
        await connect(hosted, settings)
        if settings.canvases:
            await hosted.canvases.restore(peer)
    resumed = hosted

    def after() -> None:
        participant.release(resumed.id)
        if settings.continue_pending_work:
            resumed.repeat_open_requests(participant)

    reply = describe(hosted)
    reply["openCanvases"] = hosted.canvases.opened() if settings.canvases else []
    return Then(reply, after)


async def _reopen(
    server: Server, peer: Peer, settings: SessionSettings
) -> tuple[HostedSession, Participant]:
    session_id = settings.session_id or ""
    if not server.runtime.store.exists(session_id) and not await fetch(server, peer, session_id):
        raise RpcError(FAILED, f"Session not found: {session_id}")
    stored = _stored_folder(server, session_id)
    options = build_options(settings, server.session_defaults, stored or server.cwd)
    hosted = HostedSession(session_id, server.tell_updated)
    participant = hosted.join(peer, settings.capabilities())
    participant.hold()
    await check_token(server, hosted, settings)
    options = await equip(server, hosted, settings, options, peer)
    try:
        runtime = server.runtime_for(settings.git_hub_token)
        live = await runtime.resume(
            session_id,
            options,
            hosted.as_client(),
            continue_pending_work=settings.continue_pending_work,
        )
    except SessionNotFound as error:
        raise RpcError(FAILED, f"Session not found: {session_id} ({error.message})") from None
    hosted.attach(live)
    server.add(hosted)
    report_ignored(live, settings)
    keep_store_choice(live, settings)
    mirror(hosted, peer, resumed=True)
    restore_schedules(hosted.live)
    if settings.continue_pending_work:
        take_up(live)
    return hosted, participant


def report_ignored(live: LiveSession, settings: SessionSettings) -> None:
    """Warn about options of a client that have no effect here."""
    for message in find_ignored(settings):
        live.warn("option_without_effect", message)


def keep_store_choice(live: LiveSession, settings: SessionSettings) -> None:
    """Note beside the log if the session must stay out of the index of past sessions."""
    wanted = settings.enable_session_store
    if wanted is not None and wanted != live.folder.read_metadata().get("session_store", True):
        live.folder.update_metadata(session_store=wanted)


async def connect(hosted: HostedSession, settings: SessionSettings) -> None:
    """Start the MCP servers that a client configured, because it checks their status."""
    if settings.mcp_servers:
        await hosted.live.controls.servers.start()


def mirror(hosted: HostedSession, peer: Peer, *, resumed: bool = False) -> None:
    """Copy the session's files to the client's file system, if it has one."""
    if peer.file_system is None:
        return
    files = ClientFiles(peer, hosted.id, peer.file_system)
    hosted.mirror = Mirror(hosted.live, files, fresh=not resumed)


async def fetch(server: Server, peer: Peer, session_id: str) -> bool:
    """Fetch a session from the client's file system; return False if it is not there."""
    if peer.file_system is None:
        return False
    files = ClientFiles(peer, session_id, peer.file_system)
    return await fetch_session(server.runtime.store, session_id, files)


def take_up(live: LiveSession) -> None:
    """Continue calls that waited for a client; warn about calls that were interrupted."""
    still_open = len(live.projections.conversation.open_calls)
    if still_open and live.resume_calls(waiting_calls(live.folder.events)) < still_open:
        message = "Tool calls that were running when the session was closed count as interrupted."
        live.emit(SessionWarning(warning_type="pending_work_interrupted", message=message))


async def _join(hosted: HostedSession, peer: Peer, settings: SessionSettings) -> Participant:
    live = hosted.live
    was_active = live.busy
    if was_active and not hosted.participants and not settings.continue_pending_work:
        await live.abort()
    before, commands = hosted.capabilities, hosted.commands
    participant = hosted.join(peer, settings.capabilities())
    participant.hold()
    hosted.settings |= settings.kept()
    await apply_changes(hosted, changes_of(settings))
    if not settings.disable_resume:
        live.emit(_resumed(hosted, settings, was_active=was_active))
    hosted.announce_changes(before, commands)
    return participant


def _resumed(
    hosted: HostedSession, settings: SessionSettings, *, was_active: bool
) -> SessionResume:
    live = hosted.live
    return SessionResume(
        resume_time=timestamp(),
        event_count=live.event_count,
        selected_model=live.model or None,
        reasoning_effort=live.controls.effort,
        context=live.controls.setup.checkout.context(),
        already_in_use=len(hosted.participants) > 1,
        session_was_active=was_active,
        continue_pending_work=settings.continue_pending_work,
    )


async def check_token(server: Server, hosted: HostedSession, settings: SessionSettings) -> None:
    """Find the account of the session's token. Raises `AuthenticationError` for an invalid one.

    If GitHub cannot be reached, the first model call reports it.
    """
    if settings.git_hub_token is None or settings.provider is not None:
        return
    key = Key(value=settings.git_hub_token, source="the session")
    try:
        hosted.user = await server.fetch_user(key)
    except AuthenticationError:
        raise
    except ModelError:
        hosted.user = {}


async def equip(
    server: Server,
    hosted: HostedSession,
    settings: SessionSettings,
    options: SessionOptions,
    peer: Peer,
) -> SessionOptions:
    """Add the model services, the database and the secrets that the client named to the options."""
    hosted.settings = settings.kept()
    hosted.token = settings.git_hub_token
    hosted.catalog = SessionCatalog(
        server.env,
        provider=settings.provider,
        providers=settings.providers,
        models=settings.models,
        get_token=hosted.get_token,
    )
    hidden = (*find_keys(settings), *server.secrets)
    options = msgspec.structs.replace(
        options, secret_values=hidden, database=find_database(hosted, peer)
    )
    found = hosted.catalog.find(settings.model)
    if found is not None:
        provider, model = found
        options = msgspec.structs.replace(options, provider=provider, model=model)
    if server.inference is not None:
        options = await _through_client(server, settings, options)
    return options


def find_database(hosted: HostedSession, peer: Peer) -> SqlDatabase | None:
    """Return the database that the client keeps for the session, if it does."""
    if peer.file_system is None or not peer.file_system.has_database:
        return None
    from trimtab.transports.rpc.client_database import ClientDatabase  # needs sqlite3

    return ClientDatabase(peer, lambda: hosted.id)


def find_keys(settings: SessionSettings) -> Iterator[str]:
    """Yield the keys in a client's settings."""
    if settings.git_hub_token:
        yield settings.git_hub_token
    for provider in (settings.provider, *settings.providers):
        if provider is not None:
            yield from provider.keys()


async def _through_client(
    server: Server, settings: SessionSettings, options: SessionOptions
) -> SessionOptions:
    """Return the options with the same service, whose requests the client makes."""
    assert server.inference is not None
    session_id = options.session_id or ""
    http = cast(HttpClient, ClientHttp(server.inference, server.exchanges, session_id))
    choice: ProviderChoice | None
    if isinstance(options.provider, Service):
        choice = options.provider.choice
    else:
        choice = from_environment(server.env)
    if choice is not None:
        return msgspec.structs.replace(options, provider=Service(choice, http))
    sockets = None
    if (settings.capi or CapiSettings()).enable_web_socket_responses is not False:
        sockets = cast(HttpClient, ClientSockets(server.inference, server.exchanges, session_id))
    env = {**server.env}
    if settings.git_hub_token:
        env["COPILOT_GITHUB_TOKEN"] = settings.git_hub_token
    key = find_github_key(env, run_gh=False)
    if key is None:  # the client adds the credentials
        env.setdefault("COPILOT_API_URL", "https://api.githubcopilot.com")
        key = Key(source="the client")
    copilot = Copilot(key, env, transports=Transports(http=http, sockets=sockets))
    model = options.model or env.get("COPILOT_MODEL") or await copilot.find_default_model()
    return msgspec.structs.replace(options, provider=copilot, model=model)


def describe(hosted: HostedSession) -> JsonObject:
    """Return the reply to create and resume."""
    return {
        "sessionId": hosted.id,
        "workspacePath": hosted.live.folder.path,
        "capabilities": hosted.capabilities,
    }


def _stored_folder(server: Server, session_id: str) -> str | None:
    """Return the folder of a stored session if it still exists."""
    cwd = server.archive.summary(session_id).cwd
    return cwd if cwd and os.path.isdir(cwd) else None
