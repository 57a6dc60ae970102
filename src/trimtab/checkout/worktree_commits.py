"""Commits in a session's git worktree: checkpoints of each turn, and its changes at the end."""

import asyncio
from collections.abc import Awaitable, Callable

from trimtab.checkout.worktrees import Worktree, describe_result, rename_branch
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.changes import Checkpoint, WorktreeUsed
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.session.records import count_turns
from trimtab.session.session import Session
from trimtab.workspace.git import Git, GitError

SUBJECT = 72
MAX_DIFF = 20_000
"""The characters of a diff that the name of a branch is made from."""

NameBranch = Callable[[str, str], Awaitable[str]]
"""Returns the name of a branch for a diff and the words of the person."""


class WorktreeCommits(Processor):
    """Commits the tree of a worktree to `refs/trimtab/<session>/<turn>-start` and `-end`.

    An interrupted turn gets its end when the next turn begins. A prompt that steers ends the turn
    before it, as for undo: what was done so far is committed as the work of the prompt it is.
    A branch that has the id of the session for a name is named by the first changes on it.
    """

    def __init__(self, session: Session, worktree: Worktree, *, commits: bool) -> None:
        self._session = session
        self._git = Git(worktree.path)
        self._worktree = worktree
        self._commits = commits
        self._turn = count_turns(session.log.path)
        self._text = ""
        self._open = False
        self.on_commit: Callable[[], Awaitable[None]] | None = None
        """Called after the files of git were changed here, so that nobody else is blamed."""
        self.name_branch: NameBranch | None = None
        """Names the branch, unless the person has named the worktree; None if nobody does."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source == "user":
            await self.end()
            self._turn += 1
            self._text = prompt.display or prompt.text
            self._open = True
            await self._keep("start")
        return prompt

    async def end(self, *, succeeded: bool = False) -> None:
        """End the turn: make its checkpoint, and commit its changes if configured.

        The branch is named only if the turn succeeded: nobody waits for a model after an abort.
        """
        if not self._open:
            return
        self._open = False
        commit = await self._keep("end")
        if self._commits:
            await self._commit()
        if commit and succeeded and self.name_branch is not None and self._is_unnamed():
            await self._rename(self.name_branch, commit)
        if self.on_commit is not None:
            await self.on_commit()
        message = await asyncio.to_thread(describe_result, self._worktree)
        self._session.emit(SessionInfo(info_type="worktree", message=message))

    def _is_unnamed(self) -> bool:
        name = self._session.id[:8]
        return (self._worktree.name, self._worktree.branch) == (name, f"trimtab/{name}")

    async def _rename(self, name_branch: NameBranch, commit: str) -> None:
        """Name the branch by what was changed up to a commit, if anything was."""
        begin = self._worktree.commit
        try:
            diff = await asyncio.to_thread(self._git.run, "diff", "--no-ext-diff", begin, commit)
            if diff:
                name = await name_branch(diff[:MAX_DIFF], self._text)
                self._worktree = await asyncio.to_thread(rename_branch, self._worktree, name)
        except (GitError, TrimtabError) as error:
            self._warn(f"The branch was not named ({error}); it stays {self._worktree.branch}.")
            return
        if not self._is_unnamed():
            self._session.emit(describe_worktree(self._worktree, created=False))

    async def _keep(self, at: str) -> str | None:
        ref = f"refs/trimtab/{self._session.id}/{self._turn}-{at}"
        message = f"{at} of turn {self._turn} of session {self._session.id}"
        try:
            commit = await asyncio.to_thread(self._git.keep_tree, ref, message)
        except GitError as error:
            self._warn(f"No checkpoint of this turn was made ({error}); undo works without it.")
            return None
        self._session.emit(Checkpoint(ref=ref, commit=commit, turn=self._turn, at=at))
        return commit

    async def _commit(self) -> None:
        subject = " ".join(self._text.split())[:SUBJECT] or f"Turn {self._turn}"
        try:
            await asyncio.to_thread(self._git.commit_all, subject)
        except GitError as error:
            self._warn(
                f"The changes of this turn were not committed ({error}); commit them yourself."
            )

    def _warn(self, message: str) -> None:
        self._session.emit(SessionWarning(warning_type="worktree", message=message))


def describe_worktree(worktree: Worktree, *, created: bool) -> WorktreeUsed:
    """Return the event about the folder and branch of a worktree."""
    return WorktreeUsed(
        path=worktree.path,
        branch=worktree.branch,
        repository=worktree.repository,
        commit=worktree.commit,
        created=created,
    )


def announce_worktree(session: Session, worktree: Worktree) -> None:
    """Record that the session works in a worktree, and which changes are not in it."""
    session.emit(describe_worktree(worktree, created=worktree.created))
    if worktree.uncommitted:
        changes = count(worktree.uncommitted, "uncommitted change")
        message = (
            f"The worktree starts without {changes} of {worktree.repository}; commit first what "
            "is needed there, or copy all with --worktree-changes=copy."
        )
        session.emit(SessionInfo(info_type="worktree", message=message))
    if worktree.copied:
        changes = count(worktree.copied, "uncommitted change")
        message = f"The worktree has a copy of {changes}."
        session.emit(SessionInfo(info_type="worktree", message=message))
