"""A shell command: starts its process, feeds its input, captures its output, ends it."""

import asyncio
import fcntl
import os
import signal
import termios
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from trimtab.contracts.workspace import Command, CommandState, ShellError, ShellInfo
from trimtab.workspace import process_tracking
from trimtab.workspace.capture import Capture, LogFile, Unread, open_saved
from trimtab.workspace.waiting import Streams, find_awaited

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined

READ_SIZE = 1 << 16
"""The initial capacity of a pipe. It is enlarged for commands that print much, to switch less."""
READS_AT_ONCE = 16
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)
MAX_ARGUMENT = 32_000
"""In characters of up to four bytes each; the kernel accepts 128 KiB."""
SETTLE_SECONDS = 0.3
"""Seconds for processes a command left running to exit, such as `tee` after a pipe."""
GRACE_SECONDS = 0.08
"""Seconds between asking a command to end and killing it."""
QUIET_SECONDS = 1.0
"""Seconds without output after which a command may be waiting for input."""
POLL_SECONDS = 0.4

KEYS = {
    "enter": b"\n",
    "tab": b"\t",
    "space": b" ",
    "escape": b"\x1b",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "ctrl-c": b"\x03",
    "ctrl-d": b"\x04",
    "ctrl-z": b"\x1a",
}
"""The bytes that terminals send for named keys."""

Connected = tuple[Sequence[str], Sequence[str], tuple[int, int, int]]


class Shell:
    """A running or finished command. `start` starts it."""

    def __init__(
        self,
        shell_id: str,
        command: Command,
        saved: str,
        on_end: Callable[["Shell"], None],
        open_terminal: Callable[[], tuple[int, int]] = os.openpty,
    ) -> None:
        self.id = shell_id
        self.command = command
        self.pid = 0
        self.exit_code: int | None = None
        self.left_behind: tuple[str, ...] = ()
        self.flooded = False
        self.awaits = ""
        self.finished = asyncio.Event()
        self.output: Unread = LogFile(saved) if command.detached else Capture(saved)
        self.listener: Callable[[bytes], None] | None = None
        self.foreground = False
        self.let_go = False
        """True if the person sent the command to the background."""
        self._wake = asyncio.Event()
        self._saved = saved
        self._on_end = on_end
        self._open_terminal = open_terminal
        self._no_terminal = ""
        self._tag: int | None = None
        self._started = self._last_output = time.monotonic()
        self._out = self._in = self._pidfd = -1
        self._streams: tuple[str, str] | None = None
        self._widened = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._released: Callable[[], None] = lambda: None

    @property
    def terminal(self) -> bool:
        """True if the command has a terminal, and did not just request one."""
        return self.command.terminal and not self._no_terminal

    def start(
        self, cwd: str, env: Mapping[str, str], confinement: "Confined | None" = None
    ) -> None:
        """Start the command, confined if that is wanted. Raises `OSError`."""
        opened: list[int] = []
        try:
            opener, argv, streams = self._connect(opened)
            tag = self._tag = None if self.command.detached else process_tracking.new_tag()
            if confinement is None:
                argv = [*opener, *argv]
                self.pid = process_tracking.spawn(argv, cwd=cwd, env=env, streams=streams, tag=tag)
            else:
                from trimtab.workspace.sandbox.confinement import Start

                start = Start(
                    opener=opener,
                    argv=argv,
                    cwd=cwd,
                    env=env,
                    streams=streams,
                    tag=tag,
                    call_id=self.command.call_id,
                    say=self._say,
                )
                self.pid, self._released = confinement.spawn(start)
        except BaseException:
            self._close()
            raise
        finally:
            for fd in opened:
                os.close(fd)
        loop = asyncio.get_running_loop()
        if self._out >= 0:
            loop.add_reader(self._out, self._readable)
        self._watch(loop)

    def _connect(self, opened: list[int]) -> Connected:
        """Open pipes or a terminal; return the opener, the command and the child's streams.

        The opener opens a terminal, outside any sandbox. The child's descriptors go to `opened`.
        """
        argv = ["bash", "-c", self.command.text]
        if len(self.command.text) > MAX_ARGUMENT:
            argv = ["bash", self._script()]
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        opened.append(null)
        if self.command.detached:
            log = open_saved(self._saved)
            opened.append(log)
            return (), argv, (null, log, log)
        if self.command.terminal:
            try:
                self._out, slave = self._open_terminal()
            except OSError as error:  # a container without terminals: the command can still run
                self._no_terminal = error.strerror or str(error)
            else:
                opened.append(slave)
                return self._on_terminal(slave), argv, (slave, slave, slave)
        self._out, out = os.pipe()
        opened.append(out)
        os.set_blocking(self._out, False)
        self._streams = "", pipe_link(out)
        stdin = null
        if self.command.background or self._no_terminal:
            stdin, self._in = os.pipe()
            opened.append(stdin)
            os.set_blocking(self._in, False)
            self._streams = pipe_link(stdin), pipe_link(out)
        return (), argv, (stdin, out, out)

    def _on_terminal(self, slave: int) -> Sequence[str]:
        os.set_blocking(self._out, False)
        termios.tcsetwinsize(self._out, (24, 120))
        self._in, name = self._out, os.ttyname(slave)
        self._streams = name, name
        # A session gets the terminal that its leader opens first: hence the extra shell.
        opener = 'exec <>"$0" >&0 2>&0; exec "$@"'
        return ["/bin/sh", "-c", opener, name]

    def _script(self) -> str:
        """Write a command that is too long for an argument to a file."""
        path = f"{self._saved}.sh"
        with open(open_saved(path), "w", encoding="utf-8") as file:
            file.write(self.command.text)
        return path

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Arrange for `_ended` to be called when the process exits."""
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            loop.add_reader(self._pidfd, self._ended)
        else:
            seen_only = os.WEXITED | os.WNOWAIT
            waiting = loop.run_in_executor(None, os.waitid, os.P_PID, self.pid, seen_only)
            waiting.add_done_callback(lambda _: self._ended())

    def _readable(self) -> None:
        """Read available output, up to a bound, so that other tasks get their turn."""
        for _ in range(READS_AT_ONCE):
            try:
                chunk = os.read(self._out, READ_SIZE)
            except BlockingIOError:
                return
            except OSError:  # a terminal that nobody keeps open any more
                chunk = b""
            if not chunk:
                self._close_output()
                return
            self._take(chunk)
            if len(chunk) < READ_SIZE:
                return

    def _take(self, chunk: bytes) -> None:
        self._last_output = time.monotonic()
        assert isinstance(self.output, Capture)
        if len(chunk) == READ_SIZE and not self._widened and not self.terminal:
            self._widened = True
            with suppress(OSError):
                fcntl.fcntl(self._out, F_SETPIPE_SZ, READ_SIZE * READS_AT_ONCE)
        self.output.add(chunk)
        if self.listener is not None:
            self.listener(chunk)
        if self.foreground and self.output.is_full() and not self.flooded:
            self.flooded = True
            self._begin(self.kill())

    def _say(self, text: str) -> None:
        """Add a line of ours to the output, except to a detached command's own file."""
        if isinstance(self.output, Capture) and not self.finished.is_set():
            self._take(text.encode())

    def _ended(self) -> None:
        try:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            code = 0
        self._close_pidfd()
        # Shells report a death by signal as 128 + its number.
        code = code if code >= 0 else 128 - code
        recent = time.monotonic() - self._started < 5
        left: Sequence[int] = ()
        if not self.command.detached:
            left = process_tracking.survivors(self._tag, self.pid, recent=recent)
        if left:
            self._begin(self._settle(code, left))
        else:
            self._finish(code)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, code: int, left: Sequence[int]) -> None:
        """Wait for processes the command left running, then kill them."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while left:
            if (seconds := deadline - time.monotonic()) <= 0:
                names = (process_tracking.name_of(pid) for pid in left)
                self.left_behind = tuple(name for name in names if name != "bwrap")
                await process_tracking.end(self._tag, self.pid)
                break
            await process_tracking.wait_for(left[0], seconds)
            left = process_tracking.survivors(self._tag, self.pid, recent=False)
        self._finish(code)

    def _finish(self, code: int) -> None:
        """Read the rest of the pipe, close everything and report the end."""
        if self.finished.is_set():
            return
        while self._out >= 0 and not self.flooded:
            before = self.output.kept + self.output.lost
            self._readable()
            if self.output.kept + self.output.lost == before:
                break
        self._close()
        self._released()
        self.exit_code = code
        self.finished.set()
        self._wake.set()
        self._on_end(self)

    async def wait(self, seconds: float) -> None:
        """Wait until the command ends, waits for input, is let go, or the time is over."""
        deadline = time.monotonic() + seconds
        self.awaits = before = ""
        self.let_go = False
        if not self.finished.is_set():
            self._wake.clear()
        while not self._wake.is_set() and (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(left, POLL_SECONDS)):
                    await self._wake.wait()
            except TimeoutError:
                now = self._awaited()
                if now and now == before:
                    self.awaits = now
                    return
                before = now

    def send_to_background(self) -> None:
        """End the wait for the command, which goes on."""
        self.let_go = True
        self._wake.set()

    def _awaited(self) -> str:
        """Return what a command without output waits for, if anything."""
        if self._streams is None or time.monotonic() - self._last_output < QUIET_SECONDS:
            return ""

        stdin, output = self._streams
        terminal = self._in if self.terminal and self._in >= 0 else None
        streams = Streams(stdin=stdin, output=output, terminal=terminal)
        return find_awaited(
            process_tracking.processes_of(self._tag, self.pid), streams, self.output.last_line()
        )

    async def write(self, keys: Sequence[str | bytes]) -> None:
        """Send input. Raises `ShellError`."""
        self._last_output = time.monotonic()
        for key in keys:
            if self._in < 0:
                raise ShellError(
                    "it takes no input: start such a command with mode async or with pty"
                )
            if isinstance(key, bytes):
                await self._send(key)
            elif not self.terminal and key == "ctrl-c":
                process_tracking.send(-self.pid, signal.SIGINT)
            elif not self.terminal and key == "ctrl-d":
                self._close_input()
            else:
                await self._send(b"\r" if key == "enter" and self.terminal else KEYS[key])

    async def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        deadline = time.monotonic() + 5
        while rest:
            try:
                rest = rest[os.write(self._in, rest) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ShellError("it does not read its input") from None
                await asyncio.sleep(0.01)
            except OSError:
                raise ShellError("it has closed its input") from None

    async def kill(self) -> None:
        """End the command and its descendants, after a moment to clean up."""
        if self.finished.is_set():
            return
        family = process_tracking.family_of(self._tag, self.pid)
        process_tracking.send(-self.pid, signal.SIGTERM)
        process_tracking.send(-self.pid, signal.SIGCONT)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self.finished.wait()
        except TimeoutError:
            pass
        await process_tracking.end(self._tag, self.pid, family)
        try:
            async with asyncio.timeout(1):
                await self.finished.wait()
        except TimeoutError:
            # It cannot be killed: stuck in the kernel, or another user's. It is reported as killed.
            self._finish(128 + signal.SIGKILL)

    def state(self, limit: int | None) -> CommandState:
        """Return the state and new output; without a limit, the output stays unread."""
        output, size, saved = (b"", 0, None) if limit is None else self.output.take(limit)
        return CommandState(
            shell_id=self.id,
            output=output,
            size=size,
            exit_code=self.exit_code,
            saved_to=saved,
            terminal=self.terminal,
            no_terminal=self._no_terminal,
            awaits=self.awaits if self.exit_code is None else "",
            let_go=self.let_go and self.exit_code is None,
            flooded=self.flooded,
            lost=self.output.lost,
            left_behind=self.left_behind,
        )

    def info(self) -> ShellInfo:
        mode: Literal["sync", "async", "detached"] = "sync"
        if self.command.background:
            mode = "detached" if self.command.detached else "async"
        return ShellInfo(
            shell_id=self.id,
            pid=self.pid,
            command=self.command.text,
            description=self.command.description,
            mode=mode,
            exit_code=self.exit_code,
            elapsed=time.monotonic() - self._started,
            unread=self.output.has_unread(),
            agent_id=self.command.agent_id,
            foreground=self.foreground,
        )

    def _close_output(self) -> None:
        if self._out >= 0:
            asyncio.get_running_loop().remove_reader(self._out)
            if self._in == self._out:
                self._in = -1
            os.close(self._out)
            self._out = -1

    def _close_input(self) -> None:
        if self._in >= 0 and self._in != self._out:
            os.close(self._in)
        self._in = -1

    def _close_pidfd(self) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def abandon(self) -> None:
        """Close our side; a detached command keeps running."""
        self._close()

    def _close(self) -> None:
        self._close_input()
        self._close_output()
        self._close_pidfd()
        self.output.close()


def pipe_link(fd: int) -> str:
    """Return the link that /proc shows for this pipe."""
    return f"pipe:[{os.fstat(fd).st_ino}]"
