"""Runs git with the hooks and programs of the repository's configuration disabled."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from trimtab.workspace.start_failure import explain

TIMEOUT = 120.0
# No hooks, no file-system monitor, no signing, no background jobs of the repository.
HARDENED = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.quotePath=false",
)  # fmt: skip
QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C"}
AUTHOR = {
    "GIT_AUTHOR_NAME": "Trimtab",
    "GIT_AUTHOR_EMAIL": "trimtab@localhost",
    "GIT_COMMITTER_NAME": "Trimtab",
    "GIT_COMMITTER_EMAIL": "trimtab@localhost",
}


class GitError(Exception):
    """Raised when git fails; the message is git's own."""


class Git:
    """Git in one directory. It does not inherit `GIT_*` variables, which could redirect it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """Return what git prints, without the last newline. Raises `GitError`."""
        return os.fsdecode(self.output(*args, env=env)).removesuffix("\n")

    def output(self, *args: str, env: Mapping[str, str] | None = None) -> bytes:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(
                ["git", *HARDENED, *args],
                cwd=self.folder,
                env={**inherited, **QUIET, **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except OSError as error:
            raise GitError(str(explain(error, ["git"], self.folder).strerror)) from error
        except subprocess.TimeoutExpired:
            raise GitError(f"git {args[0]} took more than {TIMEOUT:g} s") from None
        if done.returncode != 0:
            message_line = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise GitError(message_line or f"git {args[0]} failed")
        return done.stdout

    def attempt(self, *args: str) -> str | None:
        """Return what git prints, or None if it fails."""
        try:
            return self.run(*args)
        except GitError:
            return None

    def keep_tree(self, ref: str, message: str) -> str:
        """Commit the working tree to a ref without touching the person's branch and index."""
        folder = self.run("rev-parse", "--absolute-git-dir")
        index = os.path.join(folder, f"trimtab-index-{os.getpid()}")
        env = {"GIT_INDEX_FILE": index, **AUTHOR}
        head = self.attempt("rev-parse", "--verify", "-q", "HEAD")
        try:
            # Only the index knows which files a sparse checkout omits, and which ignored files are
            # staged.
            if os.path.exists(own := os.path.join(folder, "index")):
                shutil.copyfile(own, index)
            self.add_all(env=env)
            tree = self.run("write-tree", env=env)
            parents = ("-p", head) if head else ()
            commit = self.run("commit-tree", tree, *parents, "-m", message, env=env)
        finally:
            for leftover in (index, index + ".lock"):
                if os.path.exists(leftover):
                    os.unlink(leftover)
        self.run("update-ref", ref, commit)
        return commit

    def add_all(self, env: Mapping[str, str] | None = None) -> None:
        """Add all files to the index, also those outside a sparse checkout."""
        sparse = self.attempt("config", "--bool", "core.sparseCheckout") == "true"
        self.run("add", "-A", *(("--sparse",) if sparse else ()), env=env)

    def commit_all(self, message: str) -> str | None:
        """Commit all changes on the current branch; return None if nothing has changed."""
        if not self.run("status", "--porcelain"):
            return None
        self.add_all()
        self.run("commit", "-q", "--no-verify", "-m", message, env=AUTHOR)
        return self.run("rev-parse", "HEAD")
