"""Content exclusion: rules that deny tools to read or change files, from policies and settings.

The format is that of organizations on GitHub, an object from repositories to patterns for paths:
`{"*": ["**/.env"], "https://github.com/octo/app": ["/secrets/**"]}`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.trust import find_root
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Rule
from trimtab.permissions.exclusions import compile_pattern
from trimtab.policy.guards import find_intended, find_repeated
from trimtab.workspace.sandbox.policy import find_git

KEY = "contentExclusion"
EVERYWHERE = "*"
_RULING = ("permissions", "allowedUrls", "deniedUrls")
"""Settings that a policy does not have."""
MAX_DEPTH = 3
MAX_FOLDERS = 2000
"""Limits of the search for repositories inside the workspace."""
_REMOTE = re.compile(rb"^\s*url\s*=\s*(.+?)\s*$", re.MULTILINE)
_ADDRESS = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)(?::\d+(?=/))?[:/]+(.+?)(?:\.git)?/*")


def read_policy(folder: str) -> dict[str, Any]:
    """Return the exclusions of the machine's policy, by file. Raises if a file cannot be read."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(folder, str(error)) from None
    found = {}
    for file in (os.path.join(folder, name) for name in names):
        try:
            data = read_regular(file)
            content = read_jsonc(data)
        except (OSError, JsonProblem) as error:
            raise _unreadable(file, str(error)) from None
        if problem := _find_problem(content, data):
            raise _unreadable(file, problem)
        if KEY in content:
            found[file] = content[KEY]
    return found


def _find_problem(content: Any, data: bytes) -> str:
    """Return why a policy may not say what it was meant to, or an empty text."""
    if not isinstance(content, dict):
        return "it is not a JSON object"
    for key in content:
        if key in _RULING:
            return f"{key} counts in settings files only"
        if key != KEY and find_intended(key) == KEY:
            return f"{key} is not known; {KEY} is"
    repeated = next(find_repeated(data), "")
    return f"{repeated} is given twice" if repeated else ""


def _unreadable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The policy {path} cannot be read ({why}): have it corrected.")


def to_rules(given: Any, source: str, folders: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules for a source's exclusions in a workspace. Raises `ConfigurationError`."""
    patterns = _check(given, source)
    rules: list[Rule] = []
    named = patterns.keys() - {EVERYWHERE}
    repositories = list(_find_repositories(folders)) if named else []
    for name, paths in patterns.items():
        if name == EVERYWHERE:
            roots = [*map(_find_root, folders), os.sep]
        else:
            roots = [root for root, urls in repositories if _matches_repository(name, urls)]
        for root in dict.fromkeys(roots):
            for path in paths:
                rules += [Rule(kind, path, source, root) for kind in ("read", "write")]
    return tuple(rules)


def find_addresses(folders: Sequence[str]) -> list[str]:
    """Return the addresses of a workspace's repositories, to ask GitHub about them."""
    names = (name for _, urls in _find_repositories(folders) for name in sorted(urls))
    return [f"https://{name}" for name in dict.fromkeys(names) if "." in name.partition("/")[0]]


def _check(given: Any, source: str) -> Mapping[str, Sequence[str]]:

    if not isinstance(given, dict) or not all(map(_is_list, given.values())):
        raise ConfigurationError(
            f"{KEY} in {source} is not valid: write an object from repositories, or *, to lists of "
            "patterns for paths."
        )
    for path in (path for paths in given.values() for path in paths):
        try:
            compile_pattern(path)
        except re.error as error:
            raise ConfigurationError(
                f"{KEY} in {source} has the pattern {path!r}, which cannot be read ({error}); "
                "correct it."
            ) from None
    return given


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) and item.strip("/") for item in value
    )


def _find_root(folder: str) -> str:

    return find_root(os.path.realpath(folder))


def _find_repositories(folders: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the repositories of a workspace, each with the names of its remotes."""
    for folder in folders:
        root = _find_root(folder)
        yield root, _read_remotes(root)
        for nested in _find_nested(os.path.realpath(folder)):
            yield nested, _read_remotes(nested)


def _find_nested(folder: str) -> Iterator[str]:
    waiting, scanned = [(folder, 0)], 0
    while waiting and scanned < MAX_FOLDERS:
        current, depth = waiting.pop(0)
        scanned += 1
        try:
            with os.scandir(current) as entries:
                inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for path in inner:
            if os.path.lexists(os.path.join(path, ".git")):
                yield path
            if depth + 1 < MAX_DEPTH and os.path.basename(path) != ".git":
                waiting.append((path, depth + 1))


def _read_remotes(root: str) -> set[str]:

    git = find_git(root)
    try:
        data = read_regular(os.path.join(git.common, "config")) if git else b""
    except OSError:
        data = b""
    return {_normalise(url.decode("utf-8", "replace").strip('"')) for url in _REMOTE.findall(data)}


def _matches_repository(name: str, urls: Iterable[str]) -> bool:
    """Return True if a name matches a repository's address, its end, or is a pattern for either."""

    wanted = _normalise(name)
    return any(fnmatchcase(url, pattern) for url in urls for pattern in (wanted, f"*/{wanted}"))


def _normalise(address: str) -> str:
    """Return a repository's address without scheme, user, port and `.git`, in lower case."""
    match = _ADDRESS.fullmatch(address.strip().lower())
    return f"{match[1]}/{match[2]}" if match else address.strip().lower()
