"""The remote of a repository: its address, and the repository it names on a known service."""

import os
import re

import msgspec

from trimtab.config.files import read_regular

MAX_CONFIG = 256 * 1024
_ADDRESS = (
    r"(?:(?:https?|ssh|git)://(?:[^@/]+@)?(?P<host>[^:/]+)(?::\d+)?/|[^@/]+@(?P<scp>[^:/]+):)"
    r"(?P<path>[^?#]+?)(?:\.git)?/?"
)
_SECTION = r'\[remote "(?P<name>(?:[^"\\]|\\.)*)"\]'
"""Patterns that are compiled when a repository has a remote: a start outside one needs neither."""
GITHUB_HOSTS = ("github.com", "ssh.github.com")


class RemoteAddress(msgspec.Struct, frozen=True):
    """The address of a remote: `github.com` and `owner/name`."""

    host: str
    path: str


class HostedRepository(msgspec.Struct, frozen=True):
    """A repository on GitHub or Azure DevOps, as clients are told of it."""

    name: str
    """`owner/name`, or `organisation/project/name`."""
    service: str
    """`github` or `ado`."""
    host: str


def parse_address(address: str) -> RemoteAddress | None:
    """Return the parts of a remote's address; None for a path, or what is no address."""
    match = re.fullmatch(_ADDRESS, address)
    return RemoteAddress(match["host"] or match["scp"], match["path"]) if match else None


def find_addresses(git_dir: str) -> list[str]:
    """Return the addresses of all remotes of a repository. Never fails."""
    return list(_find_remotes(git_dir).values())


def find_hosted(git_dir: str) -> HostedRepository | None:
    """Return the repository that the remote of a repository names. Never fails."""
    remotes = _find_remotes(git_dir)
    only = next(iter(remotes.values())) if len(remotes) == 1 else ""
    return identify(remotes.get("origin") or only)


def _find_remotes(git_dir: str) -> dict[str, str]:
    try:
        text = read_regular(os.path.join(git_dir, "config"), MAX_CONFIG).decode("utf-8", "replace")
    except OSError:
        return {}
    return _read_remotes(text)


def identify(address: str) -> HostedRepository | None:
    """Return the repository of an address on GitHub or Azure DevOps."""
    parsed = parse_address(address)
    if parsed is None:
        return None
    host, parts = parsed.host.lower(), parsed.path.strip("/").split("/")
    if host in GITHUB_HOSTS or host.endswith(".ghe.com"):
        return HostedRepository("/".join(parts), "github", host) if len(parts) == 2 else None
    if host == "ssh.dev.azure.com" and len(parts) == 4:
        return HostedRepository("/".join(parts[1:]), "ado", host)
    if host == "dev.azure.com" and len(parts) == 4 and parts[2] == "_git":
        return HostedRepository("/".join((*parts[:2], parts[3])), "ado", host)
    if host.endswith(".visualstudio.com") and len(parts) == 3 and parts[1] == "_git":
        organisation = host.partition(".")[0]
        return HostedRepository("/".join((organisation, parts[0], parts[2])), "ado", host)
    return None


def _read_remotes(text: str) -> dict[str, str]:
    """Return the addresses of the remotes that a git configuration names, by their names."""
    found: dict[str, str] = {}
    remote: str | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = re.match(_SECTION, line)
            remote = section["name"] if section else None
        elif remote is not None:
            key, _, value = line.partition("=")
            if key.strip().lower() == "url":
                found.setdefault(remote, value.strip().strip('"'))
    return found
