"""The RPC server: its clients, and the sessions they share."""

import asyncio
import hmac
import sys
import time
import traceback
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import ModelError, TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import timestamp
from trimtab.contracts.options import SessionOptions
from trimtab.host.loading import LoadRuntime, load_runtime
from trimtab.providers.auth import GITHUB_TOKENS
from trimtab.transports.rpc.dispatch import answer
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import AUTHENTICATION_FAILED, FAILED, RpcError

if TYPE_CHECKING:
    import socket

    from trimtab.host.hosted import HostedSession
    from trimtab.providers.auth import Key
    from trimtab.runtime.live import LiveSession
    from trimtab.runtime.runtime import Runtime
    from trimtab.session.archive import Archive
    from trimtab.transports.rpc.inference import Exchange

CLOSING = 4.0
"""Seconds that sessions have to close when the server stops."""
ANSWERING = 10.0
"""Seconds that GitHub has to answer about an account."""
HANGING_UP = 0.05
"""Seconds after which sockets are closed once the server was shut down."""
LEAVING = 3.0
"""Seconds that clients have to disconnect after they shut the server down."""
ABANDONED = 1800.0
"""Seconds after which an idle session without clients is closed."""


class Server:
    """Serves any number of clients. The runtime is imported with the first session."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        defaults: SessionOptions,
        token: str | None = None,
        idle_timeout: float | None = None,
        load: LoadRuntime = load_runtime,
    ) -> None:
        self.env = env
        self._given_env = env
        self._load = load
        self.defaults = defaults
        """The options that the flags of the server give its sessions."""
        self.builtin_plugins: tuple[str, ...] = ()
        """Folders of plugins that the client's program brings for all sessions."""
        self.cwd = defaults.cwd
        self.peers: set[Peer] = set()
        self.sessions: dict[str, HostedSession] = {}
        self.opening = asyncio.Lock()
        """Locked while a session is opened or closed, so that no id is opened twice."""
        self.inference: Peer | None = None
        """The client that makes the model calls of new sessions, if any."""
        self.exchanges: dict[str, Exchange] = {}
        self.users: dict[str, JsonObject] = {}
        """The accounts of tokens, as GitHub described them."""
        self.secrets: tuple[str, ...] = ()
        """Values that clients want hidden in every session."""
        self.ended = asyncio.Event()
        self._token = token
        self._idle_timeout = idle_timeout
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._runtime: Runtime | None = None
        self._closed = False

    @property
    def runtime(self) -> "Runtime":
        if self._runtime is None:
            self._runtime = self._load(self.env, self._listen)
        return self._runtime

    def prefer_accounts(self, *, preferred: bool) -> None:
        """Let the account that a client signed in to win over tokens in variables, or not.

        Sessions that are open keep the token they have.
        """
        env = self._given_env
        if preferred:
            env = {name: value for name, value in env.items() if name not in GITHUB_TOKENS}
        if env != self.env:
            self.env, self._runtime = env, None

    def hide(self, values: Sequence[str]) -> None:
        """Hide these values in all present and future sessions."""
        self.secrets = (*self.secrets, *values)
        for hosted in self.sessions.values():
            hosted.live.hide(values)

    @property
    def session_defaults(self) -> SessionOptions:
        """The options of sessions whose clients do not say otherwise."""
        if not self.builtin_plugins:
            return self.defaults
        given = self.defaults.customize
        folders = (*given.plugin_dirs, *self.builtin_plugins)
        customize = msgspec.structs.replace(given, plugin_dirs=folders)
        return msgspec.structs.replace(self.defaults, customize=customize)

    @property
    def archive(self) -> "Archive":
        """The stored sessions."""
        from trimtab.session.archive import Archive

        return Archive(self.env)

    @property
    def needs_token(self) -> bool:
        return self._token is not None

    def new_peer(self) -> Peer:
        """Return the peer for a client that has just connected."""
        peer = Peer(self._answer, self._on_disconnected)
        self.peers.add(peer)
        return peer

    def authenticate(self, peer: Peer, token: str | None) -> None:
        """Accept a client. Raises `RpcError` if its token is wrong."""
        if self._token is not None and not hmac.compare_digest(
            self._token.encode(), (token or "").encode("utf-8", "surrogatepass")
        ):
            raise RpcError(AUTHENTICATION_FAILED, "AUTHENTICATION_FAILED")
        peer.authenticated = True

    def session(self, session_id: str | None) -> "HostedSession":
        """Return an open session. The text of the error is the one that clients look for."""
        found = self.sessions.get(session_id or "")
        if found is None:
            raise RpcError(FAILED, f"Session not found: {session_id}")
        return found

    def add(self, hosted: "HostedSession") -> None:
        self.sessions[hosted.id] = hosted
        self._watch(hosted, self._idle_timeout or ABANDONED)

    def times(self, session_id: str) -> JsonObject:
        """Return when a session was created and last used, and its title."""
        summary = self.archive.summary(session_id)
        times: JsonObject = {"startTime": summary.created_at, "modifiedTime": summary.updated_at}
        return {**times, "summary": summary.title} if summary.title else times

    def runtime_for(self, token: str | None) -> "Runtime":
        """Return the runtime for a GitHub token, or the shared one."""
        if token is None:
            return self.runtime
        return self._load({**self.env, "COPILOT_GITHUB_TOKEN": token}, self._listen)

    def _listen(self, live: "LiveSession") -> None:
        """Serve the clients of a session's socket like all others."""
        from trimtab.host.opened import host_session

        host_session(live, lambda _, connection: self.serve_socket(connection))

    def serve_socket(self, connection: "socket.socket") -> None:
        """Serve a client of a session's socket, whose user was checked."""
        peer = self.new_peer()
        peer.authenticated = True

        async def connect() -> None:
            try:
                loop = asyncio.get_running_loop()
                await loop.connect_accepted_socket(lambda: peer, connection)
            except OSError:  # the client is gone already
                connection.close()

        self.background(connect())

    async def fetch_user(self, key: "Key") -> JsonObject:
        """Return the account of a GitHub token as GitHub describes it. Raises `ModelError`."""
        from trimtab.providers.copilot import Copilot

        copilot = Copilot(key, self.env)
        try:
            async with asyncio.timeout(ANSWERING):
                return await copilot.fetch_user()
        except TimeoutError:
            raise ModelError(
                f"GitHub did not answer within {ANSWERING:g} s; try again later.",
                category="transport",
            ) from None
        finally:
            await copilot.aclose()

    def tell(self, kind: str, session_id: str, metadata: JsonObject | None = None) -> None:
        """Notify every client that a session was created, deleted or updated."""
        params: JsonObject = {"type": f"session.{kind}", "sessionId": session_id}
        if metadata is not None:
            params["metadata"] = metadata
        for peer in self.peers:
            if peer.authenticated:
                peer.notify("session.lifecycle", params)

    def tell_updated(self, session_id: str) -> None:
        hosted = self.sessions.get(session_id)
        if hosted is None:
            return
        if not hosted.times:
            hosted.times = self.times(session_id)
        title = hosted.live.projections.title.text
        metadata = {**hosted.times, "modifiedTime": timestamp()}
        self.tell("updated", session_id, {**metadata, "summary": title} if title else metadata)

    async def close_session(self, session_id: str, *, suspend: bool = False) -> None:
        """Close a session if it is open; it stays on disk.

        With `suspend`, calls that wait for a client can be continued later.
        """
        async with self.opening:
            hosted = self.sessions.get(session_id)
            if hosted is None:
                return
            try:
                await hosted.stop_samplings()
                await hosted.live.suspend(hosted.waiting_calls() if suspend else ())
                await hosted.aclose()
            finally:
                self.sessions.pop(session_id, None)
                if timer := self._timers.pop(session_id, None):
                    timer.cancel()

    async def close_sessions(self) -> None:
        """Close all sessions, within a few seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING), asyncio.TaskGroup() as group:
                for session_id in tuple(self.sessions):
                    group.create_task(self._close_quietly(session_id))

    async def shut_down(self) -> None:
        """Close all sessions and refuse every further call.

        The process ends when the last client has left, or a little later: the official clients
        take a process that ends while they are connected for a crash. Those on a port wait until
        the connection is closed.
        """
        self._closed = True
        await self.close_sessions()
        loop = asyncio.get_running_loop()
        loop.call_later(HANGING_UP, self._hang_up)
        loop.call_later(LEAVING, self.ended.set)

    def _hang_up(self) -> None:
        for peer in tuple(self.peers):
            if peer.on_socket:
                peer.close()

    async def close(self) -> None:
        """Close all sessions and connections, and wait until their telemetry is sent."""
        from trimtab.telemetry.export import wait_until_sent

        await self.close_sessions()
        for peer in tuple(self.peers):
            peer.close()
        await asyncio.to_thread(wait_until_sent)

    def log_bug(self, error: BaseException) -> None:
        """Print the traceback of a bug if debugging is on."""
        if "TRIMTAB_DEBUG" in self.env:
            traceback.print_exception(error, file=sys.stderr)

    def background(self, work: Awaitable[None]) -> None:
        """Run something without waiting for it."""

        async def run() -> None:
            await work

        task = asyncio.get_running_loop().create_task(run())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_quietly(self, session_id: str) -> None:
        try:
            await self.close_session(session_id)
        except (TrimtabError, OSError) as error:
            print(f"Session {session_id} could not be closed: {error}", file=sys.stderr)

    async def _answer(self, peer: Peer, name: str, raw: msgspec.Raw) -> Any:
        if not peer.authenticated and name != "connect":
            if self.needs_token:
                raise RpcError(AUTHENTICATION_FAILED, "AUTHENTICATION_FAILED")
            peer.authenticated = True
        if self._closed:
            raise RpcError(FAILED, f"Request {name} failed with message: The server has shut down.")
        return await answer(self, peer, name, raw)

    def _on_disconnected(self, peer: Peer) -> None:
        self.peers.discard(peer)
        if self._closed and not self.peers:
            self.ended.set()
        if self.inference is peer:
            self.inference = None
            for exchange in tuple(self.exchanges.values()):
                exchange.end("it disconnected")
        for hosted in self.sessions.values():
            before, commands = hosted.capabilities, hosted.commands
            if hosted.leave(peer):
                with suppress(TrimtabError):
                    hosted.announce_changes(before, commands)

    def _watch(self, hosted: "HostedSession", seconds: float) -> None:
        """Check after some time whether the session has been idle, and close it then."""
        loop = asyncio.get_running_loop()
        self._timers[hosted.id] = loop.call_later(seconds, self._expire, hosted)

    def _expire(self, hosted: "HostedSession") -> None:
        allowed = self._idle_timeout or ABANDONED
        left = hosted.last_event + allowed - time.monotonic()
        if hosted.live.busy or (self._idle_timeout is None and hosted.participants):
            self._watch(hosted, allowed)
        elif left > 0:
            self._watch(hosted, left)
        else:
            self.background(self._close_quietly(hosted.id))


def find_token(env: Mapping[str, str]) -> str | None:
    """Return the token that clients must present, if one is set."""
    return env.get("COPILOT_CONNECTION_TOKEN") or None
