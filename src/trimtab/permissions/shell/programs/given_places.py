"""The files of this machine that a command runs, and the places that it gives to a container."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.carriers import SHELLS
from trimtab.permissions.shell.programs.launchers import find_launched

CONTAINERS = frozenset(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"))
_INTERPRETERS = frozenset(
    (
        *("python", "python2", "python3", "pypy3", "node", "ruby", "perl", "php", "lua", "Rscript"),
        *("julia", "tsx", "ts-node"),
    )
)
_RUNNING = frozenset(
    (program, word)
    for program in ("deno", "bun", "go", "dart", "streamlit")
    for word in ("run", "test")
)
"""Programs that run a file by a subcommand."""
_INLINE = re.compile(r"-(?![WX])[A-Za-z]*[cem]|-p|--(?:eval|print|test)")
"""Options of interpreters behind which code stands, or the name of a module."""
_LOADING = frozenset(("-r", "--require", "--import", "--loader"))
_VALUED = frozenset(("-W", "-X", *_LOADING))
_SETS = re.compile(r"[-+][A-Za-z]*[oO]|--(?:rc|init-)file")
_ONE_DASH = frozenset(("-norc", "-posix", "-protected", "-restricted", "-verbose", "-version"))
"""Long options, which bash takes with one dash as well; they do not say where the script is."""
_ATTACHED = re.compile(r"(?:--[\w-]+=|-[A-Za-z]+)((?:/|~|\.\.).*)", re.DOTALL)
"""A file or folder in the same word as its option."""
_LOADED = re.compile(r"(?:--[\w-]+=|-[rI])((?:/|~|\.\.).*)", re.DOTALL)
"""The same for an interpreter."""
_MODULE = re.compile(r"-[A-Za-z]*m([\w.]*)")
_TOOLS = frozenset(
    (
        *("cmake", "ctest", "ninja", "meson", "scons", "waf", "rake", "tox", "nox", "pytest"),
        *("py.test", "eslint", "prettier", "stylelint", "biome", "tsc", "jest", "vitest", "mocha"),
        *("webpack", "vite", "rollup", "esbuild", "tailwindcss", "rustc", "javac", "ruff", "black"),
        *("isort", "mypy", "pyright", "pylint", "flake8", "bandit", "coverage", "phpunit"),
        *("phpstan", "rspec", "rubocop", "mkdocs", "sphinx-build"),
    )
)
"""Programs that run settings, plugins and tests they are told of, or change what they are given."""
_MODULES = frozenset(
    (
        *("pdb", "cProfile", "profile", "trace", "doctest", "runpy", "timeit", "unittest"),
        *("zipfile", "tarfile", "zipapp", "venv", "virtualenv", "compileall", "py_compile"),
        *("build", "http.server", "idlelib", "pyclbr", "ensurepip", "lib2to3"),
    )
)
"""Modules of Python that run or change files they are given."""
_VOLUME = re.compile(r"-[A-Za-z]*v=?|--volume=?")
_STORED = re.compile(r"(?:^|[=,\"])(?:src|source|device|dest)=([^,\"]*)")
_MOUNTED = re.compile(r"(?:^|[=,\"])(?:src|source|device)=([^,\"]*)")
_FILES = frozenset(("--env-file", "--label-file", "--cidfile", "--iidfile", "--metadata-file"))
_COMPOSED = frozenset(("-f", "--file", "--project-directory", "--env-file"))
_BUILDERS = frozenset(("make", "gmake", "just", "task"))
_CHOOSING = re.compile(
    r"--(?:file|makefile|directory|justfile|working-directory|taskfile|dir|include-dir)(?:=|$)"
    r"|-[fCdtI](?!\w*-)|MAKEFILES="
)
"""Options of them that choose the file to run, or the folder in which it lies."""
_COPYING = frozenset(
    ("cp", "build", "bake", "save", "load", "import", "export", "play", "kube", "b", "buildx")
)
"""Words of commands that are given files of this machine only."""


def find_given(
    program: str, arguments: Sequence[Argument], resolve: Callable[[str], Sequence[str]]
) -> tuple[str, ...]:
    """Return the paths of what is run, and of what a container gets; `/` if that is not known."""
    found: list[str] = []
    for word in _find_places(program, arguments):
        if UNKNOWN not in word.text:
            found += resolve(word.text) or ["/"]
        elif program in CONTAINERS:  # code that is put together elsewhere may name any file anyway
            found.append("/")
    return tuple(found)


def _find_places(program: str, arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Yield the words that name what a command runs, or what a container gets."""
    if program in CONTAINERS:
        yield from _find_mounts(program, arguments)
        return
    for line in find_launched(program, arguments):
        if "/" in line[0].text and line[0].text[:1] != "@":
            yield line[0]
        yield from _find_places(line[0].text.rpartition("/")[2], line[1:])
    if program in (".", "source"):
        yield from arguments[:1]
    elif program in SHELLS:
        yield from _find_script(arguments, _SETS)
    elif program in _INTERPRETERS:
        yield from _find_code(arguments)
    elif program in _BUILDERS:
        yield from _find_chosen(arguments)
    elif program in _TOOLS:
        yield from _find_named(arguments)
    elif arguments and (program, arguments[0].text) in _RUNNING:
        yield from list(filter(_is_path, arguments))[:1]


def _find_named(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Yield the words that are paths, and the paths behind options in the same word."""
    for word in arguments:
        if _is_path(word):
            yield word
        elif match := _ATTACHED.fullmatch(word.text):
            yield Argument(match[1], word.pattern)


def _is_path(word: Argument) -> bool:
    return word.text[:1] in ("/", ".", "~")


def _find_chosen(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Yield the files and folders that options of `make` and the like choose."""
    for word, following in pairwise((*arguments, Argument(""))):
        if match := _CHOOSING.match(word.text):
            attached = word.text[match.end() :]
            yield Argument(attached) if attached else following


def _find_script(arguments: Sequence[Argument], valued: re.Pattern[str]) -> Iterator[Argument]:
    """Yield the script that a shell is given."""
    follows = False
    for word in arguments:
        if not follows and word.text[:1] not in ("-", "+"):
            yield word
            return
        if word.text not in _ONE_DASH and re.match(r"-[A-Za-z]*[cs]", word.text):
            return  # the script is a word, or the input
        follows = not follows and valued.fullmatch(word.text) is not None


def _find_code(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Yield the files that an interpreter loads, and the one that it runs."""
    before = ""
    for index, word in enumerate(arguments):
        text = word.text
        if before in _LOADING and text[:1] in ("/", ".", "~"):
            yield word
        elif before in _VALUED:
            pass
        elif match := _LOADED.fullmatch(text):
            yield Argument(match[1])
        elif match := _MODULE.fullmatch(text):
            rest = [Argument(match[1])] if match[1] else []
            rest += arguments[index + 1 :]
            named = rest[:1] and rest[0].text in _MODULES | _TOOLS
            yield from _find_named(rest[1:] if named else ())
            return
        elif text[:1] != "-":
            yield word
            return
        elif text == "-" or _INLINE.fullmatch(text):  # the code is the input
            return
        before = "" if before in _VALUED else text


def _find_mounts(program: str, arguments: Sequence[Argument]) -> Iterator[Argument]:
    composes = program.endswith("-compose") or any(a.text == "compose" for a in arguments[:4])
    copies = any(word.text in _COPYING for word in arguments[:3])
    for word, following in pairwise((*arguments, Argument(""))):
        option, equals, value = word.text.partition("=")
        given = Argument(value, word.pattern) if equals else following
        text = given.text
        if match := _VOLUME.match(word.text):
            attached = word.text[match.end() :]
            yield from _find_source(attached or following.text)
        elif option in ("--mount", "-o", "--opt", "--secret", "--output", "--build-context"):
            places = (_STORED if option in ("-o", "--output") else _MOUNTED).findall(text)
            for place in places:
                yield from _find_source(place)
        if option in _FILES or (composes and option in _COMPOSED):
            yield Argument("/") if text == "-" else given
        if copies and word.text[:1] in ("/", "~", "."):
            yield word
        elif copies and equals and value[:1] in ("/", "~"):
            yield given


def _find_source(text: str) -> Iterator[Argument]:
    """Yield the folder or file before the colon of `SOURCE:PLACE`; a volume has a plain name."""
    source = text.partition(":")[0]
    if source[:1] in (".", "~") or "/" in source or UNKNOWN in source:
        yield Argument(source)
