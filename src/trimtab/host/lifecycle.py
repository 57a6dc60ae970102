"""Keeps the metadata of a live session: at the start and end of each request."""

import asyncio
from typing import TYPE_CHECKING

from trimtab.checkout.checkout import Checkout, find_checkout
from trimtab.contracts.events.changes import WorktreeUsed
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.session import SessionIdle
from trimtab.contracts.events.user import UserMessage
from trimtab.host.metadata import (
    ModeInstructions,
    RepositoryProperties,
    RequestDetails,
    SessionMetadata,
    WorktreeProperties,
    read_metadata,
    write_metadata,
)
from trimtab.host.request_fold import RequestFold

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


class RequestLifecycle:
    """Follows a session from its first prompt on, until it is closed.

    Git's work at the start and end of a request (checkpoint, commit) is done by the session's
    processors before the events that are handled here: what they made is read from those events.
    """

    def __init__(self, live: "LiveSession", before: Checkout | None = None) -> None:
        """`before` is the repository as it was before the first tool call."""
        self._live = live
        self._before = before
        self._metadata = read_metadata(live.folder) or SessionMetadata(session_id=live.id)
        self._fold = RequestFold(self._metadata.requests)
        self._warned = False
        self._describe_place()

    def on_event(self, event: Event) -> None:
        if isinstance(event.data, UserMessage) and event.agent_id is None:
            self._read_repository()
            self._note_commit()
            self._fold.apply(event)
            if (request := self._fold.requests.get(self._fold.current)) is not None:
                self._begin(request)
            self._write()
            return
        self._fold.apply(event)
        if isinstance(event.data, WorktreeUsed):
            used = event.data
            self._metadata.worktree = WorktreeProperties(
                used.path, used.branch, used.repository, used.commit
            )
        if isinstance(event.data, SessionIdle) and event.agent_id is None:
            self._read_repository()
            self._note_commit()
            self._write()

    def _begin(self, request: RequestDetails) -> None:
        live = self._live
        request.mode, request.model = live.mode, live.model
        if (repository := self._metadata.repository) is not None:
            request.branch, request.commit_before = repository.branch, repository.commit
        custom = live.controls.setup.customizations
        agent = custom.agent if custom is not None else None
        if agent is not None:
            request.mode_instructions = ModeInstructions(agent.name, agent.prompt)

    def _note_commit(self) -> None:
        """Note the commit that the requests up to now ended with."""
        repository = self._metadata.repository
        for request in self._fold.requests.values():
            if repository is not None and request.started and not request.commit_after:
                request.commit_after = repository.commit

    def _describe_place(self) -> None:
        setup, options = self._live.controls.setup, self._live.controls.options
        self._metadata.cwd = options.cwd
        self._metadata.folders = [folder.path for folder in setup.checkout.folders]
        if (worktree := setup.checkout.worktree) is not None:
            self._metadata.worktree = WorktreeProperties(
                worktree.path, worktree.branch, worktree.repository, worktree.commit
            )

    def _read_repository(self) -> None:
        if not self._live.controls.options.reads_git:
            return
        found = self._before or find_checkout(self._live.controls.options.cwd)
        self._before = None
        if found.git_root is not None:
            self._metadata.repository = RepositoryProperties(
                found.git_root, found.branch or "", found.head or ""
            )

    def _write(self) -> None:
        try:
            write_metadata(self._live.folder, self._metadata)
        except OSError as error:
            if not self._warned:
                self._warned = True
                message = f"The details of requests cannot be stored ({error.strerror or error})."
                loop = asyncio.get_running_loop()
                loop.call_soon(self._live.warn, "host_metadata", message)
