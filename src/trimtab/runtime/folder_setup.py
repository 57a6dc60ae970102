"""Prepares the folder a session works in: worktree, folder trust, uncommitted changes."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import Checkout, find_checkout, plain_checkout
from trimtab.config.paths import Home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.ids import new_id
from trimtab.contracts.options import Client, SessionOptions
from trimtab.policy.folder_trust import FolderTrust, judge_folder
from trimtab.policy.git_programs import find_git_programs
from trimtab.session.store import SessionStore

if TYPE_CHECKING:
    from trimtab.checkout.worktrees import Worktree


class PreparedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to work in: its checkout, its trust, and the options adjusted to it."""

    options: SessionOptions
    checkout: Checkout
    trust: FolderTrust


class FolderSetup:
    """Prepares folders before a session is created in them.

    The worktree comes first, since trust is decided for the folder the session ends up in. Git
    starts the programs of a repository's own settings only if the repository is trusted.
    """

    def __init__(self, home: Home, env: Mapping[str, str], store: SessionStore) -> None:
        self._home = home
        self._env = env
        self._store = store

    async def set_up(
        self, options: SessionOptions, client: Client, resumed: str | None = None
    ) -> PreparedFolder:
        """Prepare a folder for a new session, or for the one with the id `resumed`.

        Raises `UsageError`.
        """
        worktree = None
        if options.isolation is not None:
            options, worktree = await self._isolate(options, client, resumed)
        prepared = await self.inspect(options, client)
        checkout = msgspec.structs.replace(prepared.checkout, worktree=worktree)
        return msgspec.structs.replace(prepared, checkout=checkout)

    async def inspect(
        self, options: SessionOptions, client: Client, *, remembers: bool = True
    ) -> PreparedFolder:
        """Find the checkout and decide on trust, without creating a worktree."""
        trust = await judge_folder(
            self._home,
            options.cwd,
            self._env,
            trusted=options.trust_folder or self._env.get("COPILOT_ALLOW_ALL") == "true",
            ask=client.ask_trust,
            remembers=remembers,
        )
        find = find_checkout if options.reads_git else plain_checkout
        checkout = find(options.cwd, options.permissions.add_dirs)
        checkout = msgspec.structs.replace(checkout, trusted=trust.trusted)
        return PreparedFolder(options=options, checkout=checkout, trust=trust)

    async def _isolate(
        self, options: SessionOptions, client: Client, resumed: str | None
    ) -> tuple[SessionOptions, "Worktree | None"]:
        isolation = options.isolation
        assert isolation is not None
        if not isolation.new:
            before = self._store.folder(resumed).read_metadata().get("cwd") if resumed else None
            return reenter_worktree(options, str(before or ""))
        options = await self._check_git_programs(options, client)
        from trimtab.checkout.session_worktrees import Worktrees

        session = resumed or options.session_id or new_id()
        worktrees = Worktrees(self._env, options.cwd)
        worktree = await asyncio.to_thread(worktrees.enter, session, isolation)
        cwd = map_into_worktree(options.cwd, worktree)
        return msgspec.structs.replace(options, cwd=cwd, session_id=session), worktree

    async def _check_git_programs(self, options: SessionOptions, client: Client) -> SessionOptions:
        """Require trust if a checkout would start programs named in the repository's settings."""
        setting = find_git_programs(options.cwd)
        if not setting:
            return options
        trust = (await self.inspect(options, client)).trust
        if not trust.trusted:
            raise UsageError(
                f"No worktree was created: {trust.root} is not trusted, and its git settings would "
                f"start a program ({setting}); start with --trust-folder if you trust it."
            )
        return msgspec.structs.replace(options, trust_folder=options.trust_folder or trust.for_now)


def find_directory(cwd: str, path: str) -> str:
    """Return the absolute path of a directory. Raises `UsageError` if it does not exist."""
    found = os.path.abspath(os.path.join(cwd, path))
    if not os.path.isdir(found):
        raise UsageError(f"no such directory: {found}; name an existing one.")
    return found


def map_into_worktree(cwd: str, worktree: "Worktree") -> str:
    """Return the path in a worktree of a folder of the checkout, or its top if that is missing."""
    inside = os.path.relpath(os.path.realpath(cwd), worktree.repository)
    found = os.path.normpath(os.path.join(worktree.path, inside))
    return worktree.path if inside.startswith("..") or not os.path.isdir(found) else found


def reenter_worktree(
    options: SessionOptions, before: str
) -> "tuple[SessionOptions, Worktree | None]":
    """Return to the worktree a resumed session worked in before, if it still exists."""
    if ".worktrees/" not in before:
        return options, None
    from trimtab.checkout.worktrees import read_marker

    worktree = read_marker(before)
    if worktree is None:
        return options, None
    return msgspec.structs.replace(options, cwd=before), worktree
