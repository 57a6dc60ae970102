"""Checks of folders that clients name: a session is never let into one that does not exist."""

import os
from collections.abc import Iterable

from trimtab.contracts.errors import UsageError


def require_folder(path: str, base: str | None = None) -> str:
    """Return the path of a folder that exists. Relative paths need a `base`.

    The error begins with the words that clients look for.
    """
    whole = os.path.expanduser(path) if path.startswith("~") else path
    if not os.path.isabs(whole):
        if base is None or not whole:
            raise UsageError(f"Directory path must be absolute: {path}; give the whole path.")
        whole = os.path.join(base, whole)
    if not os.path.exists(whole):
        raise UsageError(
            f"Directory does not exist or cannot be accessed: {path}; name an existing one."
        )
    if not os.path.isdir(whole):
        raise UsageError(f"Not a directory: {path}; name a directory.")
    return whole


def require_folders(paths: Iterable[str], base: str) -> tuple[str, ...]:
    return tuple(require_folder(path, base) for path in paths)
