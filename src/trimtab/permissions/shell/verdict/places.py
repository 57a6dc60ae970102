"""The paths that the words of a command may mean, and the directory in which it runs."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
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

    def enter(self, command: Command) -> None:
        """A command is next: unless it depends on the success of a `cd`, that may have failed."""
        if command.joint not in ("&&", "|") or command.group != self._chain:
            self._now = None if self._ever is None else set(self._ever)
        self._chain = command.group

    def change(self, operands: Sequence[Argument], program: str) -> None:
        """`cd` or `pushd` with these operands."""
        if self._ever is not None and returns(operands, program):
            self._now = set(self._ever)
            return
        target = operands[0].text if operands else self._home
        known = (not operands or operands[0].known) and len(operands) <= 1
        if not known or not target or program == "popd" or self._now is None:
            self._now = self._ever = None
            return
        self._now = {os.path.join(place, target) for place in self._now}
        if self._ever is not None:
            self._ever |= self._now
            if len(self._ever) > MOST:
                self._now = self._ever = None

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
    return len(operands) == 1 and operands[0].text == "-"
