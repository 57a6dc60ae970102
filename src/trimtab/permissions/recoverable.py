"""Destruction that the session's undo takes back: it needs no question of its own."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import iglob

import msgspec

from trimtab.contracts.permission import Policy
from trimtab.permissions.agent_folders import is_guarded
from trimtab.permissions.paths import is_inside, resolve
from trimtab.permissions.shell.programs.carriers import is_carrier
from trimtab.permissions.shell.programs.destruction import FOUND, RECURSIVE, REVERSIBLE
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.analysis import Analysis, Found
from trimtab.permissions.tracked_files import find_root, is_tracked

MAX_ENTRIES = 10_000
"""The number of entries of folders that are looked at; more are asked about."""
MAX_FILE = 32 * 1024 * 1024
MAX_BYTES = 512 * 1024 * 1024
"""Undo keeps files up to a size, and so much of them in all."""
REGENERATED = frozenset(
    (
        *("node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox"),
        *(".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache", ".angular", ".gradle"),
        *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".eggs", ".dart_tool", "DerivedData"),
    )
)
"""Names of folders that the tools of a project make again, whatever their size."""
OUTPUTS = frozenset(("target", "dist", "build", "out", "coverage", "htmlcov"))
"""Names of such folders that sources may have as well: git must know no file of them."""
_PATTERN = re.compile(r"[*?\[]")
_SHELLS = ("bash", "sh")
_ON_FILES = frozenset((RECURSIVE, FOUND))
"""Destruction of the files that a command names, and of nothing else."""
_DELETERS = frozenset(("rm", "find", "gfind", "git"))


def drop_recoverable(analysis: Analysis, policy: Policy) -> Analysis:
    """Return an analysis without its destruction, if the session can take all of that back."""
    if not policy.undone or not analysis.destructive or not _can_be_undone(analysis, policy):
        return analysis
    return msgspec.structs.replace(analysis, destructive=[])


def find_at_risk(text: str, policy: Policy, interpreter: str) -> list[str] | None:
    """Return what a command would destroy that only undo brings back; None if that is nothing.

    Folders that tools make again and entries of the temp folder are left out. An empty list means
    that it is not known which files are concerned.
    """
    analysis = analyse(text, policy.cwd, policy.home, interpreter)
    if drop_recoverable(analysis, policy) is analysis:
        return None
    if {*analysis.destructive} != {RECURSIVE}:
        return []
    places = [resolve(found) for path in analysis.deleted for found in _expand(path)]
    inside = [path for path in places if is_inside(path, policy.undone)]
    there = [path for path in inside if os.path.lexists(path)]
    return [path for path in there if not _is_made_again(path)] or None


def _can_be_undone(analysis: Analysis, policy: Policy) -> bool:
    if not REVERSIBLE.issuperset(analysis.destructive) or not is_inside(policy.cwd, policy.undone):
        return False
    if analysis.hazards or analysis.dynamic or analysis.problem or analysis.unsure:
        return False
    if not all(_works_here(found, policy) for found in analysis.commands):
        return False
    # The folder in which find begins may be the whole: a name narrows what it deletes.
    started = analysis.reads if FOUND in analysis.destructive else ()
    # To name the whole does not destroy it, and git destroys no more for being given that name.
    by_git = _ON_FILES.isdisjoint(analysis.destructive)
    destroyed = {*analysis.deleted, *(() if by_git else analysis.given)}
    named = {*analysis.given, *analysis.reads} - destroyed
    named = {path for path in named if resolve(path) not in policy.undone}
    paths = (destroyed | named).difference(started)
    if not all(is_inside(path, policy.undone) for path in started):
        return False
    if any(is_guarded(path, policy) for path in analysis.deleted):
        return False
    if not _ON_FILES.issuperset(analysis.destructive):
        # What git throws away in the temp folder may belong to a worktree of this repository.
        policy = msgspec.structs.replace(policy, temp="")
    return all(_is_kept(path, policy) for path in paths) and _are_kept(analysis.deleted)


def _works_here(found: Found, policy: Policy) -> bool:
    """Return False for a program that starts others elsewhere, and for words that are not known."""
    if found.shadow or (is_carrier(found.base) and found.base not in _SHELLS):
        return False
    program = found.base.partition(" ")[0]
    if program == "git" and not _is_repository_here(found.words[1:], policy):
        return False
    plain = found.spelled if program == "rm" else found.literal
    return plain or program not in _DELETERS


def _is_repository_here(words: Sequence[str], policy: Policy) -> bool:
    """Return True if git works in a folder that undo covers, by the options before its command."""
    if words[:1] == ("-C",):
        place = os.path.join(policy.cwd, *words[1:2])
        return is_inside(place, policy.undone) and _is_repository_here(words[2:], policy)
    if words[:1] == ("--no-pager",):
        return _is_repository_here(words[1:], policy)
    return not words or not words[0].startswith("-")


def _is_kept(path: str, policy: Policy) -> bool:
    """Return True for a place below a folder that undo covers, or for an entry of the temp folder.

    The folders themselves are not: nothing would be left to go on with. What lies beside a
    workspace in the temp folder may be another one, and a pattern for folders may match links.
    """
    real = resolve(path)
    if real in policy.undone or _PATTERN.search(os.path.dirname(path)):
        return False
    if is_inside(real, policy.undone):
        return True
    if not policy.temp or real == policy.temp or is_inside(policy.cwd, (policy.temp,)):
        return False
    return is_inside(real, (policy.temp,)) and not _PATTERN.search(path)


def _are_kept(paths: Iterable[str]) -> bool:
    """Return True if the files below some paths are few and small enough for undo to keep."""
    left, room = MAX_ENTRIES, MAX_BYTES
    there = (found for path in paths for found in _expand(path))
    folders = [path for path in there if not _is_made_again(path.rstrip("/"))]
    for folder in folders:  # grows on the way
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    size = entry.stat(follow_symlinks=False).st_size
                    room -= size
                    if left < 0 or room < 0 or size > MAX_FILE:
                        return False
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            if os.lstat(folder).st_size > MAX_FILE:
                return False
        except OSError:
            return False
    return True


def _is_made_again(path: str) -> bool:
    """Return True for a folder that the tools of a project make again."""
    name = os.path.basename(path)
    if name not in OUTPUTS:
        return name in REGENERATED
    return find_root(path) is not None and not is_tracked(path)


def _expand(path: str) -> Iterable[str]:
    return iglob(path, include_hidden=True) if _PATTERN.search(path) else (path,)
