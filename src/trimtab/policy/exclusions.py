"""Content exclusion: files that no tool may read or change, by the machine's policy or the person.

Both write it as organizations do on GitHub, an object from repositories to patterns for paths:
`{"*": ["**/.env"], "https://github.com/octo/app": ["/secrets/**"]}`. It becomes rules that deny.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Rule

KEY = "contentExclusion"
EVERYWHERE = "*"
DEEPEST = 3
MOST_FOLDERS = 2000
"""How far repositories inside the workspace are looked for."""
_REMOTE = re.compile(rb"^\s*url\s*=\s*(.+?)\s*$", re.MULTILINE)
_ADDRESS = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?([^:/]+)(?::\d+(?=/))?[:/]+(.+?)(?:\.git)?/*")


def read_policy(folder: str) -> dict[str, Any]:
    """By file, what the machine's policy excludes. What cannot be read lets no session start."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(folder, str(error)) from None
    found = {}
    for file in (os.path.join(folder, name) for name in names):
        try:
            content = read_jsonc(read_regular(file))
        except (OSError, JsonProblem) as error:
            raise _unreadable(file, str(error)) from None
        if isinstance(content, dict) and KEY in content:
            found[file] = content[KEY]
    return found


def _unreadable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The policy {path} cannot be read ({why}): have it corrected.")


def to_rules(given: Any, source: str, folders: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that a source's exclusions are in a workspace. Raises `ConfigurationError`."""
    patterns = _check(given, source)
    rules: list[Rule] = []
    named = patterns.keys() - {EVERYWHERE}
    repositories = list(_find_repositories(folders)) if named else []
    for name, paths in patterns.items():
        if name == EVERYWHERE:
            roots = [*map(_find_root, folders), os.sep]
        else:
            roots = [root for root, urls in repositories if _is_meant(name, urls)]
        for root in dict.fromkeys(roots):
            for path in paths:
                rules += [Rule(kind, path, source, root) for kind in ("read", "write")]
    return tuple(rules)


def find_addresses(folders: Sequence[str]) -> list[str]:
    """The addresses of a workspace's repositories, as GitHub is asked about them."""
    names = (name for _, urls in _find_repositories(folders) for name in sorted(urls))
    return [f"https://{name}" for name in dict.fromkeys(names) if "." in name.partition("/")[0]]


def _check(given: Any, source: str) -> Mapping[str, Sequence[str]]:
    from trimtab.permissions.exclusions import compile_pattern

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
    return isinstance(value, list) and all(isinstance(one, str) and one.strip("/") for one in value)


def _find_root(folder: str) -> str:
    from trimtab.config.trust import find_root

    return find_root(os.path.realpath(folder))


def _find_repositories(folders: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Repositories of a workspace, each with the names its remotes give it."""
    for folder in folders:
        root = _find_root(folder)
        yield root, _read_remotes(root)
        for nested in _find_nested(os.path.realpath(folder)):
            yield nested, _read_remotes(nested)


def _find_nested(folder: str) -> Iterator[str]:
    waiting, looked_at = [(folder, 0)], 0
    while waiting and looked_at < MOST_FOLDERS:
        place, depth = waiting.pop(0)
        looked_at += 1
        try:
            with os.scandir(place) as entries:
                inner = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for path in inner:
            if os.path.lexists(os.path.join(path, ".git")):
                yield path
            if depth + 1 < DEEPEST and os.path.basename(path) != ".git":
                waiting.append((path, depth + 1))


def _read_remotes(root: str) -> set[str]:
    from trimtab.workspace.sandbox.policy import find_git

    git = find_git(root)
    try:
        data = read_regular(os.path.join(git.common, "config")) if git else b""
    except OSError:
        data = b""
    return {_normalise(url.decode("utf-8", "replace").strip('"')) for url in _REMOTE.findall(data)}


def _is_meant(name: str, urls: Iterable[str]) -> bool:
    """Whether a repository is meant: by an address, a pattern of one, or how one ends."""
    from fnmatch import fnmatchcase

    wanted = _normalise(name)
    return any(fnmatchcase(url, one) for url in urls for one in (wanted, f"*/{wanted}"))


def _normalise(address: str) -> str:
    """A repository's address without what may differ: scheme, user, port, ending, case."""
    match = _ADDRESS.fullmatch(address.strip().lower())
    return f"{match[1]}/{match[2]}" if match else address.strip().lower()
