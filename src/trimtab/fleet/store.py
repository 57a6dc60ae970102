"""The folders of fleets: the log of each, its lease, and the output of its workers."""

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from trimtab.config.files import cannot, make_private_dir, open_private, sync_dir, write_all
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError, SessionInUse, StorageError, UsageError
from trimtab.contracts.ids import timestamp
from trimtab.contracts.json_text import encode_json
from trimtab.fleet.events import AnyEvent, decode_event
from trimtab.fleet.state import FleetState, fold
from trimtab.session.lease import Lease, Owner, find_owner, take_lease

SHORTEST_PREFIX = 4


class FleetFolder(msgspec.Struct, frozen=True):
    """The files of a fleet below `fleets/<id>/`."""

    id: str
    path: str

    @property
    def log(self) -> str:
        return os.path.join(self.path, "events.jsonl")

    @property
    def stop_file(self) -> str:
        """Its existence asks the coordinator to stop."""
        return os.path.join(self.path, "stop")

    def job_file(self, job: int, kind: str) -> str:
        """Return the path of a worker's `prompt`, `output` or `errors`."""
        return os.path.join(self.path, f"worker-{job}.{kind}")

    def owner(self) -> Owner | None:
        """Return the process that coordinates the fleet now, if any."""
        return find_owner(self.path)

    def read(self) -> list[AnyEvent]:
        """Return the events of the log; a line without its end never happened."""
        return list(read_log(self.log))

    def state(self) -> FleetState:
        return fold(self.read())


def read_log(path: str) -> Iterator[AnyEvent]:
    """Yield the events of a log. Raises `StorageError` for a line that is damaged."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise cannot("read", path, error) from error
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        try:
            yield decode_event(line)
        except ValueError as error:
            raise StorageError(
                f"Line {number} of {path} is damaged ({error}); the branches of the fleet still "
                "hold its work: see `git branch --list 'trimtab/fleet/*'`."
            ) from None


class FleetLog:
    """The log of a fleet, open for its only writer. Each event is on the disk when it returns."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        try:
            self._lease: Lease = take_lease(folder.path)
        except SessionInUse:
            owner = folder.owner()
            who = f"process {owner.pid}" if owner else "another process"
            raise ConfigurationError(
                f"The fleet {folder.id} is run by {who}; follow it with `trimtab fleet tail "
                f"{folder.id} --follow` or stop it with `trimtab fleet stop {folder.id}`."
            ) from None
        try:
            self._fd = open_private(folder.log, os.O_RDWR | os.O_APPEND)
            self._cut_torn_line()
            with suppress(FileNotFoundError):
                os.unlink(folder.stop_file)
            sync_dir(folder.path)
        except OSError as error:
            self._lease.release()
            raise cannot("open", folder.log, error) from error

    def append(self, event: AnyEvent) -> AnyEvent:
        """Write an event, durably; return it with its time. Raises `StorageError`."""
        stamped = msgspec.structs.replace(event, timestamp=timestamp())
        try:
            write_all(self._fd, encode_json(stamped) + b"\n")
            os.fsync(self._fd)
        except OSError as error:
            raise cannot("write", self.folder.log, error) from error
        return stamped

    def close(self) -> None:
        os.close(self._fd)
        with suppress(FileNotFoundError):
            os.unlink(self.folder.stop_file)
        self._lease.release()

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._fd).st_size
        data = os.pread(self._fd, size, 0)
        end = data.rfind(b"\n") + 1
        if end < size:
            os.ftruncate(self._fd, end)


class FleetStore:
    """All fleets of a home."""

    def __init__(self, home: Home) -> None:
        self._root = os.path.join(home.state, "fleets")

    def create(self, fleet_id: str) -> FleetFolder:
        folder = FleetFolder(fleet_id, os.path.join(self._root, fleet_id))
        make_private_dir(folder.path)
        return folder

    def list(self) -> list[FleetFolder]:
        """Return the fleets, the newest first."""
        try:
            names = os.listdir(self._root)
        except FileNotFoundError:
            return []
        folders = [FleetFolder(name, os.path.join(self._root, name)) for name in names]
        existing = [folder for folder in folders if os.path.isfile(folder.log)]
        return sorted(existing, key=lambda folder: folder.id, reverse=True)

    def find(self, wanted: str) -> FleetFolder:
        """Return the fleet with an id or the beginning of one. Raises `UsageError`."""
        folders = self.list()
        found = [folder for folder in folders if folder.id == wanted]
        if not found and len(wanted) >= SHORTEST_PREFIX:
            found = [folder for folder in folders if folder.id.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"Several fleets begin with {wanted!r}; write more of the id.")
        raise UsageError(f"There is no fleet {wanted!r}; list them with `trimtab fleet list`.")
