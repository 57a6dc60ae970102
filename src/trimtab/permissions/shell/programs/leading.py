"""The options that stand between the words by which rules name a command."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

import msgspec

_TOOLCHAIN = re.compile(r"\+\w[\w.-]*")
_NAMED = 3
"""So many characters of a long option name it at least: two dashes and a letter."""
TARGETED = frozenset(
    (
        *("make", "gmake", "ninja", "rake", "ant", "mvn", "mvnw", "gradle", "gradlew", "just"),
        *("task", "turbo", "bazel", "scons", "invoke", "inv", "fab", "mage"),
    )
)
"""Programs that take several targets: `mvn clean deploy` deploys."""
_BUILDERS = frozenset(("make", "gmake", "ninja", "ant", "mvn", "mvnw", "gradle", "gradlew"))
"""Those of them whose words are targets, options and settings, and nothing else."""
_ASSIGNMENT = re.compile(r"\w+[:?+]*=")
_VALUELESS = {
    "git": "-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs "
    "--no-optional-locks --no-lazy-fetch",
    **dict.fromkeys(("npm", "pnpm", "yarn"), "-s --silent -q --quiet -g --global -r --recursive"),
}
"""Options of programs that are not in the table, which take no value."""
_PACKAGERS = frozenset(("npm", "pnpm", "yarn"))
_SHORTENED = frozenset(("npm", "hg", "gradle", "gradlew"))
"""Programs whose commands may be shortened: `npm publ`."""
_SHORTEST = 2
_GROUPED = dict.fromkeys(("docker", "podman", "nerdctl"), ("image", "container", "manifest"))
"""Words that may stand before commands and mean the same: `docker image push`."""
_MAX_LETTERS = 3
"""Longer words with one dash are names: `find -delete`."""
_OTHER_NAMES = {
    "git push": (
        "git send-pack",
        "git http-push",
        "git remote-https",
        "git remote-http",
        "git subtree push",
        "git lfs push",
    ),
    "npm install": ("npm i", "npm in", "npm add", "npm isntall"),
    "npm uninstall": ("npm r", "npm rm", "npm un", "npm remove", "npm unlink"),
    "npm run": ("npm run-script", "npm rum", "npm urn"),
    "npm exec": ("npm x",),
}
"""Other commands that do what one does which a rule may deny."""


@lru_cache(1)
def _load() -> dict[str, dict[str, str]]:
    """First words of commands → options between them and the next word → what follows these.

    That is nothing, a word (`=`), a file or folder (`/`), perhaps a number (`?`), or the rest of
    the same word (`*`). One with `!` makes another command of it, wherever it stands.
    """
    path = os.path.join(os.path.dirname(__file__), "tables", "leading_options.json")
    with open(path, "rb") as file:
        table = msgspec.json.decode(file.read(), type=dict[str, str])
    return {
        words: {option.rstrip("=?*/!"): option[-1] for option in options.split()}
        for words, options in table.items()
    }


def skip_leading_options(
    fixed: Sequence[str], words: Sequence[str], is_near: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the fixed words of a command without options that change nothing about what it is.

    Of `docker compose -f dev.yml up` that is `docker compose up`. An option that is not known
    stays, and everything behind it; so does one with a file or folder that is not near. If such a
    one stands elsewhere among the `words`, or one that makes another command of it, nothing but the
    program is left.
    """
    table = _load()
    kept, rest = list(fixed[:1]), list(fixed[1:])
    if any(not is_near(value) for value in _find_places(words, table.get(fixed[0], {}))):
        return tuple(kept)
    while (known := table.get(" ".join(kept))) is not None:
        while rest and (length := _measure_option(rest, known, is_near)):
            del rest[:length]
        if not rest or rest[0].startswith(("-", "+")):
            break
        kept.append(rest.pop(0))
    begun = (table.get(" ".join(kept[:length]), {}) for length in range(1, len(kept) + 1))
    if any(_changes(words, known) for known in begun):
        return tuple(fixed[:1])
    return (*kept, *rest)


def keep_identifier(identifier: str, leading: tuple[str, ...]) -> str:
    """Return the identifier, or the program alone if it works in a folder elsewhere."""
    program = identifier.partition(" ")[0]
    return program if program in _PACKAGERS and len(leading) == 1 else identifier


def _changes(words: Sequence[str], known: dict[str, str]) -> bool:
    """Return True if an option before `--` makes another command of it."""
    options = [option for option, kind in known.items() if kind == "!"]
    given = list(takewhile(lambda word: word != "--", words[1:])) if options else []
    return any(
        _means(word.partition("=")[0], option)
        or (len(option) == 2 and re.match(f"-[A-Za-z]*{option[1]}", word) is not None)
        for word in given
        for option in options
    )


def split_targets(leading: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the words of a command, and those of one for each further target that it is given.

    `mvn clean deploy` is `mvn clean` and `mvn deploy`: a rule for one does not mean the other.
    """
    program, *rest = leading
    if os.path.basename(program) not in _BUILDERS:
        return [leading]
    known, targets = _load().get(program, {}), []
    while rest:
        length = _measure_option(rest, known, bool)
        if not length and rest[0][:1] not in ("-", "+") and not _ASSIGNMENT.match(rest[0]):
            targets.append(rest[0])
        del rest[: length or 1]
    return [leading, *((program, target) for target in dict.fromkeys(targets[1:]))]


def _find_places(words: Sequence[str], known: dict[str, str]) -> Iterator[str]:
    """Yield the files and folders that options name, wherever they stand before `--`."""
    options = [option for option, kind in known.items() if kind == "/"]
    for index, word in enumerate(words[1:] if options else (), 1):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        following = words[index + 1 : index + 2]
        for option in options:
            if equals and _means(name, option):
                yield value
            elif _means(word, option) or (len(option) == 2 and _ends_in(word, option[1])):
                yield from following
            elif len(option) == 2 and word.startswith(option) and not word.startswith("--"):
                yield word[2:].removeprefix("=")


def _means(word: str, option: str) -> bool:
    """Return True for an option, also if it is shortened."""
    shortened = word.startswith("--") and len(word) >= _NAMED and option.startswith(word)
    return word == option or shortened


def _ends_in(word: str, letter: str) -> bool:
    """Return True for letters of options in one word, of which the last takes a value."""
    return re.fullmatch(f"-[A-Za-z]*{letter}", word) is not None


def _measure_option(
    words: Sequence[str], known: dict[str, str], is_near: Callable[[str], bool]
) -> int:
    """Return the number of words of the option that words begin with; 0 if it is not known."""
    first = words[0]
    name, equals, value = first.partition("=")
    follows = known.get(name)
    if follows is None:
        attached = (
            first.startswith(option) and (kind == "*" or first[len(option) :].isdecimal())
            for option, kind in known.items()
            if kind in ("*", "?")
        )
        return 1 if any(attached) or ("+" in known and _TOOLCHAIN.fullmatch(first)) else 0
    match follows:
        case "/":
            near = is_near(value if equals else "".join(words[1:2]))
            return 0 if not near else 1 if equals else 2
        case "=":
            return 1 if equals else 2
        case "?":
            return 2 if len(words) > 1 and words[1].isdecimal() else 1
        case "*":
            return 1 if len(first) > len(name) or equals else 2
        case _:
            return 0 if equals or follows == "!" else 1


def may_begin_with(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return True if a command may be the wanted one, whatever options stand between its words.

    The word behind an option that is not known may be its value or not. Options that are wanted may
    stand anywhere, in any form: `rm -rf` is `rm x --force -R`. For rules that deny.
    """
    if _may_begin(words, wanted):
        return True
    names = [word for word in wanted if word[:1] != "-"]
    options = [word for word in wanted if word[:1] == "-"]
    if "-m" in options or not all(_may_have(words[1:], option) for option in options):
        return False
    others = (name.split() for name in _OTHER_NAMES.get(" ".join(names[:2]), ()))
    return any(_may_begin(words, (*name, *names[2:])) for name in (names[:2], *others))


def _may_have(words: Sequence[str], option: str) -> bool:
    """Return True if an option, or each of some letters, is among words, perhaps in other forms."""
    name = option.partition("=")[0]
    given = [word.partition("=")[0] for word in words if word[:1] == "-"]
    if name in given:
        return True
    if name.startswith("--"):
        wanted, shortened = name[2:3], any(_means(word, name) for word in given)
        return shortened or any(word.startswith(name) or _has(word, wanted) for word in given)
    is_letters = len(name) <= _MAX_LETTERS + 1
    return is_letters and all(any(_has(word, letter) for word in given) for letter in name[1:])


def _has(word: str, letter: str) -> bool:
    """Return True if a letter is among those of `-abc`, or begins the long option."""
    letters = word[2:3] if word.startswith("--") else word[1:]
    return letter.lower() in letters.lower()


def _may_begin(words: Sequence[str], wanted: Sequence[str]) -> bool:
    if words and os.path.basename(words[0]).startswith("git-"):  # a program in git's own folder
        words = ("git", os.path.basename(words[0]).removeprefix("git-"), *words[1:])
    if not words or wanted[0] not in (words[0], program := os.path.basename(words[0])):
        return False
    if len(wanted) == 1:
        return True
    reached, value_follows = {1}, False
    for word in split_modules(words[1:]) if program.startswith("python") else words[1:]:
        is_option = word[:1] in ("-", "+")
        is_passed = bool(_ASSIGNMENT.match(word)) or word in _GROUPED.get(program, ())
        stays = is_option or value_follows or is_passed or program in TARGETED
        further = {place + 1 for place in reached if _is_word(program, word, wanted[place])}
        if len(wanted) in further:
            return True
        reached = further | (reached if stays else set())
        value_follows = is_option and _may_take_value(program, word)
    return False


def _is_word(program: str, word: str, wanted: str) -> bool:
    shortened = program in _SHORTENED and len(word) >= _SHORTEST and wanted.startswith(word)
    return word == wanted or shortened


def split_modules(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a call of Python, `-um` as `-m` and `-mpip` as `-m pip`."""
    for word in words:
        match = re.fullmatch(r"-[A-Za-ln-z]*m(.*)", word, re.DOTALL)
        yield from ("-m", match[1]) if match and match[1] else ("-m",) if match else (word,)


def _may_take_value(program: str, option: str) -> bool:
    if "=" in option or option[:1] == "+" or option in _VALUELESS.get(program, "").split():
        return False
    tables = (known for name, known in _load().items() if name.partition(" ")[0] == program)
    kinds = [known[option] for known in tables if option in known]
    return not kinds or any(kind in "=/?*!" for kind in kinds)
