"""Finds the commands by which a project is built and checked, in its manifests."""

import os
import re
from collections.abc import Iterator

import msgspec

MAKE_TARGETS = ("build", "test", "check", "lint", "format", "run", "dev")
NODE_SCRIPTS = ("build", "test", "lint", "typecheck", "format", "dev", "start")
BY_FILE = (
    ("Cargo.toml", ("cargo build", "cargo test")),
    ("go.mod", ("go build ./...", "go test ./...")),
    ("pom.xml", ("mvn package", "mvn test")),
    ("build.gradle", ("./gradlew build", "./gradlew test")),
    ("build.gradle.kts", ("./gradlew build", "./gradlew test")),
    ("mix.exs", ("mix compile", "mix test")),
    ("Gemfile", ("bundle install",)),
    ("tox.ini", ("tox",)),
)
NOT_CHECKS = re.compile(r"(run|dev|start|install)$")
"""Commands that start the program, or change what is installed."""
MAX_BYTES = 1 << 20


def find_commands(root: str) -> list[str]:
    """Return the commands that the manifests of a project name."""
    return list(dict.fromkeys(_find(root)))


def find_checks(root: str) -> list[str]:
    """Return the commands that build or check a project."""
    return [command for command in find_commands(root) if not NOT_CHECKS.search(command)]


def read_manifest(root: str, name: str) -> str:
    """Return the beginning of a file of the project; nothing if it cannot be read."""
    try:
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""


def _find(root: str) -> Iterator[str]:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        text = read_manifest(root, name)
        targets = re.findall(r"^([A-Za-z][\w-]*)\s*:(?!=)", text, re.MULTILINE)
        yield from (f"make {target}" for target in MAKE_TARGETS if target in targets)
    yield from _find_scripts(root)
    if "[tool.pytest" in read_manifest(root, "pyproject.toml") or read_manifest(root, "pytest.ini"):
        yield "pytest"
    for name, commands in BY_FILE:
        if os.path.isfile(os.path.join(root, name)):
            yield from commands


def _find_scripts(root: str) -> Iterator[str]:
    try:
        package = msgspec.json.decode(read_manifest(root, "package.json") or "{}")
    except msgspec.DecodeError:
        return
    scripts = package.get("scripts") if isinstance(package, dict) else None
    locks = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"))
    program = next(
        (name for lock, name in locks if os.path.exists(os.path.join(root, lock))), "npm"
    )
    if isinstance(scripts, dict):
        yield from (f"{program} run {name}" for name in NODE_SCRIPTS if name in scripts)
