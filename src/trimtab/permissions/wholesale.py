"""Commands that read whole folders: whether something lies there that rules hold back.

A rule that denies names single files, and such a command names none of them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import iglob
from itertools import islice

import msgspec

from trimtab.contracts.permission import Decision, Policy, Rule
from trimtab.permissions.git_files import is_tracked
from trimtab.permissions.held import holds_back, survey
from trimtab.permissions.rules import covers, name_rule
from trimtab.permissions.shell.analysis import Analysis, Found

MOST_FILES = 1000
_RECURSIVE = re.compile(
    r"-[A-Za-z]*[rR][A-Za-z]*|--(dereference-)?recursive|(--directories=)?recurse"
)
_LITERAL = re.compile(r"""\"(?:\\.|[^"\\])*\"|'[^']*'|\\.""", re.DOTALL)
"""What stands in quotes, or behind a backslash."""
_NAMES_ONLY = re.compile(r"--(stat|shortstat|numstat|name-only|name-status|quiet|dirstat|summary)")
_PATCHES = re.compile(r"-[pu]|--patch.*|-[SGL].*|--cc|-c|-U\d*|--unified.*")
_SEEING_ALL = re.compile(r"-[a-z]*[u.][a-zu.]*|--hidden|--unrestricted|--no-ignore.*")
_FILTERS = {"find": ("-name", "-iname"), "rg": ("-g", "--glob", "--iglob"), "grep": ("--include",)}
_EXTRACTING = re.compile(r"-?[a-bd-qs-tv-zA-Z]*[xt][a-zA-Z]*|--(extract|get|list)")
_INTO_LAST = frozenset(("cp", "mv", "ln", "install", "rsync", "scp"))
_MIXED = re.compile(r"(!|-not) -i?name|-or? (?!-i?name)|(?<!name) \S+ -or? |(^| ),( |$)")
"""Conditions of `find` by which also files with other names pass."""
_FIRST = r"""(?:\s+-\S+)*\s+(?:'[^']*'|"[^"]*"|\S+)"""
"""Options, and then a pattern or script, in which a variable names no file."""


class _Table(msgspec.Struct, frozen=True):
    searchers: frozenset[str]
    """Read the working directory if they are told no other place."""
    greps: frozenset[str]
    """Read folders if an option says so."""
    copiers: frozenset[str]
    """Read the folders they are given."""
    printers: frozenset[str]
    """Print, copy or run what is in a file."""
    scripted: frozenset[str]
    """Take a pattern or script before the files."""
    feeders: frozenset[str]
    """Start other commands with names that are not known before."""
    git: frozenset[str]
    """Show what is in files that git knows."""


@lru_cache(1)
def _table() -> _Table:
    path = os.path.join(os.path.dirname(__file__), "wholesale.json")
    with open(path, "rb") as file:
        given = msgspec.json.decode(file.read(), type=dict[str, str])
    return _Table(**{name: frozenset(words.split()) for name, words in given.items()})


def ask_about_folders(analysis: Analysis, policy: Policy, text: str = "") -> Decision | None:
    """Asks where a command would read, along with the rest, what a rule keeps from being read.

    A sandbox holds that back by itself.
    """
    given = policy.deny if policy.writable is None else policy.late
    rules = [rule for rule in given if holds_back(rule)]
    if not rules:
        return None
    if pattern := _find_masses(analysis):
        reason = f"{pattern} stands for too many files to be sure that no rule holds one back."
        return Decision(verdict="ask", reason=reason)
    for found in analysis.commands:
        for place in _find_places(found, analysis, policy.cwd, text):
            seen = survey(place, rules, policy.cwd)
            for path in seen.found:
                if _reaches(found, analysis, path, place):
                    return _ask(path, rules, found, policy.cwd)
            if not seen.complete:
                reason = f"{place} is too large to be sure that {found.base} reads nothing there"
                return Decision(verdict="ask", reason=f"{reason} that a rule holds back.")
    return None


def shows_hidden(analysis: Analysis) -> bool:
    """Whether a script may have patterns match names with a dot, which they pass over else."""
    return any(found.base in ("shopt", "set") for found in analysis.commands)


def find_files(path: str, *, hidden: bool) -> list[str]:
    """A path, and the files there are if it is a pattern; one more than `MOST_FILES` at most."""
    if not any(character in path for character in "*?["):
        return [path]
    return [path, *islice(iglob(path, include_hidden=hidden), MOST_FILES + 1)]


def _find_masses(analysis: Analysis) -> str | None:
    """A pattern that stands for more files than are looked at."""
    hidden = shows_hidden(analysis)
    paths = (*analysis.reads, *analysis.touched)
    many = (path for path in paths if len(find_files(path, hidden=hidden)) > MOST_FILES)
    return next(many, None)


def _ask(path: str, rules: Sequence[Rule], found: Found, cwd: str) -> Decision:
    rule = next((one for one in rules if covers(one, {path}, cwd, True)), rules[0])
    reason = f"{found.base} would also read {path}, which {_lower(name_rule(rule))} forbids."
    return Decision(verdict="ask", reason=reason, rule=rule)


def _find_places(found: Found, analysis: Analysis, cwd: str, text: str) -> Iterator[str]:
    """The folders that a command would read, if it is one of those that read folders."""
    table, base = _table(), found.base
    words: Sequence[str] = found.words[1:]
    named = [path for path in (*analysis.reads, *analysis.touched) if os.path.isdir(path)]
    if base in table.copiers:
        sources, target = _split(base, words)
        yield from (path for path in named if sources and not _is_called(path, target))
        words = sources
    told = _is_told(words, analysis)
    searches = base in table.searchers and "--files" not in words
    recurses = base in table.greps and any(map(_recurses, words))
    if searches or recurses or (is_git(found) and _prints(base, words)):
        yield from named
        if not told:
            yield cwd
    elif base in table.printers and not told and _is_fed(found, analysis, text):
        yield from (*named, cwd)


def _is_told(words: Sequence[str], analysis: Analysis) -> bool:
    """Whether a command names a file or folder itself."""
    paths = (*analysis.reads, *analysis.touched)
    return any(_is_called(path, word) for word in words if not word.isdigit() for path in paths)


def is_git(found: Found) -> bool:
    return found.base.startswith("git ") and found.base[4:] in _table().git


def _split(base: str, words: Sequence[str]) -> tuple[Sequence[str], str]:
    """What a program copies from, nothing if it only writes; and where it copies to."""
    operation = words[0] if words else ""
    if base in ("docker", "podman"):
        return (words if not {"cp", "build"}.isdisjoint(words) else (), "")
    if base.startswith("7z"):
        return (() if operation in ("x", "e", "l", "t") else words, "")
    if base.endswith("tar"):
        return (() if _EXTRACTING.fullmatch(operation) else words, "")
    if base in _INTO_LAST and not any(word.startswith(("-t", "--target")) for word in words):
        return words[:-1], words[-1] if words else ""
    return words, ""


def _is_called(path: str, word: str) -> bool:
    return bool(word) and (path == word or path.endswith(os.sep + word))


def _recurses(word: str) -> bool:
    return _RECURSIVE.fullmatch(word) is not None


def _prints(base: str, words: Sequence[str]) -> bool:
    """Whether a command of git shows what is in files, and not only their names."""
    patches = any(map(_PATCHES.fullmatch, words))
    if base in ("git log", "git stash"):
        return patches
    return patches or not any(map(_NAMES_ONLY.fullmatch, words))


def _is_fed(found: Found, analysis: Analysis, text: str) -> bool:
    """Whether the files that a command reads are named only when it runs."""
    feeders = _table().feeders
    if any(one.base in feeders and found.base in one.words for one in analysis.commands):
        return True
    first = _FIRST if found.base in _table().scripted else ""
    wanted = rf"(?<![\w./-]){re.escape(found.base)}{first}\s[^|;&\n]*[$`]"
    return re.search(wanted, _LITERAL.sub(_keep_double, text)) is not None


def _keep_double(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else "''"


def _reaches(found: Found, analysis: Analysis, path: str, place: str) -> bool:
    """Whether a command that reads a folder reads this in it, too; False only if that is sure."""
    if is_git(found):
        return is_tracked(path)
    if filters := list(_find_filters(found, analysis)):
        name = os.path.basename(path).lower()
        named = any(fnmatchcase(name, glob.lower().rpartition("/")[2]) for glob in filters)
        return named or os.path.isdir(path)
    if found.base not in ("rg", "ag") or any(map(_SEEING_ALL.fullmatch, found.words[1:])):
        return True
    below = os.path.relpath(path, os.path.realpath(place)).split(os.sep)
    return not any(part[0] == "." for part in below if part not in (os.curdir, os.pardir))


def _find_filters(found: Found, analysis: Analysis) -> Iterator[str]:
    """Patterns for the names of the only files that a command looks at, or is told of by `find`."""
    kind = "grep" if found.base in _table().greps else found.base
    source = found
    if kind not in _FILTERS or (kind == "grep" and not any(map(_recurses, found.words))):
        others = [one for one in analysis.commands if one.base not in (found.base, "xargs")]
        if len(others) != 1:
            return
        (source,), kind = others, others[0].base
    words = source.words
    if _MIXED.search(" ".join(words)):
        return
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in _FILTERS.get(kind, ()):
            value = value if equals else "".join(words[index + 1 : index + 2])
            if value and value[0] != "!":
                yield value


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]
