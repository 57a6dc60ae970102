"""`find`, `fd`, `sed`, `awk` and git's own carriers: languages of their own in their arguments."""

import os
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.carriers import run_script
from trimtab.permissions.shell.programs.destruction import FOUND
from trimtab.permissions.shell.programs.filters import awk_is_plain, sed_is_plain
from trimtab.permissions.shell.programs.options import Program, read_leading, read_options

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.judge import Judge

_FIND_FLAGS = frozenset(
    (
        *(
            "-L",
            "-P",
            "-H",
            "-daystart",
            "-depth",
            "-d",
            "-follow",
            "-ignore_readdir_race",
            "-mount",
        ),
        *(
            "-noleaf",
            "-noignore_readdir_race",
            "-nowarn",
            "-warn",
            "-xdev",
            "-empty",
            "-executable",
        ),
        *("-false", "-nogroup", "-nouser", "-readable", "-true", "-writable", "-print", "-print0"),
        *("-ls", "-prune", "-quit", "-a", "-and", "-o", "-or", "-not", "!", "(", ")", ",", "-E"),
    )
)
_FIND_VALUED = frozenset(
    (
        *("-maxdepth", "-mindepth", "-regextype", "-amin", "-anewer", "-atime", "-cmin", "-cnewer"),
        *("-ctime", "-fstype", "-gid", "-group", "-ilname", "-iname", "-inum", "-ipath", "-iregex"),
        *("-iwholename", "-links", "-lname", "-mmin", "-mtime", "-name", "-newer", "-newermt"),
        "-files0-from",
        *(
            "-newerct",
            "-newerat",
            "-path",
            "-perm",
            "-regex",
            "-samefile",
            "-size",
            "-type",
            "-uid",
        ),
        *("-used", "-user", "-wholename", "-xtype", "-printf", "-D"),
    )
)
_FIND_FILES = frozenset(("-newer", "-anewer", "-cnewer", "-samefile", "-files0-from"))
_FIND_STARTS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FIND_WRITES = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))
_FD = Program(
    flags="HIuUsigFap0lL1qhVE",
    valued="dtSecjEo",
    long=(
        "--hidden --no-ignore --unrestricted --case-sensitive --ignore-case --glob --regex "
        "--fixed-strings --absolute-path --list-details --follow --full-path --print0 --max-depth= "
        "--min-depth= --exact-depth= --exclude= --type= --extension= --size= --changed-within= "
        "--changed-before= --owner= --color= --threads= --max-results= --quiet --base-directory= "
        "--path-separator= --search-path= --no-ignore-vcs --strip-cwd-prefix? --version --help"
    ),
)
_SED = Program(
    flags="nErsuz",
    valued="el",
    runs="-f= --file=",
    changes="-i? --in-place?",
    long="--quiet --silent --expression= --regexp-extended --separate --unbuffered --null-data "
    "--line-length= --posix --debug --sandbox --follow-symlinks --help --version",
)
_AWK = Program(
    flags="bcChnNMOPrsStV",
    valued="Fv",
    runs="-f= --file= -i= --include= -l= --load= -E= --exec= -W= -e= --source=",
    writes="-o? --pretty-print? -d? --dump-variables? -p? --profile?",
    long="--field-separator= --assign= --posix --traditional --re-interval --sandbox --csv "
    "--characters-as-bytes --non-decimal-data --lint? --optimize --version --help",
)
_EXEC = Program(
    strings="-x= --exec=", long="--interactive --autosquash --root --onto=", flags="ipvqf"
)
_GIT_FILES = re.compile(
    r"--(?:conte\w*|fi(?:le?)?|templ\w*|[a-z-]*from-fi\w*|ignore-revs-\w*|exclude-f\w*)(?:=(.*))?",
    re.DOTALL,
)
"""Options of git that name a file to read, also shortened."""
_GIT_MESSAGES = frozenset(("commit", "tag", "notes", "merge"))
"""Subcommands of git that take a message from a file."""
_GIT_REMOTES = frozenset(("fetch", "pull", "push", "ls-remote"))
"""Subcommands of git that are given another repository, perhaps by its folder."""
_GIT_FILTERS = frozenset(("hash-object", "interpret-trailers", "mailinfo", "apply", "patch-id"))
"""Subcommands of git whose operands are such files."""
_UNCERTAIN = "what {} does is not known before it runs"


_DISPOSABLE = frozenset(
    (
        *("*.pyc", "*.pyo", "__pycache__", "*.egg-info", ".DS_Store", "._*", "Thumbs.db", "*.log"),
        *("*.tmp", "*.bak", "*.orig", "*.rej", "*.swp", "*~", "*.o", "*.class", "*.tsbuildinfo"),
        *("*.gcda", "*.gcno", "*.map", "node_modules", ".pytest_cache", ".mypy_cache"),
    )
)
"""Names of files that nobody misses."""
_FIND_STRAYS = frozenset(("-L", "-H", "-follow", "-files0-from", "-o", "-or", ",", "!", "-not"))
"""Words by which `find` leaves the folders it is given, or finds what a name does not tell."""


def search_find(judge: "Judge", rest: Sequence[Argument]) -> bool:
    strays = judge.into.strays
    read_only = _read_find(judge, rest)
    if not any(word.text in _FIND_STARTS for word in rest):
        judge.into.strays = strays  # it prints nothing but names
    if any(word.text.startswith("-files0-from") for word in rest):
        judge.into.strays = judge.into.strays or "find looks where a file tells it to"
    return read_only


def _read_find(judge: "Judge", rest: Sequence[Argument]) -> bool:
    words = list(reversed(rest))
    read_only = True
    tops: list[Argument] = []
    while words:
        word = words.pop()
        text = word.text
        if text in _FIND_STARTS:
            with judge.places.visit(
                tops if text.endswith("dir") else (), roams=text.endswith("dir")
            ):
                read_only = _start(judge, words, ends=(";", "+")) and read_only
        elif text == "-delete":
            judge.into.destructive.append(_name_deletion(rest[: rest.index(word)]))
            read_only = False
        elif text in _FIND_WRITES:
            judge.into.add_hazards(f"find {text} writes a file", conceals=False)
            read_only = False
        elif text in _FIND_VALUED or re.fullmatch(r"-newer[aBcm][aBcmt]|-O\d", text):
            value = [] if text.startswith("-O") else [words.pop() for _ in words[-1:]]
            if any(word.many or _may_be_action(word) for word in value):
                judge.into.dynamic.append(_UNCERTAIN.format("find"))
                read_only = False
            judge.note_places(value if text in _FIND_FILES else [], reads=True, certain=True)
        elif word.may_be_option or word.many:
            judge.into.dynamic.append(_UNCERTAIN.format("find"))
            read_only = False
        elif text[:1] == "-" and text not in _FIND_FLAGS:
            read_only = False
        elif text not in _FIND_FLAGS:
            judge.note_places([word], reads=True, certain=True)
            # What is named itself is found in the folder above.
            tops += [word, Argument(os.path.dirname(text.rstrip("/")) or ".", word.pattern)]
    return read_only


def _name_deletion(before: Sequence[Argument]) -> str:
    """Return how `-delete` is described, by the words before it: a name narrows what is found."""
    texts = [word.text for word in before]
    names = {name for test, name in pairwise(texts) if test in ("-name", "-iname")}
    if names and _DISPOSABLE.issuperset(names) and _FIND_STRAYS.isdisjoint(texts):
        return FOUND
    return "find deletes everything it finds"


def _may_be_action(word: Argument) -> bool:
    """Return True if a pattern matches a file that is named like an action of `find`."""
    actions = (*_FIND_STARTS, *_FIND_WRITES, "-delete")
    return word.pattern and any(fnmatchcase(action, word.text) for action in actions)


def _start(judge: "Judge", words: list[Argument], *, ends: tuple[str, ...]) -> bool:
    """The command line between `-exec` and its end; found names take the place of `{}`."""
    inner: list[Argument] = []
    while words:
        word = words.pop()
        if word.text in ends and (word.text == ";" or (inner and inner[-1].text == f"./{UNKNOWN}")):
            break
        path = "./" + UNKNOWN if word.text == "{}" else word.text.replace("{}", UNKNOWN)
        inner.append(Argument(path, word.pattern, word.many))
    if not inner or not inner[0].known:
        judge.into.dynamic.append("what is started for each file is not known before it runs")
        return False
    judge.judge_words(inner)
    if inner[0].text.rpartition("/")[2] in ("rm", "unlink", "shred"):
        judge.into.destructive.append("it deletes everything that is found")
    return True


def search_fd(judge: "Judge", rest: Sequence[Argument]) -> bool:
    for index, word in enumerate(rest):
        if re.fullmatch(r"--exec(-batch)?(=.*)?|-[A-Za-z0]*[xX].*", word.text):
            attached = word.text.partition("=")[2] or re.sub(r"^-[A-Za-z0]*?[xX]", "", word.text)
            inner = [*rest[index + 1 :]]
            if (attached and not word.text.startswith("--")) or "=" in word.text:
                inner.insert(0, Argument(attached))
            replaced = [_found(part) for part in inner]
            if not any(UNKNOWN in part.text for part in replaced):
                replaced.append(Argument(f"./{UNKNOWN}"))
            before = read_options(_FD, rest[:index])
            return (
                _start(judge, list(reversed(replaced)), ends=(";",))
                and not before.strange
                and not before.uncertain
            )
    reading = read_options(_FD, rest)
    judge.note_places([word for word in rest if word not in reading.operands[:1]], reads=True)
    return not reading.strange and not reading.uncertain


def _found(word: Argument) -> Argument:
    if word.text in ("{}", "{/}", "{//}", "{.}", "{/.}"):
        return Argument(f"./{UNKNOWN}")
    return Argument(re.sub(r"\{[/.]{0,2}\}", UNKNOWN, word.text), word.pattern, word.many)


def search_sed(judge: "Judge", rest: Sequence[Argument]) -> bool:
    return _filter(judge, _SED, rest, sed_is_plain, "sed")


def search_awk(judge: "Judge", rest: Sequence[Argument]) -> bool:
    return _filter(judge, _AWK, rest, awk_is_plain, "awk")


def _filter(
    judge: "Judge",
    table: Program,
    rest: Sequence[Argument],
    is_plain: Callable[[str], bool],
    name: str,
) -> bool:
    # awk stops reading options at its program, sed goes on.
    if name == "awk":
        reading, operands = read_leading(table, rest)
    else:
        reading = read_options(table, rest)
        operands = reading.operands
    judge.into.add_hazards(*(f"{name}: {hazard}" for hazard in reading.hazards))
    judge.note_carried(reading.carried)
    for ending in (v for o in ("-i", "--in-place") for v in reading.values.get(o, ())):
        if ending is not None and re.search(rf"[/*{UNKNOWN}]", ending.text):
            judge.into.add_hazards(f"{name} -i keeps a copy elsewhere", conceals=False)
    scripts = [*reading.values.get("-e", ()), *reading.values.get("--expression", ())]
    if not scripts or name == "awk":
        scripts, operands = [*operands[:1]], operands[1:]
    text = "\n".join(script.text for script in scripts if script is not None)
    plain = _is_known(scripts) and not reading.uncertain and is_plain(text)
    settled = not (reading.strange or reading.hazards)
    changes = reading.has("-i", "--in-place")
    doubtful = settled and not (plain or changes) and is_plain(_guess(text))
    if not plain and not reading.hazards and not reading.has("--version", "--help"):
        reason = f"the {name} script may run or write something"
        if doubtful:
            judge.doubt(reason)
        else:
            judge.into.add_hazards(reason)
        judge.note_carried([text])
    read_only = plain and settled
    judge.note_places(operands, reads=read_only or doubtful, certain=True)
    if name == "awk" and plain:
        judge.note_places(operands, reads=True, certain=True)
    return read_only


def _guess(script: str) -> str:
    """Return a script as it most probably is: with a number for each part that is not known.

    One of which nothing is known is not guessed.
    """
    return script.replace(UNKNOWN, "1" if script.strip(UNKNOWN) else UNKNOWN)


def _is_known(scripts: Sequence[Argument | None]) -> bool:
    return all(script is not None and script.known and not script.many for script in scripts)


def _note_git_files(judge: "Judge", subcommand: str, rest: Sequence[Argument]) -> None:
    """Note the files that git reads though they need not be in the repository: `commit -F`."""
    for option, value in pairwise((*rest, Argument(""))):
        if match := _GIT_FILES.fullmatch(option.text):
            given = Argument(match[1], option.pattern) if match[1] else value
            judge.note_places([given], reads=True, certain=True)
        elif subcommand in _GIT_MESSAGES and re.fullmatch("-[A-Za-z]*[Ft]", option.text):
            judge.note_places([value], reads=True, certain=True)
    if subcommand in _GIT_REMOTES:
        places = [word for word in rest if word.text.startswith(("/", "~/", ".."))]
        judge.note_places(places, reads=subcommand != "push", certain=True)
    if any(word.text.startswith("--stdin-p") for word in rest):
        judge.into.strays = judge.into.strays or "git reads the files that its input names"
    if subcommand in _GIT_FILTERS:
        files = [word for word in rest if word.text[:1] != "-"]
        judge.note_places(files, reads=True, certain=True)


def _check_pushed(judge: "Judge", rest: Sequence[Argument]) -> None:
    """Check the repositories of the workspace that are pushed to: their hooks run."""
    makers = [f for f in judge.into.commands if f.base in ("git init", "git clone")]
    words = {word for found in makers for word in found.words[2:] if word[:1] != "-"}
    made = {os.path.normpath(path) for word in words for path in judge.places.resolve(word)}
    for word in rest:
        if made.intersection(map(os.path.normpath, judge.places.resolve(word.text))):
            judge.into.add_hazards("git pushes to a repository that the same script makes")
        elif below := judge.places.find_pushed(word.text):
            judge.into.add_hazards(f"git takes settings and hooks from {below}")


def search_git(judge: "Judge", subcommand: str, rest: Sequence[Argument]) -> None:
    """`git rebase --exec`, `git bisect run`, `git submodule foreach`; files of any place."""
    _note_git_files(judge, subcommand, rest)
    with judge.places.visit((), roams=True):
        _search_git_carriers(judge, subcommand, rest)


def _search_git_carriers(judge: "Judge", subcommand: str, rest: Sequence[Argument]) -> None:
    if subcommand in ("push", "send-pack", "remote"):
        _check_pushed(judge, rest)
    if subcommand == "rebase":
        reading = read_options(_EXEC, rest)
        for option in ("-x", "--exec"):
            for value in reading.values.get(option, ()):
                run_script(judge, value)
    elif subcommand == "bisect" and rest and rest[0].text == "run":
        if rest[1:]:
            judge.judge_words(rest[1:])
    elif subcommand == "submodule":
        words = [word for word in rest if word.text not in ("-q", "--quiet", "--recursive")]
        if len(words) > 1 and words[0].text == "foreach":
            if len(words) == 2:
                run_script(judge, words[1])
            else:
                judge.judge_words(words[1:])


SEARCHERS: dict[str, Callable[["Judge", Sequence[Argument]], bool]] = {
    "find": search_find,
    "gfind": search_find,
    "fd": search_fd,
    "fdfind": search_fd,
    "sed": search_sed,
    "gsed": search_sed,
    "awk": search_awk,
    "gawk": search_awk,
    "mawk": search_awk,
    "nawk": search_awk,
    "original-awk": search_awk,
}
