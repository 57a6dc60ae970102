"""Runs git for tests: with an identity of its own and nothing of the person's configuration."""

import os
import subprocess
from pathlib import Path

from programkit import require

IDENTITY = ("-c", "user.name=Person", "-c", "user.email=person@example.org")
ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""What makes git start from its own defaults, whoever runs the tests."""


def git(folder: Path, *args: str) -> str:
    """Return what git prints. Without git the running test is skipped."""
    require("git")
    done = subprocess.run(
        ["git", *IDENTITY, "-c", "init.defaultBranch=main", *args],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def make_repository(folder: Path) -> None:
    """Make an empty repository, with an identity for commands that commit in it."""
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "Person")
    git(folder, "config", "user.email", "person@example.org")
