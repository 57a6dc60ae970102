"""API keys: their source, and the header that carries them. A repr never contains a key."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from typing import Literal

import msgspec

from trimtab.contracts.errors import AuthenticationError

AuthKind = Literal["none", "bearer", "api-key", "x-api-key"]

GITHUB_TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""The variables with a token for GitHub, the most specific first."""

_HEADERS = {
    "bearer": ("authorization", "Bearer "),
    "api-key": ("api-key", ""),
    "x-api-key": ("x-api-key", ""),
}
_COMMAND_SECONDS = 30.0


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key, or the shell command that prints it, which is run for every request.

    `source` is the variable or command it comes from, for messages.
    """

    value: str = ""
    command: str = ""
    source: str = ""

    def __repr__(self) -> str:
        return f"Key(source={self.source!r})"

    async def reveal(self) -> str:
        return await _run(self.command, self.source) if self.command else self.value


def auth_header(kind: AuthKind, key: str) -> dict[str, str]:
    if kind == "none" or not key:
        return {}
    name, prefix = _HEADERS[kind]
    return {name: prefix + key}


async def _run(command: str, source: str) -> str:
    try:
        process = await asyncio.create_subprocess_shell(
            command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise AuthenticationError(
            f"The command in {source} cannot be started ({error.strerror}); correct it."
        ) from None
    try:
        async with asyncio.timeout(_COMMAND_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise AuthenticationError(
            f"The command in {source} printed no key within {_COMMAND_SECONDS:g} s; run it "
            "yourself to see why."
        ) from None
    finally:
        if process.returncode is None:
            _kill(process.pid)
            await process.wait()
    key = output.decode("utf-8", "replace").strip()
    if process.returncode or not key:
        raise AuthenticationError(
            f"The command in {source} printed no key (exit code {process.returncode}); run it "
            "yourself to see why."
        )
    return key


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
