"""Finds the top folder that git would print, where it is certain that it prints one.

Git fails on a repository that is not whole, or on settings that it does not understand. Nothing
then stands where the folder was to stand in a word, so that another file is meant.
"""

import os
import re

MAX_SETTINGS = 1 << 16
"""Bytes of settings that are looked through."""
_HEAD = re.compile(rb"ref: refs/[\w./+-]+\n?|[0-9a-f]{40}(?:[0-9a-f]{24})?\n?")
_SECTION = re.compile(rb"\[([a-z]+)(?: \"[\w./+@-]+\")?\]", re.IGNORECASE)
_BOOLEAN = (
    rb"(?:filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks)\s*=\s*(?:true|false)"
)
_NAMED = re.compile(rb"[a-z][a-z-]*\s*=[^\"\\\0]*", re.IGNORECASE)
_KEYS = {
    b"core": re.compile(
        rb"repositoryformatversion\s*=\s*0|bare\s*=\s*false|" + _BOOLEAN, re.IGNORECASE
    ),
    b"user": re.compile(rb"(?:name|email|signingkey)\s*=[^\"\\\0]*", re.IGNORECASE),
    b"lfs": re.compile(rb"repositoryformatversion\s*=\s*0", re.IGNORECASE),
}
"""Settings that git surely understands, and by which the top folder stays where it is."""
_WITH_NAMES = frozenset((b"remote", b"branch", b"submodule", b"lfs"))


def find_top(folder: str) -> str:
    """Return the top folder of the repository that a folder is in, if git surely says the same."""
    start = top = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(top, ".git")):
        is_bare = os.path.lexists(f"{top}/HEAD") and os.path.lexists(f"{top}/objects")
        if is_bare or top == (above := os.path.dirname(top)):
            return ""
        top = above
    git = os.path.join(top, ".git")
    if os.path.basename(start) == ".git" or start.startswith(f"{git}/"):
        return ""
    try:
        return top if _is_whole(git) and _is_own(start, top, git) else ""
    except OSError:  # not ours to read
        return ""


def _is_whole(git: str) -> bool:
    """Return True for a repository that git surely takes for one. Raises `OSError`."""
    if os.path.islink(git) or not (
        os.path.isdir(f"{git}/objects") and os.path.isdir(f"{git}/refs")
    ):
        return False  # a worktree or a submodule, whose settings are elsewhere, or none
    if os.path.lexists(f"{git}/commondir") or not os.path.isfile(f"{git}/HEAD"):
        return False
    if not os.path.isfile(f"{git}/config"):
        return False
    with open(f"{git}/HEAD", "rb") as file:
        head = file.read(1 << 12)
    with open(f"{git}/config", "rb") as file:
        settings = file.read(MAX_SETTINGS + 1)
    return (
        _HEAD.fullmatch(head) is not None and len(settings) <= MAX_SETTINGS and _are_plain(settings)
    )


def _are_plain(settings: bytes) -> bool:
    """Return True for settings that git surely understands."""
    known: re.Pattern[bytes] | None = None
    for line in filter(None, (text.strip(b" \t\r") for text in settings.split(b"\n"))):
        if line[:1] == b"[":
            section = _SECTION.fullmatch(line)
            if section is None:
                return False
            name, named = section[1].lower(), b'"' in line
            known = _NAMED if named and name in _WITH_NAMES else None if named else _KEYS.get(name)
        elif known is None or not known.fullmatch(line):
            return False
    return True


def _is_own(start: str, top: str, git: str) -> bool:
    """Return True if git looks no less far, and trusts the owner. Raises `OSError`."""
    there = [os.stat(path) for path in (start, top, git)]
    own = all(status.st_uid == os.geteuid() for status in there[1:])
    return own and len({status.st_dev for status in there}) == 1
