"""Moves the person's branch to the merged work, and takes that and everything else back."""

import os
from collections.abc import Mapping

from trimtab.contracts.errors import UsageError
from trimtab.fleet.events import Landing, Started
from trimtab.fleet.repository import FleetRepository, find_identity
from trimtab.fleet.state import FleetState
from trimtab.workspace.git import Git, GitError


def plan_landing(state: FleetState) -> Landing | str:
    """Return how the person's branch is to move, or why it cannot."""
    started = state.started
    assert started is not None
    git = Git(started.checkout)
    branch = git.attempt("symbolic-ref", "-q", "HEAD")
    if started.target is None or branch is None:
        return "HEAD is detached; switch to a branch and run `git merge` yourself"
    name = started.target.removeprefix("refs/heads/")
    if branch != started.target:
        return f"{started.checkout} is no longer on {name}; switch to it and run `git merge`"
    if git.run("status", "--porcelain", "--untracked-files=no"):
        return f"{started.checkout} has uncommitted changes; commit them and run `git merge`"
    before = git.run("rev-parse", "HEAD")
    if git.attempt("merge-base", "--is-ancestor", before, state.tip) is None:
        return f"{name} has commits that the fleet does not have; run `git merge`"
    return Landing(checkout=started.checkout, branch=started.target, before=before, after=state.tip)


def land(landing: Landing) -> str:
    """Fast-forward the person's branch; return why git refused, if it did."""
    try:
        Git(landing.checkout).run("merge", "-q", "--ff-only", landing.after)
    except GitError as error:
        return f"git refused ({error}); run `git merge` yourself"
    return ""


def undo_fleet(state: FleetState, env: Mapping[str, str]) -> list[str]:
    """Take back the landing, the branches and the worktrees; return what was kept, and why.

    Commits and changes of the person stay: a landing below their commits is reversed by a commit
    on top, and a branch that they moved is left. Raises `UsageError` if that would lose anything.
    """
    started = state.started
    assert started is not None
    if state.landing is not None:
        take_back_landing(state.landing, env)
    repository = FleetRepository(started, env)
    for name in state.todos:
        if os.path.isdir(folder := repository.folder(name)):
            # Work that no branch holds stays reachable as well.
            Git(folder).keep_tree(f"refs/trimtab/fleet/{started.id}/left/{name}", "left by undo")
    repository.remove_all(force=True)
    expected = {repository.branch(name): each.commit for name, each in state.todos.items()}
    expected[started.branch] = state.tip
    kept = []
    for branch, commit in expected.items():
        if reason := _remove_branch(repository, started, branch, commit):
            kept.append(f"{branch}: {reason}")
    return kept


def _remove_branch(
    repository: FleetRepository, started: Started, branch: str, commit: str | None
) -> str:
    found = repository.find(branch)
    if found is None:
        return ""
    if commit is not None and found != commit:
        return "it has commits that the fleet did not make"
    git = Git(started.repository)
    holder = git.attempt("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{branch}")
    if holder:
        return f"it is checked out in {holder}"
    # The commits stay reachable, so that nothing is lost to a later `git gc`.
    name = branch.removeprefix(f"trimtab/fleet/{started.id}/")
    git.run("update-ref", f"refs/trimtab/fleet/{started.id}/{name}", found)
    git.run("update-ref", "-d", f"refs/heads/{branch}", found)
    return ""


def take_back_landing(landing: Landing, env: Mapping[str, str]) -> None:
    """Move the person's branch back around their own commits and changes. Raises `UsageError`."""
    git = Git(landing.checkout)
    branch = landing.branch.removeprefix("refs/heads/")
    if not os.path.isdir(landing.checkout):
        raise UsageError(f"no such directory: {landing.checkout}; the landing was not taken back.")
    if git.attempt("symbolic-ref", "-q", "HEAD") != landing.branch:
        raise UsageError(
            f"{landing.checkout} is not on {branch}; switch to it, then undo the fleet again."
        )
    head = git.run("rev-parse", "HEAD")
    if git.attempt("merge-base", "--is-ancestor", landing.after, head) is None:
        return  # the person took it back already
    try:
        if head == landing.after:
            git.run("reset", "-q", "--keep", landing.before)
        else:
            _reverse(git, landing, head, find_identity(landing.checkout, env))
    except GitError as error:
        raise UsageError(
            f"The landing on {branch} cannot be taken back without touching your own changes "
            f"({error}); commit or stash them, or revert {landing.before[:12]}..."
            f"{landing.after[:12]} yourself."
        ) from None


def _reverse(git: Git, landing: Landing, head: str, identity: Mapping[str, str]) -> None:
    """Commit the reverse of a landing on top of later commits. Raises `GitError`."""
    message = f"Take back the landing of {landing.before[:12]}...{landing.after[:12]}"
    tree = f"{landing.before}^{{tree}}"
    reverse = git.run("commit-tree", tree, "-p", landing.after, "-m", message, env=identity)
    merged = git.run("merge-tree", "--write-tree", head, reverse).split("\n")[0]
    commit = git.run("commit-tree", merged, "-p", head, "-m", message, env=identity)
    git.run("merge", "-q", "--ff-only", commit)
