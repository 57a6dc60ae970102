"""Finds the program of a runtime: a setting, PATH, or a stand-in; remembers what it found."""

import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from trimtab.config.files import make_private_dir, read_regular, replace_file
from trimtab.config.invalid_settings import refuse
from trimtab.config.paths import Home
from trimtab.config.settings import Settings
from trimtab.contracts.errors import ConfigurationError, TrimtabError
from trimtab.runtimes.contract import AgentRuntime, Binary, Capabilities, RuntimeSettings
from trimtab.workspace.programs import Program

_PROBE_SECONDS = 20.0
_MAX_OUTPUT = 256 * 1024
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_MACHINE_CODE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


class Remembered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The file of a found program. `stamp` changes with the program, so that it is probed anew."""

    bin: str
    is_native: bool
    leading_args: tuple[str, ...]
    version: str
    resolved_at: float
    best_effort: bool = False
    stamp: str = ""


class Listed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A runtime as `trimtab runtimes` lists it."""

    name: str
    found: bool
    bin: str | None
    leading_args: tuple[str, ...]
    is_native: bool | None
    version: str | None
    best_effort: bool
    capabilities: Capabilities


class Binaries:
    """Finds programs on this machine. `folder` keeps what was found, one file a runtime."""

    def __init__(self, home: Home, env: Mapping[str, str]) -> None:
        self._home = home
        self.env = env
        self.folder = os.path.join(home.state, "cache", "runtimes")

    def settings(self, runtime: AgentRuntime) -> RuntimeSettings:
        """Return the person's settings; a repository's do not count, since they name a program."""
        value = Settings(self._home).get("runtimes", dict, {}).get(runtime.name, {})
        try:
            return msgspec.convert(value, RuntimeSettings)
        except msgspec.ValidationError as error:
            raise refuse(f"runtimes.{runtime.name}", RuntimeSettings, error) from None

    async def find(self, runtime: AgentRuntime, *, fresh: bool = False) -> Binary | None:
        """Return the program of a runtime; None if there is none.

        `fresh` asks the program anew even if nothing about it has changed.
        """
        place = self._locate(runtime)
        if place is None:
            return None
        known = None if fresh else self._recall(runtime, place)
        if known is not None:
            return known
        return await self._probe(runtime, place)

    async def require(self, runtime: AgentRuntime) -> Binary:
        """Return the program of a runtime. Raises `ConfigurationError` if there is none."""
        binary = await self.find(runtime)
        if binary is None:
            raise ConfigurationError(
                f"{runtime.title} is not installed: there is no {runtime.program} on PATH; install "
                f"it with `{runtime.install}`, or name it in the setting "
                f"runtimes.{runtime.name}.path."
            )
        return binary

    async def describe(self, runtime: AgentRuntime, *, fresh: bool = False) -> Listed:
        """Return what is known about a runtime and its program."""
        binary = await self.find(runtime, fresh=fresh)
        return Listed(
            name=runtime.name,
            found=binary is not None,
            bin=binary.bin if binary else None,
            leading_args=binary.leading_args if binary else (),
            is_native=binary.is_native if binary else None,
            version=(binary.version or None) if binary else None,
            best_effort=binary.best_effort if binary else False,
            capabilities=runtime.capabilities,
        )

    async def find_missing_flags(self, runtime: AgentRuntime, binary: Binary) -> list[str]:
        """Return the flags that a stand-in lacks, by what its help says."""
        if not binary.best_effort:
            return []
        _, text = await self._run([*binary.command, "--help"])
        return [flag for flag in runtime.needed_flags if flag not in text]

    def _locate(self, runtime: AgentRuntime) -> tuple[str, tuple[str, ...], bool] | None:
        """Return the path, the leading arguments, and whether it is only a stand-in."""
        path = self.env.get("PATH", os.defpath)
        if named := self.settings(runtime).path:
            chosen = os.path.expanduser(named)
            found = shutil.which(chosen, path=path)
            if found is None:
                raise ConfigurationError(
                    f"The setting runtimes.{runtime.name}.path names {named}, which is not a "
                    "program; correct it."
                )
            return os.path.abspath(found), (), False
        if (found := shutil.which(runtime.program, path=path)) is not None:
            return os.path.abspath(found), (), False
        if runtime.fallback and (found := shutil.which(runtime.fallback[0], path=path)):
            return os.path.abspath(found), runtime.fallback[1:], True
        return None

    def _recall(
        self, runtime: AgentRuntime, place: tuple[str, tuple[str, ...], bool]
    ) -> Binary | None:
        path, leading, best_effort = place
        try:
            data = read_regular(self._file(runtime))
            known = msgspec.json.decode(data, type=Remembered)
        except (OSError, msgspec.DecodeError):
            return None
        if (known.bin, known.leading_args, known.stamp) != (path, leading, stamp_of(path)):
            return None
        return Binary(
            bin=path,
            leading_args=leading,
            is_native=known.is_native,
            version=known.version,
            best_effort=best_effort,
        )

    async def _probe(
        self, runtime: AgentRuntime, place: tuple[str, tuple[str, ...], bool]
    ) -> Binary | None:
        path, leading, best_effort = place
        worked, text = await self._run([path, *leading, "--version"])
        if best_effort and not worked:
            return None  # the other program is there, but not its extension
        found = _VERSION.search(text)
        binary = Binary(
            bin=path,
            leading_args=leading,
            is_native=is_machine_code(path),
            version=found[0].rstrip(".") if found else "",
            best_effort=best_effort,
        )
        remembered = Remembered(
            bin=path,
            is_native=binary.is_native,
            leading_args=leading,
            version=binary.version,
            resolved_at=time.time(),
            best_effort=best_effort,
            stamp=stamp_of(path),
        )
        with suppress(TrimtabError, OSError):  # a cache: without it, it is probed again
            make_private_dir(self.folder)
            replace_file(self._file(runtime), msgspec.json.encode(remembered) + b"\n")
        return binary

    async def _run(self, argv: list[str]) -> tuple[bool, str]:
        """Run a program that prints something and exits; return if it succeeded, and the text."""
        output = bytearray()

        def take(chunk: bytes) -> bool:
            output.extend(chunk)
            return len(output) < _MAX_OUTPUT

        program = Program(take)
        try:
            ended = await program.run(
                argv, cwd=os.path.sep, env=dict(self.env), seconds=_PROBE_SECONDS
            )
        except (OSError, ValueError):
            return False, ""
        text = (bytes(output) + b"\n" + ended.errors).decode("utf-8", "replace")
        return ended.exit_code == 0, text

    async def print_models(self, runtime: AgentRuntime, binary: Binary) -> str | None:
        """Return what the program prints about its models; None if that fails."""
        worked, text = await self._run([*binary.command, *runtime.list_arguments])
        return text if worked else None

    def _file(self, runtime: AgentRuntime) -> str:
        return os.path.join(self.folder, f"{runtime.name}.json")


def stamp_of(path: str) -> str:
    """Return a text that changes when the file at a path is replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def is_machine_code(path: str) -> bool:
    try:
        return read_regular(os.path.realpath(path), 4).startswith(_MACHINE_CODE)
    except OSError:
        return False
