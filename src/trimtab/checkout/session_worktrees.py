"""Creates, lists and removes the worktrees of sessions, for the command line."""

from collections.abc import Mapping

import msgspec

from trimtab.checkout import worktrees
from trimtab.checkout.worktrees import Worktree, list_worktrees, reasons_to_keep
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import Isolation
from trimtab.session.lease import Owner, find_owner
from trimtab.session.store import SessionStore

__all__ = ["Worktree", "Worktrees", "reasons_to_keep"]


class Worktrees:
    """The worktrees that were created for sessions, in the repository of a folder."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self._store = SessionStore(find_home(env))
        self._cwd = cwd

    def enter(self, session: str, isolation: Isolation) -> Worktree:
        """Return the worktree of a session; create it if it does not exist."""
        worktree = worktrees.make_worktree(self._cwd, isolation.name or session[:8], session)
        if worktree.created:
            return worktrees.copy_uncommitted(worktree) if isolation.changes == "copy" else worktree
        if (owner := self.owner(worktree)) is not None and worktree.session != session:
            raise UsageError(
                f"{worktree.name} is in use by session {worktree.session} (process "
                f"{owner.pid}); choose another name."
            )
        worktree = msgspec.structs.replace(worktree, session=session)
        worktrees.write_marker(worktree)
        return worktree

    def list(self) -> list[Worktree]:
        return list_worktrees(self._cwd)

    def owner(self, worktree: Worktree) -> Owner | None:
        """Return the process that works in it now, if any."""
        return find_owner(self._store.folder(worktree.session).path)

    def remove(self, name: str) -> Worktree:
        """Remove a worktree of a session. Raises `UsageError` if anything would be lost."""
        found = next((tree for tree in self.list() if name in (tree.name, tree.path)), None)
        if found is None:
            raise UsageError(
                f"{name!r} is not a worktree created by trimtab; see: trimtab worktrees list."
            )
        if (owner := self.owner(found)) is not None:
            raise UsageError(
                f"{found.name} was not removed: session {found.session} works in it (process "
                f"{owner.pid}); end it, then try again."
            )
        worktrees.remove_worktree(found)
        return found
