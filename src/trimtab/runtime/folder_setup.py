"""Makes the folder of a session ready: its worktree, its trust, what others left uncommitted."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import Checkout, find_checkout
from trimtab.config.paths import Home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.ids import new_id
from trimtab.contracts.options import Client, SessionOptions
from trimtab.policy.folder_trust import FolderTrust, judge_folder
from trimtab.session.store import SessionStore

if TYPE_CHECKING:
    from trimtab.checkout.worktrees import Worktree


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to work in, what is known about it, and the choices made for it."""

    options: SessionOptions
    around: Checkout
    trust: FolderTrust


class FolderSetup:
    """Says where a session works, before anything of it exists.

    First the worktree, for which git starts programs only in a folder that is trusted, and the
    person's uncommitted changes; then trust of what will be loaded; then the folders that are
    tracked.
    """

    def __init__(self, home: Home, env: Mapping[str, str], store: SessionStore) -> None:
        self._home = home
        self._env = env
        self._store = store

    async def set_up(
        self, options: SessionOptions, client: Client, resumed: str | None = None
    ) -> Ready:
        """Make a folder ready for a session, or for one that goes on. Raises `UsageError`."""
        worktree = None
        if options.isolation is not None:
            options, worktree = await self._isolate(options, client, resumed)
        ready = await self.judge(options, client)
        around = msgspec.structs.replace(ready.around, worktree=worktree)
        return msgspec.structs.replace(ready, around=around)

    async def judge(
        self, options: SessionOptions, client: Client, *, remembers: bool = True
    ) -> Ready:
        """What a session would find here; nothing is made."""
        trust = await judge_folder(
            self._home,
            options.cwd,
            self._env,
            trusted=options.trust_folder or self._env.get("COPILOT_ALLOW_ALL") == "true",
            ask=client.ask_trust,
            remembers=remembers,
        )
        around = find_checkout(options.cwd, options.permissions.add_dirs)
        around = msgspec.structs.replace(around, trusted=trust.trusted)
        return Ready(options=options, around=around, trust=trust)

    async def _isolate(
        self, options: SessionOptions, client: Client, resumed: str | None
    ) -> tuple[SessionOptions, "Worktree | None"]:
        wanted = options.isolation
        assert wanted is not None
        if not wanted.new:
            before = self._store.folder(resumed).read_metadata().get("cwd") if resumed else None
            return enter_again(options, str(before or ""))
        options = await self._admit_programs(options, client)
        from trimtab.checkout.session_worktrees import Worktrees

        session = resumed or options.session_id or new_id()
        worktrees = Worktrees(self._env, options.cwd)
        worktree = await asyncio.to_thread(worktrees.enter, session, wanted)
        cwd = same_folder(options.cwd, worktree)
        return msgspec.structs.replace(options, cwd=cwd, session_id=session), worktree

    async def _admit_programs(self, options: SessionOptions, client: Client) -> SessionOptions:
        """Checking files out starts programs that the repository's own settings name."""
        from trimtab.policy.git_programs import find_git_programs

        setting = find_git_programs(options.cwd)
        if not setting:
            return options
        trust = (await self.judge(options, client)).trust
        if not trust.trusted:
            raise UsageError(
                f"No worktree was made: {trust.root} is not trusted, and its git settings would "
                f"start a program ({setting}); start with --trust-folder if you know it."
            )
        return msgspec.structs.replace(options, trust_folder=options.trust_folder or trust.for_now)


def same_folder(cwd: str, worktree: "Worktree") -> str:
    """The folder in a worktree that a folder of the checkout is, or the top if it is not there."""
    inside = os.path.relpath(os.path.realpath(cwd), worktree.repository)
    found = os.path.normpath(os.path.join(worktree.path, inside))
    return worktree.path if inside.startswith("..") or not os.path.isdir(found) else found


def enter_again(options: SessionOptions, before: str) -> "tuple[SessionOptions, Worktree | None]":
    """A session goes on where it was, if it had a worktree and that is still there."""
    if ".worktrees/" not in before:
        return options, None
    from trimtab.checkout.worktrees import read_marker

    worktree = read_marker(before)
    if worktree is None:
        return options, None
    return msgspec.structs.replace(options, cwd=before), worktree
