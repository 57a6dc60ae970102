"""What a plugin's folder holds, as a digest: a plugin is trusted as it was when installed."""

import hashlib
import os
import stat

MOST_FILES = 20_000
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a plugin whose content is read; of the rest sizes and times count."""
MADE_BY_RUNNING = frozenset(("__pycache__", ".git"))
INERT = (".txt", ".log", ".db", ".sqlite", ".csv", ".tmp", ".lock", ".pid", ".out")
"""How names of files end that nothing here reads or runs, and that a hook may well write."""


def digest_plugin(root: str) -> str:
    """A digest of every file in a folder, its name, its content and whether it can be run.

    A file that could not act is left out: hooks run in the folder and may keep notes there.
    """
    digest = hashlib.sha256()
    left, count = MOST_BYTES, 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - MADE_BY_RUNNING)
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in sorted((*files, *links)):
            path = os.path.join(folder, name)
            if name.endswith(INERT) and not os.access(path, os.X_OK):
                continue
            count += 1
            if count > MOST_FILES:
                return ""
            digest.update(os.fsencode(os.path.relpath(path, root)) + b"\0")
            left -= _add(digest, path, left)
    return f"sha256:{digest.hexdigest()}"


def _add(digest: "hashlib._Hash", path: str, most: int) -> int:
    """Add one file; returns how many bytes of it were read."""
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            digest.update(b"link " + os.fsencode(os.readlink(path)))
            return 0
        digest.update(b"%o %d\0" % (info.st_mode, info.st_size))
        if not stat.S_ISREG(info.st_mode):
            return 0
        if info.st_size > most:
            digest.update(b"%d %d" % (info.st_mtime_ns, info.st_ctime_ns))
            return 0
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        digest.update(f"unreadable {error.errno}".encode())
        return 0
    return info.st_size
