"""Commands that do what the tools that write files do: a rule for writing covers them.

Every word of such a command is literal, and every path is inside the allowed directories and not
protected.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from trimtab.contracts.permission import Policy
from trimtab.permissions.agent_folders import is_guarded
from trimtab.permissions.paths import is_inside
from trimtab.permissions.read_folders import is_secret
from trimtab.permissions.shell.programs.filters import sed_is_plain
from trimtab.permissions.shell.verdict.analysis import Analysis, Found

COMMANDS = frozenset(("mkdir", "touch", "cp", "mv", "rm", "rmdir", "unlink", "chmod", "sed", "tee"))
ON_FILES = COMMANDS | frozenset(
    (
        *("ln", "install", "tar", "zip", "7z", "dd", "rsync", "scp", "ditto", "base64", "gzip"),
        *("bzip2", "xz", "zstd", "pax", "cpio", "unzip", "gunzip", "bunzip2", "unxz", "unzstd"),
        *("7za", "7zz", "xxd", "uniq", "split", "csplit", "truncate"),
    )
)
"""Programs that do nothing but work on the files they are given, and copy their contents."""
COPYING = frozenset(("cp", "mv"))
"""Those that put a link in a new place, if they are given one."""
_CHANGING_SOURCES = {
    **dict.fromkeys(("cp", "ln", "tar", "unzip", "scp", "install", "ditto"), ""),
    "rsync": r"--rem",
    "zip": r"-\w*m|--move",
}
"""Programs that only read what they copy from, pack or link to, but with these options."""
MAX_ENTRIES = 2000
"""The number of entries of folders that are searched for links."""
_MODE = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]+(?:,[ugoa]*[-+=][rwxX]+)*")
"""A mode without the bits by which a program gets the rights of its owner."""
_SED_OPTION = re.compile(r"-[Ernsz]*(?:i(?:\.\w+)?|e)?|--in-place(?:=\.\w+)?")
"""Options of sed that it edits files by; a backup stays beside the file."""
_TEE_OPTION = re.compile(r"-[aip]+|--append")


def works_on_files(found: Found) -> bool:
    """Return True for a command that does nothing but work on the files it is given, or for git."""
    return found.base in ON_FILES or found.base.startswith("git ")


def changes_named_files(identifiers: Sequence[str], analysis: Analysis, policy: Policy) -> bool:
    """Return True if these commands of a script change nothing but files that it names."""
    if not COMMANDS.issuperset(identifiers) or not analysis.touched or analysis.unsure:
        return False
    found = [command for command in analysis.commands if command.identifier in identifiers]
    if not all(command.literal and _is_plain_call(command) for command in found):
        return False
    if not are_changeable(analysis.touched, policy):
        return False
    # A link in a new place would lead the commands after it elsewhere.
    return not any(map(_holds_link, _find_sources(found, analysis.touched)))


def are_changeable(paths: Iterable[str], policy: Policy) -> bool:
    """Return True if a rule for writing covers all these paths."""
    return all(is_inside(path, policy.roots) and not is_guarded(path, policy) for path in paths)


def _is_plain_call(found: Found) -> bool:
    """Return False for a call whose options or script do more than change the files it names."""
    words = found.words[1:]
    match found.identifier:
        case "chmod":
            plain = bool(words) and _MODE.fullmatch(words[0]) is not None
            return plain and not any(word.startswith("-") for word in words[1:])
        case "sed":
            return _edits_in_place(words)
        case "tee":
            return all(_TEE_OPTION.fullmatch(word) for word in words if word.startswith("-"))
        case _:
            return True


def _edits_in_place(words: Sequence[str]) -> bool:
    """Return True if `sed` is given options that only edit, and scripts that only transform.

    The sed of macOS takes the word behind a bare `-i` as the ending of backups: only an empty one
    leaves no doubt which word is the script.
    """
    options = [word for word in words if word.startswith("-")]
    scripts = [text for option, text in pairwise(words) if re.fullmatch(r"-[Ernsz]*e", option)]
    operands = [word for word in words if word and not word.startswith("-")]
    if sys.platform == "darwin" and any(
        before.endswith("i") and word for before, word in pairwise(words) if before[:1] == "-"
    ):
        return False
    named = scripts or operands[:1]
    return all(map(_SED_OPTION.fullmatch, options)) and all(map(sed_is_plain, named))


def _find_sources(commands: Iterable[Found], paths: Iterable[str]) -> list[str]:
    """Return the paths, of those a script names, that it copies or moves elsewhere."""
    words: set[str] = set()
    for found in commands:
        if found.identifier in COPYING:
            words.update(found.words[1:] if _names_folder_first(found) else found.words[1:-1])
    return [path for path in paths if _is_one_of(path, words)]


def find_copied(commands: Iterable[Found], paths: Iterable[str]) -> list[str]:
    """Return the paths, of those a script names, that its commands surely only read."""
    read: set[str] = set()
    written: set[str] = set()
    for found in commands:
        words = found.words[1:]
        operands = [word for word in words if word[:1] != "-"]
        sources = _find_read(found, operands)
        read.update(sources)
        written.update(word for word in words if word not in sources and _find_tail(word))
    return [path for path in paths if _is_one_of(path, read) and not _is_one_of(path, written)]


def _find_read(found: Found, operands: Sequence[str]) -> Sequence[str]:
    """Return the words of a command that are copied from, linked to, or packed."""
    unlike = _CHANGING_SOURCES.get(found.base)
    if unlike is None or (_names_folder_first(found) and found.base != "tar"):
        return ()
    options = [word for word in found.words[1:] if word[:1] == "-"]
    changes = any(re.match(unlike, option) for option in options) if unlike else False
    match found.base:
        case "tar":
            sources = _find_packed(found.words[1:])
        case "ln":  # a second name of a file would let it be changed
            symbolic = any(re.match(r"-\w*s|--s", option) for option in options)
            sources = (operands[:-1] or operands) if symbolic else ()
        case "zip":
            sources = operands[1:]
        case "unzip":
            sources = operands[:1]
        case _:
            sources = operands[:-1]
    return () if changes else sources


def _find_packed(words: Sequence[str]) -> Sequence[str]:
    """Return what `tar` packs, or the archive that it unpacks; nothing if that is not plain."""
    letters = words[0].lstrip("-") if words else ""
    if not re.fullmatch(r"[cxt][vzjJpk]*f", letters) or any(w[:1] == "-" for w in words[1:]):
        return ()
    return words[2:] if letters[0] == "c" else words[1:2]


def _names_folder_first(found: Found) -> bool:
    """Return True if the place to copy to is named by an option."""
    return any(re.match(r"-\w*t|--t", word) for word in found.words)


def is_named(path: str, commands: Iterable[Found]) -> bool:
    """Return True if one of these commands is given a path."""
    return _is_one_of(path, {word for found in commands for word in found.words[1:]})


def _is_one_of(path: str, words: Iterable[str]) -> bool:
    """Return True if one of the words may stand for a path, from whatever folder it counts."""
    given = os.path.normpath(path) + os.sep
    tails = map(_find_tail, words)
    return any(not tail or given.endswith(f"{os.sep}{tail}{os.sep}") for tail in tails)


def _find_tail(word: str) -> str:
    """Return the end of a word that a path has, too, from whatever folder it counts."""
    parts = os.path.normpath(word).split(os.sep)
    return os.sep.join(part for part in parts if part not in (os.curdir, os.pardir, "~", ""))


def _holds_link(path: str) -> bool:
    """Return True if a path is a link, or a folder in which there may be one."""
    entries = enumerate(_walk(path))
    return os.path.islink(path) or any(
        count >= MAX_ENTRIES or entry.is_symlink() for count, entry in entries
    )


def holds_secret(path: str) -> bool:
    """Return True for a folder in which a name is one that secrets have, or too many are."""
    entries = enumerate(_walk(path))
    return any(count >= MAX_ENTRIES or is_secret(entry.name) for count, entry in entries)


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    folders = [folder]
    for place in folders:  # grows on the way
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:  # a file, or nothing
            continue
