"""A first instruction file: how the project is built and tested, as far as its files say so."""

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
LISTED = 40


def draft_instructions(root: str) -> str:
    """The text of the file. It says only what was found."""
    lines = [f"# {os.path.basename(root) or 'This repository'}", ""]
    if about := _about(root):
        lines += [about, ""]
    commands = list(dict.fromkeys(_commands(root)))
    lines += ["## Commands", ""]
    lines += [f"- `{command}`" for command in commands]
    lines += ["- How to build and test this is not written down yet."] if not commands else []
    lines += ["", "## Layout", ""]
    lines += [f"- `{name}/`" for name in _folders(root)]
    lines += [
        "",
        "## Rules",
        "",
        "- Change only what the task needs, and run the commands above before you say it is done.",
        "",
    ]
    return "\n".join(lines)


def _about(root: str) -> str:
    """The first paragraph of the README, without headings, badges and pictures."""
    for name in ("README.md", "README.rst", "README.txt", "README"):
        for paragraph in _text(root, name).split("\n\n"):
            plain = " ".join(paragraph.split())
            if plain and plain[0] not in "#![<=-" and len(plain) > 20:
                return plain[:400]
    return ""


def _commands(root: str) -> Iterator[str]:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        targets = re.findall(r"^([A-Za-z][\w-]*)\s*:(?!=)", _text(root, name), re.MULTILINE)
        yield from (f"make {one}" for one in MAKE_TARGETS if one in targets)
    yield from _node_commands(root)
    if "[tool.pytest" in _text(root, "pyproject.toml") or _text(root, "pytest.ini"):
        yield "pytest"
    for name, commands in BY_FILE:
        if os.path.isfile(os.path.join(root, name)):
            yield from commands


def _node_commands(root: str) -> Iterator[str]:
    try:
        package = msgspec.json.decode(_text(root, "package.json") or "{}")
    except msgspec.DecodeError:
        return
    scripts = package.get("scripts") if isinstance(package, dict) else None
    locks = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"))
    program = next((one for lock, one in locks if os.path.exists(os.path.join(root, lock))), "npm")
    if isinstance(scripts, dict):
        yield from (f"{program} run {name}" for name in NODE_SCRIPTS if name in scripts)


def _folders(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            names = [one.name for one in entries if one.is_dir() and not one.name.startswith(".")]
    except OSError:
        return []
    skipped = {"node_modules", "dist", "build", "out", "target", "__pycache__", "vendor"}
    return sorted(set(names) - skipped)[:LISTED]


def _text(root: str, name: str) -> str:
    try:
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
