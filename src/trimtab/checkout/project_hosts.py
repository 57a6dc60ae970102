"""Finds the hosts from which a project is fetched and built: its git server, its registries."""

import os
import re
from collections.abc import Iterator

from trimtab.checkout.remotes import find_addresses, parse_address
from trimtab.workspace.sandbox.policy import find_git

REGISTRIES = (
    (("package.json",), ("registry.npmjs.org",)),
    (("yarn.lock",), ("registry.yarnpkg.com",)),
    (
        ("pyproject.toml", "requirements.txt", "setup.py", "uv.lock", "poetry.lock", "Pipfile"),
        ("pypi.org", "files.pythonhosted.org"),
    ),
    (("Cargo.toml",), ("index.crates.io", "static.crates.io", "crates.io")),
    (("go.mod",), ("proxy.golang.org", "sum.golang.org")),
    (("Gemfile",), ("rubygems.org", "index.rubygems.org")),
    (("composer.json",), ("packagist.org", "repo.packagist.org")),
    (("pom.xml", "build.gradle", "build.gradle.kts"), ("repo.maven.apache.org", "repo1.maven.org")),
    (("mix.exs",), ("hex.pm", "repo.hex.pm")),
)
"""The public registries that package managers use for these files; no settings of a repository."""
GITHUB = ("api.github.com",)


def find_hosts(root: str) -> list[str]:
    """Return the addresses of the hosts that a project's manifests and its remote imply."""
    return list(dict.fromkeys(_find(root)))


def _find(root: str) -> Iterator[str]:
    git = find_git(root)
    for address in find_addresses(git.common) if git else ():
        parsed = parse_address(address)
        host = parsed.host.lower() if parsed else ""
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", host):
            continue
        yield f"https://{host}" if address.startswith("http") else f"https://{host}:22"
        if host == "github.com":
            yield from (f"https://{name}" for name in GITHUB)
    for names, hosts in REGISTRIES:
        if any(os.path.isfile(os.path.join(root, name)) for name in names):
            yield from (f"https://{host}" for host in hosts)
