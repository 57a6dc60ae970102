"""Commits in a session's git worktree: checkpoints of each turn, and its changes at the end."""

import asyncio

from trimtab.checkout.worktrees import Worktree, describe_result
from trimtab.contracts.events.changes import Checkpoint, WorktreeUsed
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.session.records import count_turns
from trimtab.session.session import Session
from trimtab.workspace.git import Git, GitError

SUBJECT = 72


class WorktreeCommits(Processor):
    """Commits the tree of a worktree to `refs/trimtab/<session>/<turn>-start` and `-end`.

    An interrupted turn gets its end when the next turn begins. A prompt that steers ends the turn
    before it, as for undo: what was done so far is committed as the work of the prompt it is.
    """

    def __init__(self, session: Session, worktree: Worktree, *, commits: bool) -> None:
        self._session = session
        self._git = Git(worktree.path)
        self._worktree = worktree
        self._commits = commits
        self._turn = count_turns(session.log.path)
        self._text = ""
        self._open = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source == "user":
            await self.end()
            self._turn += 1
            self._text = prompt.display or prompt.text
            self._open = True
            await self._keep("start")
        return prompt

    async def end(self) -> None:
        """End the turn: make its checkpoint, and commit its changes if configured."""
        if not self._open:
            return
        self._open = False
        await self._keep("end")
        if self._commits:
            await self._commit()
        message = await asyncio.to_thread(describe_result, self._worktree)
        self._session.emit(SessionInfo(info_type="worktree", message=message))

    async def _keep(self, at: str) -> None:
        ref = f"refs/trimtab/{self._session.id}/{self._turn}-{at}"
        message = f"{at} of turn {self._turn} of session {self._session.id}"
        try:
            commit = await asyncio.to_thread(self._git.keep_tree, ref, message)
        except GitError as error:
            self._warn(f"No checkpoint of this turn was made ({error}); undo works without it.")
            return
        self._session.emit(Checkpoint(ref=ref, commit=commit, turn=self._turn, at=at))

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


def announce_worktree(session: Session, worktree: Worktree) -> None:
    """Record that the session works in a worktree, and which changes are not in it."""
    session.emit(
        WorktreeUsed(
            path=worktree.path,
            branch=worktree.branch,
            repository=worktree.repository,
            commit=worktree.commit,
            created=worktree.created,
        )
    )
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
