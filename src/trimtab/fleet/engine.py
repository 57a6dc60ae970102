"""The port behind which the workers of a fleet run, wherever that is."""

from typing import Protocol

import msgspec

from trimtab.fleet.events import Spent


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an agent: `prompt` in `folder`, with `flags` of `trimtab`, as session `session`."""

    job: int
    session: str
    name: str
    folder: str
    prompt: str
    flags: tuple[str, ...] = ()


class WorkEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run. `exit_code` is negative for a signal; `message` says why it failed."""

    exit_code: int
    message: str = ""


class Worker(Protocol):
    """A run that was started."""

    async def ended(self) -> WorkEnded:
        """Wait for the end of the run."""
        ...

    async def stop(self) -> None:
        """End the run and everything that it started. May be called at any time."""
        ...


class Engine(Protocol):
    """Starts workers. No worker outlives the engine, not even if its process is killed."""

    async def open(self) -> None: ...

    async def start(self, order: WorkOrder) -> Worker:
        """Start a run. Raises `OSError` with a sentence if that is not possible."""
        ...

    def database(self, session: str) -> str:
        """Return the path of the database in which a session keeps its todos."""
        ...

    def spent(self, session: str) -> Spent:
        """Return what a session has spent so far, however it ended."""
        ...

    async def aclose(self) -> None: ...
