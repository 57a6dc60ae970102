"""A stand-in for `gh`, stricter than it: it opens a pull request only for a branch that is there.

As a program: `gh.py STATE REPOSITORY pr create …`. It keeps the pull requests in the file STATE and
looks for branches in the bare REPOSITORY.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ADDRESS = "https://github.com/owner/project/pull/"


def install(folder: Path, repository: Path) -> Path:
    """Put `gh` into a folder and return the file in which it keeps pull requests."""
    folder.mkdir()
    state = folder / "pull-requests.json"
    state.write_text("{}")
    program = folder / "gh"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -I "{__file__}" "{state}" "{repository}" "$@"\n'
    )
    program.chmod(0o755)
    return state


def fail(message: str) -> None:
    sys.exit(f"gh: {message}")


def read_options(words: list[str], known: dict[str, bool]) -> dict[str, str]:
    """Return the options by name; each may be given once, and nothing else may."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word not in known or word in found:
            fail(f"unexpected argument {word!r}")
        found[word] = next(rest, "") if known[word] else "yes"
    return found


def has_branch(repository: str, name: str) -> bool:
    command = ["git", "-C", repository, "rev-parse", "--verify", "-q", f"refs/heads/{name}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def create(state: dict[str, Any], repository: str, words: list[str]) -> str:
    known = {"--base": True, "--head": True, "--title": True, "--body": True, "--draft": False}
    options = read_options(words, known)
    for name in ("--base", "--head"):
        if not has_branch(repository, options.get(name, "")):
            fail(f"{name}: no such branch {options.get(name)!r}")
    if not options.get("--title", "").strip() or "\n" in options["--title"]:
        fail("--title: one line is needed")
    if "--body" not in options:
        fail("--body is needed when nobody can be asked")
    if options["--head"] in state:
        fail("a pull request for this branch exists already")
    number = len(state) + 1
    state[options["--head"]] = {**options, "number": number}
    return f"{ADDRESS}{number}"


def edit(state: dict[str, Any], words: list[str]) -> str:
    if not words or words[0] not in state:
        fail("no pull request for this branch")
    found = state[words[0]]
    found |= read_options(words[1:], {"--title": True, "--body": True})
    return f"{ADDRESS}{found['number']}"


def main() -> None:
    file, repository, *words = sys.argv[1:]
    state = json.loads(Path(file).read_text())
    if words[:2] == ["pr", "create"]:
        print(create(state, repository, words[2:]))
    elif words[:2] == ["pr", "edit"]:
        print(edit(state, words[2:]))
    else:
        fail(f"unknown command {words!r}")
    Path(file).write_text(json.dumps(state))


if __name__ == "__main__":
    main()
