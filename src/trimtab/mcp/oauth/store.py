"""Keeps the tokens of MCP servers: in the keyring, else in a file for the owner alone."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec

from trimtab.config.accounts import find_keyring
from trimtab.config.files import (
    format_json,
    make_private_dir,
    open_private,
    read_regular,
    replace_file,
)
from trimtab.config.paths import Home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ConfigurationError

FOLDER = "mcp-oauth-config"
LOCK_SECONDS = 60.0
LOCK_INTERVAL = 0.01


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sign-in: the client that was used, and its tokens, for one issuer and one resource."""

    id: str = ""
    """Different for each sign-in, so that what one account saw is not shown to another."""
    issuer: str = ""
    resource: str = ""
    token_endpoint: str = ""
    client_id: str = ""
    client_secret: str = ""
    auth_method: str = "none"
    redirect_uri: str = ""
    registered: bool = False
    """True if the client registered itself, so that it can do so again."""
    access_token: str = ""
    refresh_token: str = ""
    expires_at: float = 0.0
    """Seconds since the epoch; 0 if unknown."""
    lifetime: float = 0.0
    scopes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Scopes that a call was refused for."""


SECRETS = ("client_secret", "access_token", "refresh_token")


class GrantStore:
    """The sign-ins of one home, a file for each server."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        self._folder = os.path.join(home.config, FOLDER)
        self._env = env

    def read(self, server: McpServer) -> Grant | None:
        """Return the sign-in to a server. Raises `ConfigurationError`.

        Every method that touches secrets raises it, too, if the keyring refuses.
        """
        path = self._path(server)
        try:
            grant = msgspec.json.decode(read_regular(path), type=Grant)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigurationError(
                f"{path} cannot be read ({error}); run `trimtab mcp logout {server.name}`, then "
                "sign in again."
            ) from None
        keyring = find_keyring(self._env) if not grant.access_token else None
        kept = keyring.read(_key(server)) if keyring is not None else None
        if not kept:
            return grant
        return msgspec.structs.replace(grant, **msgspec.json.decode(kept, type=dict[str, str]))

    def check(self, server: McpServer) -> None:
        """Raise unless a sign-in can be kept, so that nobody signs in for nothing."""
        keyring = find_keyring(self._env)
        if keyring is not None:
            keyring.write(f"{_key(server)}-check", "check")
            keyring.delete(f"{_key(server)}-check")
        make_private_dir(self._folder)
        path = f"{self._path(server)}.check"
        replace_file(path, b"")
        os.unlink(path)

    def write(self, server: McpServer, grant: Grant) -> None:
        keyring = find_keyring(self._env)
        if keyring is not None:
            secrets = {name: getattr(grant, name) for name in SECRETS}
            keyring.write(_key(server), msgspec.json.encode(secrets).decode())
            grant = msgspec.structs.replace(grant, **dict.fromkeys(SECRETS, ""))
        make_private_dir(self._folder)
        replace_file(self._path(server), format_json(msgspec.to_builtins(grant)))

    def delete(self, server: McpServer) -> bool:
        """Forget a sign-in; return False if there was none."""
        keyring = find_keyring(self._env)
        if keyring is not None:
            keyring.delete(_key(server))
        found = os.path.exists(self._path(server))
        for path in (self._path(server), self._path(server) + ".lock"):
            with suppress(FileNotFoundError):
                os.unlink(path)
        return found

    def identify(self, server: McpServer) -> str:
        """Return which sign-in to a server is in use; empty if none."""
        try:
            grant = self.read(server)
        except ConfigurationError:
            return ""
        return "" if grant is None else grant.id

    def changed(self, server: McpServer) -> int:
        """Return a number that changes with each write; 0 if there is no sign-in."""
        try:
            return os.stat(self._path(server)).st_mtime_ns
        except OSError:
            return 0

    @asynccontextmanager
    async def lock(self, server: McpServer) -> AsyncIterator[None]:
        """Keep other processes and tasks from renewing the same sign-in."""
        make_private_dir(self._folder)
        fd = open_private(self._path(server) + ".lock", os.O_RDWR)
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                while True:
                    try:
                        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        await asyncio.sleep(LOCK_INTERVAL)
            yield
        finally:
            os.close(fd)

    def _path(self, server: McpServer) -> str:
        return os.path.join(self._folder, f"{_key(server)}.json")


class MemoryGrantStore(GrantStore):
    """The sign-ins of one session, which end with it."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}
        self._writes = 0
        self._renewing = asyncio.Lock()

    def read(self, server: McpServer) -> Grant | None:
        return self._grants.get(_key(server))

    def check(self, server: McpServer) -> None:
        """Do nothing: memory can always keep a sign-in."""

    def write(self, server: McpServer, grant: Grant) -> None:
        self._writes += 1
        self._grants[_key(server)] = grant

    def delete(self, server: McpServer) -> bool:
        return self._grants.pop(_key(server), None) is not None

    def changed(self, server: McpServer) -> int:
        return self._writes if _key(server) in self._grants else 0

    @asynccontextmanager
    async def lock(self, server: McpServer) -> AsyncIterator[None]:
        async with self._renewing:
            yield


def _key(server: McpServer) -> str:
    """Return the name of a server's sign-in: another address is another sign-in."""
    return "mcp-" + hashlib.sha256(f"{server.name}\n{server.url}".encode()).hexdigest()[:32]
