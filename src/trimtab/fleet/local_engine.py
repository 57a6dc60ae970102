"""Runs workers as headless processes of this program on this machine."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.config.files import open_private, write_new_file
from trimtab.contracts.events.codec import decode
from trimtab.fleet.engine import WorkEnded, WorkOrder
from trimtab.fleet.events import Spent
from trimtab.fleet.store import FleetFolder
from trimtab.session.folder import SessionFolder
from trimtab.session.projections.usage import UsageLedger
from trimtab.session.records import read_records
from trimtab.session.store import SessionStore
from trimtab.workspace import process_tracking

STOP_SECONDS = 3.0
"""Seconds a worker has to end after SIGTERM."""
POLL_SECONDS = 0.05
TAIL_BYTES = 1 << 20
GIT_PLACES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
    *("GIT_PREFIX", "GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)
"""Variables that would lead git to another repository than that of its folder."""


def clean_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for workers and checks."""
    return {name: value for name, value in env.items() if name not in GIT_PLACES}


class LocalEngine:
    """Starts `trimtab -p` in the folder of each worker, and keeps its output in files."""

    def __init__(self, folder: FleetFolder, env: Mapping[str, str], store: SessionStore) -> None:
        self._folder = folder
        self._env = clean_environment(env)
        self._store = store

    async def open(self) -> None:
        process_tracking.guardian.acquire()

    async def aclose(self) -> None:
        await process_tracking.guardian.release()

    def database(self, session: str) -> str:
        return self._store.folder(session).database

    def spent(self, session: str) -> Spent:
        return read_spending(self._store.folder(session))

    async def start(self, order: WorkOrder) -> "LocalWorker":
        prompt = self._folder.job_file(order.job, "prompt")
        write_new_file(prompt, order.prompt.encode("utf-8", "replace"), durable=False)
        output = self._folder.job_file(order.job, "output")
        files = [
            os.open(prompt, os.O_RDONLY | os.O_CLOEXEC),
            open_private(output, os.O_WRONLY | os.O_APPEND),
            open_private(self._folder.job_file(order.job, "errors"), os.O_WRONLY | os.O_APPEND),
        ]
        # -P keeps the modules of the repository in which the worker starts from being imported.
        argv = [sys.executable, "-P", "-m", "trimtab", "--output-format", "json", "--no-ask-user"]
        argv += ["--session-id", order.session, "--name", order.name, "-C", order.folder]
        tag = process_tracking.new_tag()
        try:
            pid = process_tracking.spawn(
                [*argv, *order.flags],
                cwd=order.folder,
                env=self._env,
                streams=(files[0], files[1], files[2]),
                tag=tag,
            )
        finally:
            for fd in files:
                os.close(fd)
        return LocalWorker(pid, tag, output)


class LocalWorker:
    """A process of `trimtab`, and everything that it starts."""

    def __init__(self, pid: int, tag: int | None, output: str) -> None:
        self._pid = pid
        self._tag = tag
        self._output = output
        self._code: int | None = None

    async def ended(self) -> WorkEnded:
        try:
            while self._code is None:
                await self._wait_a_moment()
        finally:
            await asyncio.shield(asyncio.ensure_future(self.stop()))
        return read_end(self._code, self._output)

    async def stop(self) -> None:
        """Ask the process to end, so that it can end its own commands; then kill what is left."""
        if self._code is None:
            process_tracking.send(self._pid, signal.SIGTERM)
        deadline = asyncio.get_running_loop().time() + STOP_SECONDS
        while self._code is None and asyncio.get_running_loop().time() < deadline:
            await self._wait_a_moment()
        await process_tracking.end(self._tag, self._pid)
        self._reap()

    async def _wait_a_moment(self) -> None:
        if not self._reap():
            await asyncio.sleep(POLL_SECONDS)

    def _reap(self) -> bool:
        if self._code is not None:
            return True
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self._pid, 9
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
        return bool(pid)


def read_end(code: int, output: str) -> WorkEnded:
    """Read how a run ended from its last line."""
    result = read_result(output)
    if result is not None:
        error = result.get("error") or {}
        return WorkEnded(exit_code=code, message=str(error.get("message") or ""))
    if code < 0:
        return WorkEnded(exit_code=code, message=f"The worker was killed by signal {-code}.")
    message = f"The worker ended with exit code {code} and gave no result."
    return WorkEnded(exit_code=code or 1, message=message)


def read_result(output: str) -> dict[str, Any] | None:
    """Return the result that a run printed as its last line, if it did."""
    try:
        with open(output, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().splitlines()
        found = msgspec.json.decode(lines[-1]) if lines else None
    except (OSError, msgspec.DecodeError):
        return None
    return found if isinstance(found, dict) and found.get("type") == "result" else None


def read_ledger(*sessions: SessionFolder) -> UsageLedger:
    """Return what sessions have spent together, sub-agents included."""
    ledger = UsageLedger()
    for session in sessions:
        with suppress(OSError):
            for record in read_records(session.events):
                if record.type in ledger.reads:
                    ledger.apply(decode(record.line))
    return ledger


def read_spending(session: SessionFolder) -> Spent:
    """Return the tokens and USD that a session has spent, with estimates of broken calls."""
    ledger = read_ledger(session)
    total, unsettled = ledger.total, ledger.unsettled
    return Spent(
        tokens=(total.input_tokens or 0) + (total.output_tokens or 0) + unsettled[0],
        usd=(total.cost_usd or 0.0) + unsettled[1],
    )
