"""Creates and finds git worktrees for sessions, and removes them if nothing would be lost."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.json_text import decode_json, encode_json
from trimtab.contracts.text import count
from trimtab.workspace.git import Git, GitError

MARKER = "trimtab.json"
"""A file in the administrative folder of each worktree that we created."""
INCLUDE = ".worktreeinclude"
COPIED_FILES = 2000
COPIED_BYTES = 200 * 1024 * 1024


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree of a session. `commit` is the commit its branch began at."""

    name: str
    path: str
    branch: str
    repository: str
    commit: str
    session: str
    created: bool = False
    uncommitted: int = 0
    """The number of uncommitted changes of the person's checkout that are not in it."""
    copied: int = 0
    """The number of uncommitted changes that were copied to it."""


def make_worktree(cwd: str, name: str, session: str) -> Worktree:
    """Return the worktree of this name; create it from HEAD if needed. Raises `UsageError`."""
    repository = find_repository(cwd)
    git = Git(repository)
    check_name(git, name)
    path = os.path.join(f"{repository}.worktrees", name)
    if os.path.lexists(path):
        found = read_marker(path)
        if found is None:
            raise UsageError(f"{path} exists and was not created by trimtab; choose another name.")
        return found
    commit = git.attempt("rev-parse", "--verify", "-q", "HEAD")
    if commit is None:
        raise UsageError(f"{repository} has no commit to start a worktree from; commit first.")
    branch = f"trimtab/{name}"
    changed = count_changed(git)
    try:
        git.run("worktree", "add", "-q", "-b", branch, path, commit)
    except GitError as error:
        raise UsageError(
            f"The worktree cannot be created ({error}); choose another name."
        ) from error
    made = Worktree(
        name=name,
        path=path,
        branch=branch,
        repository=repository,
        commit=commit,
        session=session,
        created=True,
        uncommitted=changed,
    )
    write_marker(made)
    copy_included(repository, path)
    return made


def copy_uncommitted(worktree: Worktree) -> Worktree:
    """Copy the person's uncommitted changes to a new worktree, still uncommitted.

    The person's checkout is only read. Raises `UsageError`.
    """
    if not worktree.uncommitted:
        return worktree
    ref = f"refs/trimtab/{worktree.session}/uncommitted"
    try:
        kept = Git(worktree.repository).keep_tree(ref, "uncommitted changes at the start")
        git = Git(worktree.path)
        git.run("read-tree", "--reset", "-u", kept)
        git.run("read-tree", "--reset", worktree.commit)
    except GitError as error:
        with suppress(GitError):
            discard(worktree)
        raise UsageError(
            f"Uncommitted changes cannot be copied to {worktree.path} ({error}); commit them, or "
            "leave --worktree-changes out."
        ) from error
    copied = count_changed(Git(worktree.repository), "--ignore-submodules=dirty")
    left = worktree.uncommitted - copied  # changes in a submodule are not copied
    return msgspec.structs.replace(worktree, uncommitted=max(0, left), copied=copied)


def count_changed(git: Git, *options: str) -> int:
    """Return the number of uncommitted changes in a checkout."""
    return len((git.attempt("status", "--porcelain", *options) or "").splitlines())


def find_repository(cwd: str) -> str:
    """Return the main checkout of a folder's repository, also from inside another worktree."""
    git = Git(cwd)
    common = git.attempt("rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is None:
        raise UsageError(
            f"{cwd} is not in a git repository; run git init, or leave --worktree out."
        )
    if os.path.basename(common) != ".git":
        raise UsageError(f"{common} is a bare repository; work in a checkout of it.")
    return os.path.dirname(os.path.realpath(common))


def check_name(git: Git, name: str) -> None:
    valid = git.attempt("check-ref-format", "--branch", f"trimtab/{name}")
    if valid is None or "/" in name or name.startswith((".", "-")):
        raise UsageError(
            f"{name!r} is not a valid name for a worktree; use letters, digits, '-' and '_'."
        )


def write_marker(worktree: Worktree) -> None:
    folder = Git(worktree.path).run("rev-parse", "--absolute-git-dir")
    with open(os.path.join(folder, MARKER), "wb") as file:
        file.write(encode_json(msgspec.structs.replace(worktree, created=False)))


def rename_branch(worktree: Worktree, wanted: str) -> Worktree:
    """Rename the branch of a worktree; return it unchanged if the person has made it theirs.

    That is if another branch is checked out, or this one was pushed. Raises `GitError`.
    """
    git = Git(worktree.path)
    current = git.attempt("symbolic-ref", "-q", "--short", "HEAD")
    pushed = git.attempt("rev-parse", "-q", "--verify", "@{upstream}")
    if current != worktree.branch or pushed is not None:
        return worktree
    wanted = wanted.replace("/", "-")  # trimtab/a and trimtab/a/b cannot both exist
    name, number = f"trimtab/{wanted}", 1
    while git.attempt("rev-parse", "-q", "--verify", f"refs/heads/{name}") is not None:
        number += 1
        name = f"trimtab/{wanted}-{number}"
    git.run("branch", "-m", worktree.branch, name)
    renamed = msgspec.structs.replace(worktree, branch=name)
    write_marker(renamed)
    return renamed


def read_marker(path: str) -> Worktree | None:
    """Return the worktree at a path, if we created it."""
    folder = Git(path).attempt("rev-parse", "--absolute-git-dir") if os.path.isdir(path) else None
    if folder is None:
        return None
    try:
        with open(os.path.join(folder, MARKER), "rb") as file:
            return decode_json(file.read(), Worktree)
    except (OSError, msgspec.DecodeError):
        return None


def list_worktrees(cwd: str) -> list[Worktree]:
    """Return the worktrees that we created in a folder's repository."""
    listed = Git(find_repository(cwd)).run("worktree", "list", "--porcelain", "-z").split("\0")
    paths = [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]
    return [found for path in paths if (found := read_marker(path)) is not None]


def reasons_to_keep(worktree: Worktree) -> Iterator[str]:
    """Yield what would be lost if it were removed."""
    git = Git(worktree.path)
    if changed := git.run("status", "--porcelain").splitlines():
        yield f"it has {count(len(changed), 'uncommitted change')}; commit or discard what is there"
    tip = git.run("rev-parse", "HEAD")
    holders = git.run("for-each-ref", "--format=%(refname)", f"--contains={tip}").splitlines()
    own = (f"refs/heads/{worktree.branch}", "refs/trimtab/")
    if tip != worktree.commit and not [ref for ref in holders if not ref.startswith(own)]:
        yield f"the commits of {worktree.branch} are on no other branch; merge or push it"


def remove_worktree(worktree: Worktree) -> None:
    """Remove the folder and its branch. Raises `UsageError` if that would lose anything."""
    for reason in reasons_to_keep(worktree):
        raise UsageError(f"{worktree.name} was not removed: {reason}, then try again.")
    try:
        # `--force` only affects ignored files here; nothing else is left.
        discard(worktree)
    except GitError as error:
        raise UsageError(
            f"{worktree.path} cannot be removed ({error}); remove it yourself."
        ) from error


def discard(worktree: Worktree) -> None:
    """Remove the folder and its branch, whatever they contain. Raises `GitError`."""
    git = Git(worktree.repository)
    git.run("worktree", "remove", "--force", worktree.path)
    git.attempt("branch", "-D", worktree.branch)


def copy_included(repository: str, path: str) -> None:
    """Copy untracked files that `.worktreeinclude` names, such as `.env`, up to a limit."""
    include = os.path.join(repository, INCLUDE)
    if not os.path.isfile(include):
        return
    listed = Git(repository).output("ls-files", "-z", "--others", "--ignored", "-X", include)
    room = COPIED_BYTES
    for name in [os.fsdecode(name) for name in listed.split(b"\0") if name][:COPIED_FILES]:
        source, target = os.path.join(repository, name), os.path.join(path, name)
        if os.path.islink(source) or not os.path.isfile(source) or os.path.lexists(target):
            continue
        room -= os.path.getsize(source)
        if room < 0:
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)


def describe_result(worktree: Worktree) -> str:
    """Return a sentence about the result of the work."""
    git = Git(worktree.path)
    stat = git.attempt("diff", "--shortstat", worktree.commit) or "nothing changed"
    untracked = (git.attempt("ls-files", "--others", "--exclude-standard") or "").splitlines()
    more = f", {count(len(untracked), 'new file')} not committed" if untracked else ""
    return (
        f"The work is on branch {worktree.branch}: {stat.strip()}{more}; "
        f"see git diff {worktree.commit[:12]}...{worktree.branch}"
    )
