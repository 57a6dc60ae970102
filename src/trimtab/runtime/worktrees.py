"""The worktrees of sessions, for the command line: enter one, list them, remove one."""

import os
from collections.abc import Mapping

import msgspec

from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.ids import new_id
from trimtab.runtime.options import SessionOptions
from trimtab.session.lease import Owner, find_owner
from trimtab.session.store import SessionStore
from trimtab.workspace import worktrees
from trimtab.workspace.worktrees import Worktree, list_worktrees, reasons_to_keep

__all__ = ["Worktree", "Worktrees", "reasons_to_keep"]


class Worktrees:
    """Those of the repository around a folder that were made for sessions."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self._store = SessionStore(find_home(env))
        self._cwd = cwd

    def enter(
        self, options: SessionOptions, name: str | None, resumed: str | None = None
    ) -> SessionOptions:
        """The options of a session that works in a worktree of its own."""
        session = resumed or options.session_id or new_id()
        worktree = worktrees.make_worktree(options.cwd, name or session[:8], session)
        if not worktree.created:
            if (owner := self.owner(worktree)) is not None and worktree.session != session:
                raise UsageError(
                    f"{worktree.name} is in use by session {worktree.session} (process "
                    f"{owner.pid}); choose another name."
                )
            worktree = msgspec.structs.replace(worktree, session=session)
            worktrees.write_marker(worktree)
        inside = os.path.relpath(os.path.realpath(options.cwd), worktree.repository)
        cwd = os.path.normpath(os.path.join(worktree.path, inside))
        if inside.startswith("..") or not os.path.isdir(cwd):
            cwd = worktree.path
        return msgspec.structs.replace(options, cwd=cwd, session_id=session, worktree=worktree)

    def enter_again(self, options: SessionOptions, before: str) -> SessionOptions:
        """A resumed session goes on where it was, if its worktree is still there."""
        worktree = worktrees.read_marker(before)
        if worktree is None:
            return options
        return msgspec.structs.replace(options, cwd=before, worktree=worktree)

    def list(self) -> list[Worktree]:
        return list_worktrees(self._cwd)

    def owner(self, worktree: Worktree) -> Owner | None:
        """The process that works in it now."""
        return find_owner(self._store.folder(worktree.session).path)

    def remove(self, name: str) -> Worktree:
        """Remove one that was made here. Raises `UsageError` if anything would be lost."""
        found = next((one for one in self.list() if name in (one.name, one.path)), None)
        if found is None:
            raise UsageError(
                f"{name!r} is no worktree made by trimtab; see: trimtab worktrees list."
            )
        if (owner := self.owner(found)) is not None:
            raise UsageError(
                f"{found.name} stays: session {found.session} works in it (process {owner.pid}); "
                "end it, then try again."
            )
        worktrees.remove_worktree(found)
        return found
