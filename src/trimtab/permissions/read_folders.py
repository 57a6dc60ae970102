"""Folders outside the workspace that lasting answers let be read, apart from their secrets."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.paths import fold, is_inside, resolve

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", "gcloud", ".terraform.d"),
    *(".password-store", ".mozilla", ".thunderbird", "keyring*", "keychain*", "*cookies*"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc*", ".pypirc", ".vault-token"),
    *(".env", ".env.*", "*.env", ".envrc", "auth.json", "auth.toml", "hosts.yml", "shadow*"),
    *("*credential*", "*secret*", "*password*", "*passwd*", "*token*", "*oauth*", "login data*"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx"),
    *("*.jks", "*.keystore", "*.kdbx", "*_history", "*.history", ".claude.json*"),
)
"""Names of files and folders that may hold secrets: no rule for a whole folder covers them.

In lower case; a star stands for anything at the beginning or the end, and nowhere else.
"""
SHARED = frozenset(
    (
        *(".config", ".local", ".local/share", ".local/state", ".cache", ".var", ".var/app"),
        *("Library", "Library/Application Support", "Library/Caches", "Library/Preferences"),
        *("Desktop", "Documents", "Downloads", "Dropbox", "Movies", "Music", "Pictures"),
        *("Public", "Videos", "snap"),
    )
)
"""Folders of a home directory that belong to no single program or project."""
SYSTEM = frozenset(("proc", "sys", "dev", "run", "boot", "root", "home", "Users", "private"))
"""Folders of the root in which nothing is offered, but for temp folders."""
TEMP = (("tmp",), ("var", "tmp"), ("private", "tmp"))
KEPT = ("location", "always")
"""The sources of rules that are kept answers."""
ANSWERS = (*KEPT, "session", "for-session", "for-location", "permanently")
"""The sources of rules that are answers to questions."""
_EXACT = frozenset(SECRETS)
_STARTS = tuple(name[:-1] for name in SECRETS if name.endswith("*") and name[0] != "*")
_ENDS = tuple(name[1:] for name in SECRETS if name.startswith("*") and name[-1] != "*")
_WITHIN = "|".join(name.strip("*") for name in SECRETS if name[0] == name[-1] == "*")
_UNFIT = r"[\x00-\x1f\x7f-\x9f(),*?\[\]{}\\]"
"""Characters that a rule, or a line that shows it, cannot hold."""


@cache
def _find_within() -> Callable[[str], re.Match[str] | None]:
    """Return the search for words within names, compiled when it is first needed."""
    return re.compile(_WITHIN).search


def is_secret(path: str, folder: str = "") -> bool:
    """Return True if a name in a path, below a folder, is one that secrets have."""
    names = path.removeprefix(folder).casefold()
    return _find_within()(names) is not None or any(
        name in _EXACT or name.startswith(_STARTS) or name.endswith(_ENDS)
        for name in names.split(os.sep)
    )


def name_folder(rule: Rule) -> str:
    """Return the folder below which a rule allows reading; empty for any other rule."""
    argument = rule.argument or ""
    if rule.kind != "read" or rule.root or not argument.endswith("/"):
        return ""
    folder = os.path.normpath(os.path.expanduser(argument))
    return folder if os.path.isabs(folder) and folder.strip(os.sep) else ""


def covers_below(folder: str, path: str) -> bool:
    """Return True if a rule for a folder covers a resolved path.

    The folder is taken as it is written: if a link replaces it, nothing below is covered.
    """
    start = fold(folder.rstrip(os.sep) + os.sep)
    if fold(path) == fold(folder):
        return True
    return fold(path).startswith(start) and not is_secret(path, folder)


def freeze(rules: Iterable[Rule], homes: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return rules that allow, with the links in their full paths resolved once and for all.

    Kept answers were resolved when they were given: a link put there since opens nothing.
    Only a person's rule stands for what is below a folder: one of a repository's file, which is
    outside `homes`, names just the folder.
    """
    return tuple(_freeze(rule, homes) for rule in rules)


def _freeze(rule: Rule, homes: Sequence[str]) -> Rule:
    argument = rule.argument or ""
    path = os.path.expanduser(argument)
    if rule.kind in ("shell", "url") or rule.root or not os.path.isabs(path):
        return rule
    if rule.source in KEPT:
        return rule
    of_person = not os.path.isabs(rule.source) or is_inside(rule.source, homes)
    end = "/" if argument.endswith("/") and path.strip("/") and of_person else ""
    return msgspec.structs.replace(rule, argument=resolve(path) + end)


def find_granted(paths: Iterable[str], policy: Policy) -> tuple[str, ...]:
    """Return the folders and files that rules allow to be read, for paths outside the roots."""
    inside = (*policy.roots, *policy.readable)
    spots = [resolve(path) for path in paths if not is_inside(path, inside)]
    named = [(rule, name_folder(rule)) for rule in policy.allow if rule.kind == "read"]
    folders = [folder for _, folder in named if folder]
    files = [rule.argument for rule, folder in named if rule.argument and not folder]
    granted = [folder for folder in folders if any(covers_below(folder, spot) for spot in spots)]
    granted += [path for path in files if path in spots and os.path.isfile(path)]
    return tuple(dict.fromkeys(granted))


def offer_folders(paths: Iterable[str], policy: Policy) -> list[str] | None:
    """Return the folders that would have to be allowed to read all paths; None if one may not."""
    folders = [find_folder(path, policy) for path in paths]
    return list(dict.fromkeys(folders)) if all(folders) else None


def find_folder(path: str, policy: Policy) -> str:
    """Return the narrowest useful folder to allow for reading a path; empty if none is offered.

    Below a folder that belongs to one program (`~/.tool`) that is the program's, in a repository
    the repository's. Never offered: homes, shared folders, anything named like a secret.
    """
    real = resolve(_before_pattern(path))
    folder = real if path.endswith(os.sep) or os.path.isdir(real) else os.path.dirname(real)
    home = resolve(policy.home) if policy.home else ""
    inside = home not in ("", os.sep) and is_inside(folder, (home,))
    parts = [part for part in folder[len(home) if inside else 0 :].split(os.sep) if part]
    count = _count_own(parts) if inside else _count_elsewhere(parts)
    if not count or is_secret(os.sep.join(parts)) or re.search(_UNFIT, folder):
        return ""
    base = home if inside else ""
    chosen = os.sep.join((base, *parts[:count]))
    if inside and not parts[0].startswith("."):
        chosen = _find_repository(folder, home) or chosen
    held = (home, *policy.homes) if home else policy.homes
    if any(is_inside(kept, (chosen,)) for kept in held) or is_inside(chosen, policy.homes):
        return ""
    return chosen if covers_below(chosen, real) else ""


def _before_pattern(path: str) -> str:
    """Return the folder in which a pattern begins to match; a path without one as it is."""
    match = re.search(r"[*?\[]", path)
    return path[: path.rindex(os.sep, 0, match.start()) + 1] if match else path


def _count_own(parts: Sequence[str]) -> int:
    """Return how many folders below the home name what belongs together; 0 for what is shared."""
    lengths = range(1, len(parts) + 1)
    own = next((n for n in lengths if os.sep.join(parts[:n]) not in SHARED), 0)
    return own if parts and parts[0].startswith((".", "Library")) else len(parts) * bool(own)


def _count_elsewhere(parts: Sequence[str]) -> int:
    for temp in TEMP:
        if tuple(parts[: len(temp)]) == temp:
            return len(temp) + 1 if len(parts) > len(temp) else 0
    return len(parts) if len(parts) > 1 and parts[0] not in SYSTEM else 0


def _find_repository(folder: str, home: str) -> str:
    """Return the repository that holds a folder of a home; empty if none does."""
    place = folder
    while len(place) > len(home):
        if os.path.exists(os.path.join(place, ".git")):
            return place
        place = os.path.dirname(place)
    return ""


def find_secret_rules(folders: Iterable[str]) -> Iterator[Rule]:
    """Return rules that deny reading the secrets in folders, for the fence and for searches."""
    for folder in folders:
        yield from (Rule("read", name, "secrets", root=folder) for name in SECRETS)
