"""A session's files in the file system of its client, beside those on this machine.

The log here stays the one that is written first and never waits; the client's copy follows it.
A session that is not known here is read from the client when it is resumed.
"""

import asyncio
import os

import msgspec

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
"""What is copied besides the log, when a turn has ended."""
LARGEST = 16 * 1024 * 1024
PATIENCE = 10.0


class FileSystem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client says of its file system."""

    session_state_path: str
    initial_cwd: str = ""
    conventions: str = "posix"
    capabilities: JsonObject | None = None

    def path(self, name: str) -> str:
        separator = "\\" if self.conventions == "windows" else "/"
        return separator.join((self.session_state_path.rstrip("/\\"), *name.split("/")))


class Failed(Exception):
    """The client could not do what it was asked."""


class ClientFiles:
    """The client's file system for one session."""

    def __init__(self, peer: Peer, session_id: str, system: FileSystem) -> None:
        self._peer = peer
        self._session_id = session_id
        self._system = system

    async def read(self, name: str) -> str | None:
        """The content of a file; None if there is none."""
        try:
            reply = await self._call("readFile", name)
        except Failed:
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
            async with asyncio.timeout(PATIENCE):
                reply = await self._peer.ask(f"sessionFs.{method}", params)
        except (ClientGone, RpcError, TimeoutError) as error:
            raise Failed(str(error) or "it gave no answer") from None
        if isinstance(reply, dict) and method != "readFile" and reply.get("code"):
            raise Failed(str(reply.get("message") or reply["code"]))
        return reply if isinstance(reply, dict) else {}


class Mirror:
    """Copies what a session stores, in order, without holding the session up."""

    def __init__(self, live: LiveSession, files: ClientFiles, *, fresh: bool) -> None:
        """What a new session has stored already is copied; an old one is brought up to date."""
        self._live = live
        self._files = files
        self._lines: list[bytes] = []
        self._whole = not fresh
        self._more = asyncio.Event()
        self._copied: dict[str, tuple[int, int]] = {}
        self._events = live.folder.events
        self._ended = False
        self._broken = False
        self._lines += map(bytes, live.read_events() if fresh else ())
        self._more.set()
        live.subscribe(self._hear)
        self._task = asyncio.get_running_loop().create_task(self._copy())

    async def finish(self) -> None:
        """Wait until everything is there, or the client cannot take it."""
        self._ended = True
        self._more.set()
        await asyncio.wait((self._task,), timeout=PATIENCE)
        self._task.cancel()

    def _hear(self, event: Event, line: bytes) -> None:
        if not event.ephemeral:
            self._lines.append(line)
        if not event.ephemeral or event.type == "session.idle":
            self._more.set()

    async def _copy(self) -> None:
        while not self._broken:
            await self._more.wait()
            self._more.clear()
            lines, self._lines = self._lines, []
            size = self._live.log_size  # exactly these lines are on disk now
            try:
                if self._whole:  # the client's copy may have ended anywhere
                    self._whole, lines = False, []
                    text = await asyncio.to_thread(_read, self._events, size)
                    await self._files.write(LOG, text)
                if lines:
                    text = b"\n".join(lines).decode("utf-8", "replace")
                    await self._files.append(LOG, text + "\n")
                if not self._live.busy or self._ended:
                    await self._copy_files()
            except Failed as error:
                self._give_up(error)
            if self._ended and not self._lines:
                return

    async def _copy_files(self) -> None:
        for name, path in await asyncio.to_thread(list_files, self._live.folder):
            made = os.stat(path)
            mark = made.st_mtime_ns, made.st_size
            if self._copied.get(name) == mark or made.st_size > LARGEST:
                continue
            await self._files.write(name, await asyncio.to_thread(_read, path))
            self._copied[name] = mark

    def _give_up(self, error: Failed) -> None:
        self._broken = True
        message = (
            f"The client's file system cannot be written ({error}); the session is kept on this "
            "machine alone from here on."
        )
        if not self._ended:
            self._live.emit(SessionWarning(warning_type="session_files", message=message))


def list_files(folder: SessionFolder) -> list[tuple[str, str]]:
    """What is copied besides the log: names with slashes, and where they are."""
    found = []
    for name in FILES:
        path = os.path.join(folder.path, name)
        if os.path.isfile(path):
            found.append((name, path))
        for base, _, names in os.walk(path):
            relative = os.path.relpath(base, folder.path)
            found += [(f"{relative}/{one}", os.path.join(base, one)) for one in sorted(names)]
    return found


def _read(path: str, size: int = -1) -> str:
    with open(path, "rb") as file:
        return file.read(size).decode("utf-8", "replace")


async def fetch_session(store: SessionStore, session_id: str, files: ClientFiles) -> bool:
    """Bring a session that only the client has to this machine; False if it has none either."""
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
    from trimtab.config.files import replace_file

    replace_file(path, text.encode("utf-8", "replace"))
