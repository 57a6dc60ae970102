"""The git work of a fleet: worktrees, commits and merges. The person's checkout is only read."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ParamSpec, TypeVar

import msgspec

from trimtab.checkout.worktrees import copy_included, count_changed
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count
from trimtab.fleet.events import Started
from trimtab.fleet.plan import Todo
from trimtab.workspace.git import AUTHOR, Git, GitError

P = ParamSpec("P")
T = TypeVar("T")

TRAILER = "Trimtab-Todo"
READY = "trimtab-ready"
"""A file in the administrative folder of a worktree whose files are all there."""
PLAN_FOLDER, MERGE_FOLDER = "plan", "merged"


class GitThread:
    """Runs git beside the event loop, one call at a time, and each to its end.

    Workers start under the same lock: a process that another thread starts meanwhile would be
    taken for a part of the worker.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def __call__(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        async with self.lock:
            call = asyncio.ensure_future(asyncio.to_thread(function, *args, **options))
            try:
                return await asyncio.shield(call)
            except asyncio.CancelledError:
                await asyncio.wait([call])
                raise


class CheckoutFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The person's checkout at the start of a fleet. `target` is the branch, if HEAD is on one."""

    checkout: str
    repository: str
    subfolder: str
    base: str
    target: str | None
    notes: tuple[str, ...] = ()


def inspect_checkout(cwd: str) -> CheckoutFacts:
    """Look at the repository of a folder. Raises `UsageError` if a fleet cannot work there."""
    git = Git(cwd)
    common = git.attempt("rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is None:
        raise UsageError(
            f"{cwd} is not in a git repository, and a fleet merges with git; run git init, commit, "
            "and try again."
        )
    checkout = git.attempt("rev-parse", "--show-toplevel")
    if not checkout:
        raise UsageError(f"{common} is a bare repository; work in a checkout of it.")
    if git.attempt("rev-parse", "--show-superproject-working-tree"):
        raise UsageError(
            f"{checkout} is a submodule; start the fleet in a clone of that repository instead."
        )
    base = git.attempt("rev-parse", "--verify", "-q", "HEAD^{commit}")
    if base is None:
        raise UsageError(f"{checkout} has no commit to start from; commit first.")
    main = os.path.dirname(os.path.realpath(common))
    return CheckoutFacts(
        checkout=checkout,
        repository=main if os.path.basename(common) == ".git" else checkout,
        subfolder=os.path.relpath(os.path.realpath(cwd), os.path.realpath(checkout)),
        base=base,
        target=git.attempt("symbolic-ref", "-q", "HEAD"),
        notes=tuple(_find_notes(git, checkout, base)),
    )


def _find_notes(git: Git, checkout: str, base: str) -> list[str]:
    notes = []
    if changed := count_changed(git):
        changes = count(changed, "uncommitted change")
        notes.append(f"The fleet starts at {base[:12]}, without {changes} of {checkout}.")
    if os.path.exists(os.path.join(checkout, ".gitmodules")):
        notes.append("The repository has submodules; they are empty in the folders of the workers.")
    return notes


class FleetRepository:
    """The worktrees and branches of one fleet."""

    def __init__(self, started: Started, env: Mapping[str, str]) -> None:
        self._started = started
        self._git = Git(started.repository)
        self._identity = find_identity(started.checkout, env)

    def branch(self, todo: str) -> str:
        return name_todo_branch(self._started.id, todo)

    def folder(self, todo: str) -> str:
        return os.path.join(self._started.folder, "todo", todo)

    @property
    def merge_folder(self) -> str:
        return os.path.join(self._started.folder, MERGE_FOLDER)

    @property
    def plan_folder(self) -> str:
        return os.path.join(self._started.folder, PLAN_FOLDER)

    def inside(self, folder: str) -> str:
        """Return the folder in a worktree that corresponds to the person's current one."""
        found = os.path.normpath(os.path.join(folder, self._started.subfolder))
        return found if os.path.isdir(found) else folder

    def prepare(self, folder: str, start: str, branch: str | None = None) -> None:
        """Make a worktree; one that is there already keeps its changes. Raises `GitError`."""
        admin = Git(folder).attempt("rev-parse", "--absolute-git-dir")
        own = admin is not None and _leads_to(folder, admin)
        if own and admin is not None and os.path.exists(os.path.join(admin, READY)):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(admin, "index.lock"))
            return
        self.remove(folder)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        self._add(folder, start, branch)
        copy_included(self._started.checkout, folder)
        Git(folder).run("clean", "-fdq")  # of what was copied, only ignored files may stay
        admin = Git(folder).run("rev-parse", "--absolute-git-dir")
        with open(os.path.join(admin, READY), "wb"):
            pass

    def _add(self, folder: str, start: str, branch: str | None) -> None:
        if branch is None:
            self._git.run("worktree", "add", "-q", "--detach", folder, start)
        elif self.find(branch) is not None:
            self._git.run("worktree", "add", "-q", folder, branch)
        else:
            self._git.run("worktree", "add", "-q", "--no-track", "-b", branch, folder, start)

    def remove(self, folder: str) -> None:
        """Remove a worktree, whatever it holds, and the folders that are empty then."""
        if os.path.lexists(folder):
            self._git.attempt("worktree", "remove", "--force", "--force", folder)
            shutil.rmtree(folder, ignore_errors=True)
        self._git.attempt("worktree", "prune")

    def remove_all(self, *, force: bool = False) -> None:
        """Remove all worktrees of the fleet; without `force`, not those with work in no commit."""
        todos = os.path.join(self._started.folder, "todo")
        found = os.listdir(todos) if os.path.isdir(todos) else []
        names = [name for name in found if force or is_clean(self.folder(name))]
        for folder in (*(self.folder(name) for name in names), self.merge_folder, self.plan_folder):
            self.remove(folder)
        for empty in (todos, self._started.folder, os.path.dirname(self._started.folder)):
            with suppress(OSError):
                os.rmdir(empty)

    def find(self, branch: str) -> str | None:
        """Return the commit of a branch, if it exists."""
        return self._git.attempt("rev-parse", "--verify", "-q", f"refs/heads/{branch}")

    def set_branch(self, branch: str, commit: str, before: str | None = None) -> None:
        """Point a branch at a commit; with `before`, only if it points there. Raises `GitError`."""
        if self.find(branch) != commit:
            expected = (before,) if before else ()
            self._git.run("update-ref", f"refs/heads/{branch}", commit, *expected)

    def advance(self, branch: str, commit: str) -> bool:
        """Move a branch forward to a commit; return False if it holds something else."""
        found = self.find(branch)
        if found not in (None, commit):
            assert found is not None
            # A worker's last commit is replaced by one that names the todo.
            if not self.contains(commit, found) and not self.same_tree(commit, found):
                return False
        self.set_branch(branch, commit)
        return True

    def commit_work(self, todo: Todo, start: str) -> str | None:
        """Commit what a worker changed, all of it in one tip; return None if that is nothing.

        The branch is not moved yet. Commits that the worker made itself stay below the tip.
        """
        folder = self.folder(todo.id)
        git = Git(folder)
        head = git.run("rev-parse", "HEAD")
        tree = self.write_tree(folder)
        if tree == git.run("rev-parse", f"{start}^{{tree}}"):
            return None
        if inner := find_repositories(git, tree) - find_repositories(git, start):
            raise GitError(f"{', '.join(sorted(inner))} is a repository of its own")
        message = f"{todo.title}\n\n{TRAILER}: {todo.id}\nTrimtab-Fleet: {self._started.id}"
        if head == start or git.attempt("merge-base", "--is-ancestor", start, head) is None:
            return self._commit(tree, (start,), message)
        if tree != git.run("rev-parse", f"{head}^{{tree}}"):
            return self._commit(tree, (head,), message)
        return self._add_trailer(git, head, todo)

    def _add_trailer(self, git: Git, head: str, todo: Todo) -> str:
        """Return a commit like `head` whose message names the todo."""
        trailer = f"{TRAILER}: {todo.id}"
        message = git.run("log", "-1", "--format=%B", head).rstrip()
        if trailer in message.splitlines():
            return head
        fields = git.run("log", "-1", "--format=%an%n%ae%n%aI%n%T%n%P", head).split("\n")
        name, email, date, tree, parents = fields
        author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": date}
        text = f"{message}\n\n{trailer}\nTrimtab-Fleet: {self._started.id}"
        return self._commit(tree, parents.split(), text, author)

    def _commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Mapping[str, str] | None = None,
    ) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        env = {**self._identity, **(author or {})}
        return self._git.run("commit-tree", tree, *named, "-m", message, env=env)

    def write_tree(self, folder: str) -> str:
        """Return the tree of a folder's files; ignored ones are left out."""
        git = Git(folder)
        git.add_all()
        return git.run("write-tree")

    def begin_merge(self, tip: str, commit: str) -> list[str]:
        """Merge a commit into the tip in the merge folder; return the files in conflict."""
        folder = self.merge_folder
        self.prepare(folder, tip)
        self.reset_merge(tip)
        try:
            Git(folder).run(
                "merge", "-q", "--no-ff", "--no-commit", "--no-edit", commit, env=self._identity
            )
        except GitError:
            listed = Git(folder).run("diff", "--name-only", "--diff-filter=U", "-z")
            files = sorted(name for name in listed.split("\0") if name)
            if not files:
                raise
            return files
        return []

    def reset_merge(self, commit: str) -> None:
        """Reset the merge folder to a commit; ignored files stay."""
        git = Git(self.merge_folder)
        git.attempt("merge", "--abort")
        git.run("checkout", "-q", "--force", "--detach", commit)
        git.run("reset", "-q", "--hard", commit)
        git.run("clean", "-ffdq")

    def describe_conflict(self, name: str) -> bytes | None:
        """Return what a file in conflict holds, None if it has conflict markers.

        Conflicts in binary files, and between an edit and a deletion, have no markers.
        """
        path = os.path.join(self.merge_folder, name)
        if has_markers(path):
            return None
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return b""

    def unresolved(self, before: Mapping[str, bytes | None]) -> list[str]:
        """Return the files whose conflict is not resolved.

        A file with markers is resolved without them; another one if it was changed or added.
        """
        listed = Git(self.merge_folder).run("diff", "--name-only", "--diff-filter=U", "-z")
        unmerged = set(listed.split("\0"))
        return [
            name
            for name, content in before.items()
            if (found := self.describe_conflict(name)) is None
            or (content is not None and name in unmerged and found == content)
        ]

    def write_merge(self, tip: str, todo: Todo, commit: str, *, repaired: bool) -> str:
        """Return a commit with the files of the merge folder. Raises `GitError`.

        Work that began at the tip needs no merge commit, unless an agent changed it.
        """
        tree = self.write_tree(self.merge_folder)
        if not repaired and self._git.run("merge-base", tip, commit) == tip:
            return commit
        note = "\n\nAn agent changed the merged files." if repaired else ""
        return self._commit(tree, (tip, commit), f"Merge {todo.id}: {todo.title}{note}")

    def same_tree(self, first: str, second: str) -> bool:
        return self._git.run("rev-parse", f"{first}^{{tree}}") == self._git.run(
            "rev-parse", f"{second}^{{tree}}"
        )

    def find_sides(self, merge: str, tip: str, commit: str, files: Sequence[str]) -> dict[str, str]:
        """Return for each file which side the merge holds: both, branch or todo."""
        found = {}
        for name in files:
            blob, ours, theirs = (
                self._git.attempt("rev-parse", "--verify", "-q", f"{each}:{name}")
                for each in (merge, tip, commit)
            )
            found[name] = "branch" if blob == ours else "todo" if blob == theirs else "both"
        return found

    def changed_files(self, before: str, after: str) -> set[str]:
        listed = self._git.run("diff", "--name-only", "--no-renames", "-z", before, after)
        return {name for name in listed.split("\0") if name}

    def contains(self, descendant: str, commit: str) -> bool:
        return self._git.attempt("merge-base", "--is-ancestor", commit, descendant) is not None


def name_branch(fleet: str) -> str:
    return f"trimtab/fleet/{fleet}/merged"


def name_todo_branch(fleet: str, todo: str) -> str:
    return f"trimtab/fleet/{fleet}/todo/{todo}"


def find_identity(checkout: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the person's name and address for commits, ours if they have none."""
    git = Git(checkout)
    found = dict(AUTHOR)
    for role in ("AUTHOR", "COMMITTER"):
        for field in ("NAME", "EMAIL"):
            variable = f"GIT_{role}_{field}"
            value = env.get(variable) or git.attempt("config", f"user.{field.lower()}")
            found[variable] = value or found[variable]
    return found


def find_repositories(git: Git, tree: str) -> set[str]:
    """Return the repositories inside a tree: submodules, and what git takes for them."""
    listed = git.run("ls-tree", "-r", "-z", tree).split("\0")
    return {row.partition("\t")[2] for row in listed if row.startswith("160000 ")}


def is_clean(folder: str) -> bool:
    """Return True if everything in a worktree is committed."""
    return Git(folder).attempt("status", "--porcelain") == ""


def has_markers(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return False
    return any(line.startswith(b"<<<<<<< ") for line in lines) and any(
        line.startswith(b">>>>>>> ") for line in lines
    )


def _leads_to(folder: str, admin: str) -> bool:
    """Return True if a folder is itself a worktree, and not just below one."""
    return os.path.isfile(os.path.join(folder, ".git")) and "worktrees" in admin
