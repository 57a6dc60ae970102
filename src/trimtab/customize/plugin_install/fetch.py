"""Fetches a plugin or marketplace: copies a folder, or checks out a commit of a git repository."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

import msgspec

from trimtab.config.files import cannot
from trimtab.contracts.errors import ConfigurationError, UsageError

GIT_TIMEOUT = 300
MAX_BYTES = 256 * 1024 * 1024
_HARDENED = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "credential.interactive=false",
)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a plugin: a local folder, or a git address with a branch, tag or commit."""

    address: str
    ref: str = ""
    path: str = ""
    """The folder of the plugin inside the fetched one."""
    is_folder: bool = False

    @property
    def pinned(self) -> bool:
        """True if it names a commit, so that an update changes nothing."""
        return bool(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", self.ref))


def read_origin(text: str) -> Origin:
    """Parse a folder, a git address, or OWNER/REPO of GitHub; a ref may follow after `#`."""
    folder = os.path.abspath(os.path.expanduser(text))
    if os.path.isdir(folder):
        return Origin(address=folder, is_folder=True)
    address, _, ref = text.partition("#")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", address):
        address = f"https://github.com/{address}.git"
    if not re.match(r"(https?|ssh|git|file)://|[\w.-]+@[\w.-]+:", address) or ref.startswith("-"):
        raise UsageError(f"no such folder or git address: {text}; name an existing one.")
    return Origin(address=address, ref=ref)


_TRUE = frozenset(("1", "true"))


def is_remote(address: str) -> bool:
    """Return True if an address is of another machine."""
    host = re.match(r"(?:https?|ssh|git)://(?:[^/@]*@)?(\[[^\]]*\]|[^/:]+)", address)
    if host is None:
        return not address.startswith("file://")
    return host[1].lower() not in ("localhost", "127.0.0.1", "[::1]")


def fetch(origin: Origin, target: str, env: Mapping[str, str]) -> str:
    """Copy the origin into a new folder; return the commit, or "" for a folder."""
    if origin.is_folder:
        _copy(origin.address, target)
        return ""
    if is_remote(origin.address) and env.get("COPILOT_OFFLINE", "").lower() in _TRUE:
        raise UsageError(
            f"{origin.address} cannot be fetched while COPILOT_OFFLINE is set; unset it, or name a "
            "folder."
        )
    try:
        os.makedirs(target)
    except OSError as error:
        raise cannot("create the folder", target, error) from error
    _git(env, target, "init", "-q")
    _git(env, target, "fetch", "-q", "--depth=1", "--no-tags", origin.address, origin.ref or "HEAD")
    _git(env, target, "checkout", "-q", "--detach", "FETCH_HEAD")
    commit = _git(env, target, "rev-parse", "HEAD").strip()
    if origin.pinned and commit != origin.ref:
        raise ConfigurationError(
            f"{origin.address} sent commit {commit} instead of {origin.ref}; do not use it."
        )
    shutil.rmtree(os.path.join(target, ".git"), ignore_errors=True)
    return commit


def _copy(source: str, target: str) -> None:
    total = 0
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name != ".git"]
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in files)
        if total > MAX_BYTES:
            raise UsageError(
                f"{source} is larger than {MAX_BYTES >> 20} MB; name a smaller folder."
            )
    try:
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    except (OSError, shutil.Error) as error:
        raise cannot(f"copy {source} to", target, error) from error


def _git(env: Mapping[str, str], folder: str, *args: str) -> str:
    git_env = {**env, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *_HARDENED, *args],
            cwd=folder,
            env=git_env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise ConfigurationError("git is not installed; install it, or name a folder.") from None
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"git took more than {GIT_TIMEOUT} s; try again later.") from None
    if done.returncode:
        lines = [line for line in done.stderr.strip().split("\n") if line] or ["no reason given"]
        reason = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
        raise ConfigurationError(f"git could not fetch it ({reason}); check the address.")
    return done.stdout
