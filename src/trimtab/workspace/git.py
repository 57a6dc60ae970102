"""Runs git so that nothing of the repository's own configuration runs with it."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

PATIENCE = 120.0
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
    """Git could not do it; the message is what it said."""


class Git:
    """Git in one directory. Variables that would point it elsewhere are not passed on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """What git prints, without the last newline. Raises `GitError`."""
        return os.fsdecode(self.output(*args, env=env)).removesuffix("\n")

    def output(self, *args: str, env: Mapping[str, str] | None = None) -> bytes:
        given = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(
                ["git", *HARDENED, *args],
                cwd=self.folder,
                env={**given, **QUIET, **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except OSError as error:
            from trimtab.workspace.start_failure import explain

            raise GitError(str(explain(error, ["git"], self.folder).strerror)) from error
        except subprocess.TimeoutExpired:
            raise GitError(f"git {args[0]} took more than {PATIENCE:g} s") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise GitError(said or f"git {args[0]} failed")
        return done.stdout

    def attempt(self, *args: str) -> str | None:
        """What git prints, or None if it fails."""
        try:
            return self.run(*args)
        except GitError:
            return None

    def keep_tree(self, ref: str, message: str) -> str:
        """Commit everything in the working tree to a ref, past the person's branch and index."""
        folder = self.run("rev-parse", "--absolute-git-dir")
        index = os.path.join(folder, f"trimtab-index-{os.getpid()}")
        env = {"GIT_INDEX_FILE": index, **AUTHOR}
        head = self.attempt("rev-parse", "--verify", "-q", "HEAD")
        try:
            # Only the index knows which files a sparse checkout leaves out, and which are staged
            # although they are ignored.
            if os.path.exists(own := os.path.join(folder, "index")):
                shutil.copyfile(own, index)
            self.run(*self._add_all(), env=env)
            tree = self.run("write-tree", env=env)
            parents = ("-p", head) if head else ()
            commit = self.run("commit-tree", tree, *parents, "-m", message, env=env)
        finally:
            for leftover in (index, index + ".lock"):
                if os.path.exists(leftover):
                    os.unlink(leftover)
        self.run("update-ref", ref, commit)
        return commit

    def _add_all(self) -> Sequence[str]:
        """Has git take everything that is there, also outside of what a sparse checkout is for."""
        sparse = self.attempt("config", "--bool", "core.sparseCheckout") == "true"
        return ("add", "-A", "--sparse") if sparse else ("add", "-A")

    def commit_all(self, message: str) -> str | None:
        """Commit everything on the branch that is checked out; None if nothing has changed."""
        if not self.run("status", "--porcelain"):
            return None
        self.run(*self._add_all())
        self.run("commit", "-q", "--no-verify", "-m", message, env=AUTHOR)
        return self.run("rev-parse", "HEAD")
