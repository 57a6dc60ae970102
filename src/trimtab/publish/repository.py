"""Reads what a repository has to commit, to push and to propose."""

import os
from urllib.parse import quote

import msgspec

from trimtab.checkout.remotes import parse_address
from trimtab.contracts.errors import UsageError
from trimtab.workspace.git import Git

MAX_DIFF = 60_000
"""Characters of a diff that a model reads; more is cut."""
MAX_NEW_FILE = 4_000


class Forge(msgspec.Struct, frozen=True):
    """The place of a repository on a server: `github.com`, `owner/name`."""

    host: str
    path: str

    @property
    def owner(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def pull_request_address(self, number: int) -> str:
        return f"https://{self.host}/{self.path}/pull/{number}"

    def propose_address(self, base: str, branch: str) -> str:
        """Return the address at which a person opens a pull request."""
        site = f"https://{self.host}/{self.path}"
        if "gitlab" in self.host:
            field = quote("merge_request[source_branch]")
            return f"{site}/-/merge_requests/new?{field}={quote(branch)}"
        if "bitbucket" in self.host:
            return f"{site}/pull-requests/new?source={quote(branch)}"
        return f"{site}/compare/{quote(base)}...{quote(branch)}?expand=1"


class Repository:
    """A repository as it is now; every property asks git again."""

    def __init__(self, folder: str) -> None:
        self._git = Git(folder)
        if self._git.attempt("rev-parse", "--is-inside-work-tree") != "true":
            raise UsageError(f"{folder} is not in a git repository; create one with `git init`.")

    @property
    def branch(self) -> str:
        """The current branch; empty if HEAD is detached."""
        return self._git.attempt("symbolic-ref", "--short", "-q", "HEAD") or ""

    @property
    def commit(self) -> str:
        return self._git.attempt("rev-parse", "--short", "HEAD") or ""

    @property
    def subject(self) -> str:
        return self._git.attempt("log", "-1", "--format=%s") or ""

    @property
    def remote(self) -> str:
        """The remote of the current branch, else the only one, else `origin`; empty if none."""
        named = self._git.attempt("config", f"branch.{self.branch}.remote") if self.branch else ""
        remotes = (self._git.attempt("remote") or "").split()
        if named and named in remotes:
            return named
        return remotes[0] if len(remotes) == 1 else "origin" if "origin" in remotes else ""

    @property
    def upstream(self) -> str:
        return self._git.attempt("rev-parse", "--abbrev-ref", "@{upstream}") or ""

    @property
    def default_branch(self) -> str:
        """The branch that others are merged into, by name; empty if it cannot be found."""
        remote = self.remote
        head = self._git.attempt("symbolic-ref", "--short", "-q", f"refs/remotes/{remote}/HEAD")
        if head:
            return head.removeprefix(f"{remote}/")
        for name in ("main", "master", "trunk"):
            if self.has(f"refs/remotes/{remote}/{name}"):
                return name
        return ""

    @property
    def forge(self) -> Forge | None:
        address = self._git.attempt("remote", "get-url", self.remote) if self.remote else None
        parsed = parse_address(address or "")
        return Forge(parsed.host, parsed.path) if parsed else None

    @property
    def main_folder(self) -> str:
        """The main working tree of the repository, of which this may be a linked one."""
        first = (self._git.attempt("worktree", "list", "--porcelain") or "").partition("\n")[0]
        return first.removeprefix("worktree ")

    @property
    def conflicts(self) -> list[str]:
        return self._names("diff", "--name-only", "--diff-filter=U", "-z")

    @property
    def staged(self) -> list[str]:
        return self._names("diff", "--cached", "--name-only", "-z")

    @property
    def changed(self) -> list[str]:
        """Every file with a change that is not committed, untracked files too."""
        entries = self._names("status", "--porcelain=v1", "-z", "--untracked-files=all")
        return [entry[3:] for entry in entries if entry[2:3] == " "]

    def has(self, ref: str) -> bool:
        return self._git.attempt("rev-parse", "--verify", "-q", ref) is not None

    def accepts_branch(self, name: str) -> bool:
        """Return True if a branch of this name can be made."""
        valid = self._git.attempt("check-ref-format", "--branch", name) is not None
        return valid and not self.has(f"refs/heads/{name}")

    def list_branches(self) -> str:
        """Return the local branches, the one used last first; `*` marks the current one."""
        form = "%(HEAD) %(refname:short)  %(committerdate:short)  %(subject)"
        return self._git.attempt("branch", "--sort=-committerdate", f"--format={form}") or ""

    def has_remote_branch(self, name: str) -> bool:
        """Return True if the remote has a branch of this name, which `git switch` would track."""
        return bool(self.remote) and self.has(f"refs/remotes/{self.remote}/{name}")

    def count_ahead(self, base: str, head: str = "HEAD") -> int:
        """Return the number of commits of `head` that `base` lacks."""
        return int(self._git.attempt("rev-list", "--count", f"{base}..{head}") or 0)

    def read_changes(self) -> str:
        """Return what a commit would contain, as a diff and the beginnings of new files."""
        if self.staged:
            return self._cut(self._git.attempt("diff", "--cached") or "")
        parts = [self._git.attempt("diff", "HEAD") or ""]
        new = self._names("ls-files", "--others", "--exclude-standard", "-z")
        parts += [f"new file {name}\n{self._read_new(name)}" for name in new]
        return self._cut("\n".join(parts))

    def read_proposal(self, base: str) -> str:
        """Return the commits and the diff that a pull request would contain."""
        log = self._git.attempt("log", "--format=- %s%n%b", f"{base}..HEAD") or ""
        return self._cut(f"{log}\n{self._git.attempt('diff', f'{base}...HEAD') or ''}")

    def read_subjects(self, number: int = 8) -> str:
        """Return the subjects of the last commits, for their style."""
        return self._git.attempt("log", f"-{number}", "--format=%s") or ""

    def _read_new(self, name: str) -> str:
        top = self._git.attempt("rev-parse", "--show-toplevel") or self._git.folder
        try:
            with open(os.path.join(top, name), "rb") as file:
                data = file.read(MAX_NEW_FILE)
        except OSError:
            return ""
        return "(binary)" if b"\0" in data else data.decode("utf-8", "replace")

    def _names(self, *args: str) -> list[str]:
        return [name for name in (self._git.attempt(*args) or "").split("\0") if name]

    def _cut(self, text: str) -> str:
        return text if len(text) <= MAX_DIFF else f"{text[:MAX_DIFF]}\n[the rest is left out]"
