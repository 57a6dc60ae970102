"""The paths that the words of a command may mean, and the directory in which it runs."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase

from trimtab.permissions.shell.grammar.syntax import Command
from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.verdict.repositories import starts_programs

MOST = 16
_TOP = frozenset(
    (
        *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "media", "mnt", "opt"),
        *("proc", "root", "run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var", "Users"),
        *("Library", "System", "Volumes", "private", "Applications", "nix", "cores"),
    )
)
_PATH_LIKE = re.compile(r"[~./]|.*[/.]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NO_PLACES = frozenset(
    ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom", "/")
)

_JOINTS = re.compile(r"[=,:;@<>{}()\[\]]")
"""Characters behind which the name of a file may stand in a word."""
_ROTATING = re.compile(r"[-+]\d+")
"""The number of a directory that a shell has noted."""
_LETTERS = 8
"""So many letters of options may stand before a name in the same word."""


class Places:
    """Follows `cd` as far as its effect is known."""

    def __init__(self, cwd: str, home: str) -> None:
        self._cwd = cwd
        self._home = home
        self._now: set[str] | None = {cwd}
        self._ever: set[str] | None = {cwd}
        self._chain = -1
        self._certain = False
        """True if the next command runs where this one leads, or not at all."""
        self._may_lead_home = False
        self._again = False
        self.roams = False
        """True if commands may also run somewhere below the folders that are known."""

    def enter(self, command: Command, *, moves: bool, fixed: bool = True) -> None:
        """A command is next: unless it depends on the success of a `cd`, that may have failed.

        It `moves` if it is itself a builtin that does, not a program that is told to. A word of it
        that is not `fixed` may turn out to be empty, or nothing at all: a `cd` then leads home.
        """
        if command.joint not in ("&&", "|") or command.group != self._chain:
            self._now = None if self._ever is None else set(self._ever)
        self._chain = command.group
        self._certain = moves and fixed and command.joint != "||" and not command.apart
        split = any(piece.splits for word in command.words for piece in word.pieces)
        self._may_lead_home = moves and split and not fixed

    def enter_again(self) -> None:
        """Commands are next that run again: now they may be wherever the script has gone."""
        self._now = None if self._ever is None else set(self._ever)
        self._chain, self._again = -1, True

    @contextmanager
    def visit(self, folders: Sequence[Argument | None], *, roams: bool = False) -> Iterator[None]:
        """For as long as this lasts, commands run in other folders, and below if it `roams`."""
        before = self._now, self._ever, self._chain, self.roams
        known = [folder.text for folder in folders if folder is not None and folder.known]
        if len(known) < len(folders):
            self._now = self._ever = None
        elif known and self._now is not None:
            self._now = {os.path.join(place, name) for place in self._now for name in known}
            self._ever = set(self._now)
        self.roams = self.roams or roams
        try:
            yield
        finally:
            self._now, self._ever, self._chain, self.roams = before

    def change(self, operands: Sequence[Argument], program: str, *, stays: bool) -> list[str]:
        """`cd` or `pushd` with these operands; return where it leads besides what they name.

        With `stays` it may only note the folder.
        """
        if self._ever is not None and returns(operands, program):
            self._now = set(self._ever)
            return []
        target = operands[0].text if operands else self._home
        known = (not operands or operands[0].known) and len(operands) <= 1
        if not known or not target or program == "popd" or self._now is None:
            self._now = self._ever = None
            return []
        named = {os.path.join(place, target) for place in self._now}
        # The shell takes `link/..` for the folder of the link, other programs for what is above
        # the folder it leads to.
        climbed = {os.path.normpath(path) for path in named if os.pardir in path.split(os.sep)}
        further = climbed - set(map(os.path.realpath, named)) - named
        if self._may_lead_home and self._home:
            named.add(self._home)
        reached = self._find_new(named | further)
        if self._ever is not None:
            self._now = reached | (set() if self._certain and not stays else self._ever)
            self._ever |= reached
            if len(self._ever) > MOST:
                self._now = self._ever = None
        return sorted(further)

    def _find_new(self, reached: set[str]) -> set[str]:
        """Return the folders a command leads to; for one that runs again, those that are new."""
        if not self._again or self._ever is None:
            return reached
        there = set(map(os.path.realpath, self._ever))
        known = {
            path for path in self._ever if os.path.realpath(path) in map(os.path.realpath, reached)
        }
        return known | {
            path for path in reached if os.path.isdir(path) and os.path.realpath(path) not in there
        }

    def list_now(self) -> Sequence[str]:
        """Return the directories in which the next command may run; none if they are not known."""
        return sorted(self._now or ())

    @property
    def count(self) -> int:
        """The number of directories in which commands may run; -1 if that is not known."""
        return -1 if self._ever is None else len(self._ever)

    @property
    def unknown(self) -> bool:
        return self._now is None

    def resolve(self, text: str) -> list[str]:
        """The absolute paths a word may mean; none if that is not known."""
        beginning = text.partition(UNKNOWN)[0]
        if text != beginning:
            # Of `/etc/$x` the folder is known, of `$x/etc` nothing is.
            if "/" not in beginning:
                return []
            text = beginning[: beginning.rindex("/") + 1]
            if ".." in text.split("/"):
                return [os.path.join(place, text) for place in sorted(self._now or {self._cwd})]
        if os.path.isabs(text):
            return [text]
        return [os.path.join(place, text) for place in sorted(self._now or ())]

    def is_near(self, text: str) -> bool:
        """Return True for a file or folder in ours or below; not for the input or an address."""
        if text in ("", "-") or UNKNOWN in text or ":" in text or text.startswith("github.com/"):
            return False
        top = os.path.realpath(self._cwd)
        paths = [os.path.realpath(path) for path in self.resolve(text)]
        return bool(paths) and all(f"{path}/".startswith(f"{top}/") for path in paths)

    def is_folder(self, text: str) -> bool:
        """Return True for the name of a folder."""
        return UNKNOWN not in text and any(map(os.path.isdir, self.resolve(text)))

    def find_options(self, pattern: str) -> list[str] | None:
        """Return the files named like options that a pattern matches; None if that is not known."""
        if self._now is None:
            return None
        first = pattern.partition("/")[0].replace(UNKNOWN, "*")
        found: list[str] = []
        for place in sorted(self._now):
            with suppress(OSError):
                found += [n for n in os.listdir(place) if n[0] == "-" and fnmatchcase(n, first)]
        return found

    def find_repository(self, folders: Sequence[Argument]) -> str:
        """Return a folder below ours whose files git would take for its settings and hooks.

        Such files can be committed like any other, but for a folder that is called `.git`; one of
        that name counts if its settings start programs, since an archive may bring it along.
        """
        top = os.path.realpath(self._cwd)
        for place in sorted(self._now or ()):
            path = os.path.realpath(os.path.join(place, *(folder.text for folder in folders)))
            while path.startswith(top + os.sep) and not os.path.lexists(f"{path}/.git"):
                if os.path.lexists(f"{path}/HEAD") and os.path.isdir(f"{path}/objects"):
                    return path
                path = os.path.dirname(path)
            if path.startswith(top + os.sep) and starts_programs(path):
                return path
        return ""

    def find_pushed(self, text: str) -> str:
        """Return a repository below ours that starts programs when it is pushed to."""
        top = os.path.realpath(self._cwd)
        paths = (os.path.realpath(path) for path in self.resolve(text) if text[:1] != "-")
        inside = (path for path in paths if path.startswith(top + os.sep) and os.path.isdir(path))
        return next(filter(starts_programs, inside), "")

    def paths_in(self, argument: Argument, *, certain: bool = False) -> list[str]:
        """Yield what may be a path in an argument, as it is written; if `certain`, it is one."""
        text = argument.text
        if certain and text[:1] == "/" and not argument.pattern:
            return [] if text in _NO_PLACES - {"/"} or text.startswith("/dev/fd/") else [text]
        if argument.pattern and text[:1] == "/":
            text = re.split(r"[*?\[]", text)[0].rpartition("/")[0] + "/"
        candidates = [text]
        if text[:1] == "-":
            _, equals, value = text.partition("=")
            attached = [text[2:]] if text[2:3] in ("/", "~", ".") and text[2:] != "/" else []
            candidates = [value] if equals else attached
            if os.pardir in text.split("/"):  # behind `--` it is a path
                candidates.append(text)
        elif "=" in text and not _URL.match(text):
            candidates.append(text.partition("=")[2])
        candidates += self._find_links(text)
        return [candidate for candidate in candidates if self._is_path(candidate, certain=certain)]

    def _find_links(self, text: str) -> list[str]:
        """Return the parts of a word that begin with the name of a link: `-olink`, `x=@a,link`."""
        parts = _JOINTS.split(text)[1:]
        if text[:1] == "-" and text[1:2] != "-":
            parts += [text[start:] for start in range(2, min(len(text), _LETTERS))]
        tops = ((part, part.partition("/")[0]) for part in parts if UNKNOWN not in part)
        places = self._now or {self._cwd}
        return [
            part
            for part, top in tops
            if top and any(os.path.islink(os.path.join(place, top)) for place in places)
        ]

    def _is_path(self, text: str, *, certain: bool) -> bool:
        if not text or text in _NO_PLACES - {"/"} or _URL.match(text):
            return False
        if text.startswith("/dev/fd/") or ("\n" in text and not certain):
            return False
        if text[0] == "/":
            return certain or text == "/" or self._begins_path(text)
        if text == UNKNOWN:
            return False
        if certain or " " not in text or text.startswith((".", "~")):
            return True
        climbs = os.pardir in text.split("/")
        paths = map(os.path.normpath, self.resolve(text)) if climbs else (text,)
        return any(map(os.path.exists, paths))

    def _begins_path(self, text: str) -> bool:
        """Return True if a text with a slash in front begins like a path of this machine."""
        top = os.path.normpath(text).lstrip("/").split("/")[0].partition(UNKNOWN)[0]
        if top in _TOP or text.startswith((self._cwd, self._home or "\0")):
            return True
        return top != "" and os.path.lexists(f"/{top}")

    def is_critical(self, argument: Argument) -> bool:
        """Return True if removing this would take away what everything else rests on."""
        text = argument.text
        if argument.pattern and text.strip("./") in ("*", ".*", "**", "[!.]*"):
            return True
        if text == "/" or text.startswith((UNKNOWN + "/", "/" + UNKNOWN)):
            return True
        if UNKNOWN in text:
            return False
        for place in self.resolve(text.rstrip("*") if argument.pattern else text):
            path = os.path.normpath(place)
            parents = (self._cwd, self._home or self._cwd)
            if path.count("/") <= 1 or os.path.basename(path) == ".git":
                return True
            if any(own == path or own.startswith(path.rstrip("/") + "/") for own in parents):
                return True
        return False


def returns(operands: Sequence[Argument], program: str) -> bool:
    """True if it returns to an earlier directory of the script; commands inherit none."""
    if program == "popd":
        return not operands
    if program == "pushd" and (not operands or _ROTATING.fullmatch(operands[0].text)):
        return True
    return len(operands) == 1 and operands[0].text == "-"
