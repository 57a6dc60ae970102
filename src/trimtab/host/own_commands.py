"""Shell commands that a person runs in a session's folder, with the person's own rights."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from trimtab.contracts.ids import new_id
from trimtab.contracts.text import count

READ_SIZE = 1 << 16
LONGEST_OUTPUT = 1 << 20
"""Characters kept of a command's output; more is left out in the middle."""
GRACE_SECONDS = 2.0
"""Seconds between asking a command to end and killing it."""

OnOutput = Callable[[str, str], None]
"""Receives the name of a stream (stdout or stderr) and text that a command wrote to it."""


class Ended(msgspec.Struct, frozen=True):
    """A command that has ended. `exit_code` is negative for a signal, as in Python."""

    output: str
    exit_code: int


class OwnCommands:
    """The commands of one session that are running. Each has a process group of its own."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._watchers: set[asyncio.Task[None]] = set()

    async def start(
        self,
        command: str,
        cwd: str,
        *,
        seconds: float | None,
        on_output: OnOutput,
        on_exit: Callable[[str, int], None],
    ) -> str:
        """Start a command in the background and return its id. Raises `OSError`."""
        process_id = new_id()
        process = await self._spawn(process_id, command, cwd)

        async def watch() -> None:
            try:
                await self._follow(process, on_output, seconds)
            finally:
                self._running.pop(process_id, None)
                on_exit(process_id, process.returncode if process.returncode is not None else -1)

        task = asyncio.get_running_loop().create_task(watch())
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
        return process_id

    async def run(self, request_id: str, command: str, cwd: str, on_output: OnOutput) -> Ended:
        """Run a command to its end. It can be cancelled by its request id. Raises `OSError`."""
        process = await self._spawn(request_id, command, cwd)
        output = _Excerpt()

        def collect(stream: str, text: str) -> None:
            output.add(text)
            on_output(stream, text)

        try:
            await self._follow(process, collect, None)
        finally:
            self._running.pop(request_id, None)
        assert process.returncode is not None
        return Ended(output.text, process.returncode)

    def kill(self, process_id: str, number: signal.Signals = signal.SIGTERM) -> bool:
        """Send a signal to a command and its children; return False if it is not running."""
        process = self._running.get(process_id)
        if process is None or process.returncode is not None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
            return True
        return False

    async def aclose(self) -> None:
        """End all commands."""
        for process_id in tuple(self._running):
            self.kill(process_id, signal.SIGKILL)
        await asyncio.gather(*self._watchers, return_exceptions=True)

    async def _spawn(self, name: str, command: str, cwd: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            self._env.get("SHELL") or "/bin/sh",
            "-c",
            command,
            cwd=cwd,
            env=self._env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._running[name] = process
        return process

    async def _follow(
        self, process: asyncio.subprocess.Process, on_output: OnOutput, seconds: float | None
    ) -> None:
        """Read what a command writes until it ends; after `seconds` end it."""
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                group.create_task(_read(process.stdout, "stdout", on_output))
                group.create_task(_read(process.stderr, "stderr", on_output))
                group.create_task(_wait(process))
        except TimeoutError:
            await self._end(process)
        except asyncio.CancelledError:
            await self._end(process)
            raise

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await process.wait()
                    return


class _Excerpt:
    """The beginning and the end of a text that may become too long."""

    def __init__(self) -> None:
        self._head = ""
        self._tail = ""
        self._left_out = 0

    def add(self, text: str) -> None:
        room = LONGEST_OUTPUT // 2 - len(self._head)
        self._head += text[: max(0, room)]
        tail = self._tail + text[max(0, room) :]
        self._left_out += max(0, len(tail) - LONGEST_OUTPUT // 2)
        self._tail = tail[-LONGEST_OUTPUT // 2 :]

    @property
    def text(self) -> str:
        if not self._left_out:
            return self._head + self._tail
        left_out = count(self._left_out, "character")
        return f"{self._head}\n[{left_out} left out]\n{self._tail}"


async def _read(reader: asyncio.StreamReader, stream: str, on_output: OnOutput) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await reader.read(READ_SIZE):
        if text := decoder.decode(data):
            on_output(stream, text)
    if rest := decoder.decode(b"", final=True):
        on_output(stream, rest)


async def _wait(process: asyncio.subprocess.Process) -> None:
    """Wait for a command. What it left running may hold its pipes open: that is ended too."""
    await process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
