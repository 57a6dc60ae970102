"""Copies a session's files to the file system of its client.

The log on this machine is written first and never waits; the client's copy follows. A session that
exists only in the client's file system is fetched when it is resumed.
"""

import asyncio
import os

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.session import SessionWarning
from trimtab.host.ports import ClientGone
from trimtab.runtime.live import LiveSession
from trimtab.session.folder import SessionFolder
from trimtab.session.store import SessionStore
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import RpcError

LOG = "events.jsonl"
FILES = ("workspace.yaml", "plan.md", "checkpoints", "files")
"""Copied besides the log whenever the session is idle."""
MAX_SIZE = 16 * 1024 * 1024
"""Bytes; larger files are not copied."""
TIMEOUT = 10.0
"""Seconds for one call to the client."""


class FileSystem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A client's description of its file system."""

    session_state_path: str
    initial_cwd: str = ""
    conventions: str = "posix"
    capabilities: JsonObject | None = None

    @property
    def has_database(self) -> bool:
        """True if the client also keeps the tables of the session."""
        return bool((self.capabilities or {}).get("sqlite"))

    def path(self, name: str) -> str:
        separator = "\\" if self.conventions == "windows" else "/"
        return separator.join((self.session_state_path.rstrip("/\\"), *name.split("/")))


class ClientFileError(Exception):
    """Raised when the client cannot read or write a file."""


class ClientFiles:
    """The client's file system for one session."""

    def __init__(self, peer: Peer, session_id: str, system: FileSystem) -> None:
        self._peer = peer
        self._session_id = session_id
        self._system = system

    async def read(self, name: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            reply = await self._call("readFile", name)
        except ClientFileError:
            return None
        content = reply.get("content") if isinstance(reply, dict) else None
        return content if isinstance(content, str) and not reply.get("error") else None

    async def append(self, name: str, text: str) -> None:
        await self._call("appendFile", name, content=text)

    async def write(self, name: str, text: str) -> None:
        await self._call("writeFile", name, content=text)

    async def _call(self, method: str, name: str, **more: object) -> JsonObject:
        params = {"sessionId": self._session_id, "path": self._system.path(name), **more}
        try:
            async with asyncio.timeout(TIMEOUT):
                reply = await self._peer.ask(f"sessionFs.{method}", params)
        except (ClientGone, RpcError, TimeoutError) as error:
            raise ClientFileError(str(error) or "no answer") from None
        if isinstance(reply, dict) and method != "readFile" and reply.get("code"):
            raise ClientFileError(str(reply.get("message") or reply["code"]))
        return reply if isinstance(reply, dict) else {}


class Mirror:
    """Copies everything a session stores, in order, in the background."""

    def __init__(self, live: LiveSession, files: ClientFiles, *, fresh: bool) -> None:
        """`fresh` sessions are copied from the first event on; the copy of others is replaced."""
        self._live = live
        self._files = files
        self._lines: list[bytes] = []
        self._replaces_log = not fresh
        self._changed = asyncio.Event()
        self._copied: dict[str, tuple[int, int]] = {}
        self._events = live.folder.events
        self._ended = False
        self._broken = False
        self._lines += map(bytes, live.read_events() if fresh else ())
        self._changed.set()
        live.subscribe(self._on_event)
        self._task = asyncio.get_running_loop().create_task(self._copy())

    async def finish(self) -> None:
        """Wait until everything is copied, or the client does not answer."""
        self._ended = True
        self._changed.set()
        await asyncio.wait((self._task,), timeout=TIMEOUT)
        self._task.cancel()

    def _on_event(self, event: Event, line: bytes) -> None:
        if not event.ephemeral:
            self._lines.append(line)
        if not event.ephemeral or event.type == "session.idle":
            self._changed.set()

    async def _copy(self) -> None:
        while not self._broken:
            await self._changed.wait()
            self._changed.clear()
            lines, self._lines = self._lines, []
            size = self._live.log_size  # exactly these lines are on disk now
            try:
                if self._replaces_log:  # the client's copy may have ended anywhere
                    self._replaces_log, lines = False, []
                    text = await asyncio.to_thread(_read, self._events, size)
                    await self._files.write(LOG, text)
                if lines:
                    text = b"\n".join(lines).decode("utf-8", "replace")
                    await self._files.append(LOG, text + "\n")
                if not self._live.busy or self._ended:
                    await self._copy_files()
            except ClientFileError as error:
                self._give_up(error)
            if self._ended and not self._lines:
                return

    async def _copy_files(self) -> None:
        for name, path in await asyncio.to_thread(list_files, self._live.folder):
            stat = os.stat(path)
            mark = stat.st_mtime_ns, stat.st_size
            if self._copied.get(name) == mark or stat.st_size > MAX_SIZE:
                continue
            await self._files.write(name, await asyncio.to_thread(_read, path))
            self._copied[name] = mark

    def _give_up(self, error: ClientFileError) -> None:
        self._broken = True
        message = (
            f"The client's file system cannot be written ({error}); from now on the session "
            "is stored on this machine only."
        )
        if not self._ended:
            self._live.emit(SessionWarning(warning_type="session_files", message=message))


def list_files(folder: SessionFolder) -> list[tuple[str, str]]:
    """Return the relative name and the path of every file that is copied besides the log."""
    found = []
    for name in FILES:
        path = os.path.join(folder.path, name)
        if os.path.isfile(path):
            found.append((name, path))
        for base, _, names in os.walk(path):
            relative = os.path.relpath(base, folder.path)
            found += [(f"{relative}/{file}", os.path.join(base, file)) for file in sorted(names)]
    return found


def _read(path: str, size: int = -1) -> str:
    with open(path, "rb") as file:
        return file.read(size).decode("utf-8", "replace")


async def fetch_session(store: SessionStore, session_id: str, files: ClientFiles) -> bool:
    """Copy a session from the client to this machine; return False if the client has none."""
    text = await files.read(LOG)
    if not text:
        return False
    try:
        folder, log = store.create(session_id, cwd="")
    except TrimtabError:
        return False
    log.close()
    await asyncio.to_thread(_replace, folder.events, text)
    for name in ("workspace.yaml", "plan.md"):
        if content := await files.read(name):
            await asyncio.to_thread(_replace, os.path.join(folder.path, name), content)
    return True


def _replace(path: str, text: str) -> None:
    replace_file(path, text.encode("utf-8", "replace"))
