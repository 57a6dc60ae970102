"""Programs that start other programs: what they would start is judged as well."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING

from trimtab.permissions.shell.grammar.dialects import differs
from trimtab.permissions.shell.grammar.words import UNKNOWN, Argument
from trimtab.permissions.shell.programs.identify import Name
from trimtab.permissions.shell.programs.options import (
    Program,
    Reading,
    find_carrier,
    read_leading,
    read_options,
)

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.judge import Judge

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish"))
_ASSIGNMENT = re.compile(r"([^=]*)=(.*)", re.DOTALL)
"""An assignment, as `env` and `sudo` read it: every word with `=` in it."""
_STANDARD_INPUT = re.compile(r"-|/dev/(stdin|fd/.*)|/proc/.*/fd/.*")
_REREADS = re.compile(r"keyword|history|histexpand|expand_aliases|extglob|posix|braceexpand")
"""Settings of a shell by which words mean something else."""
_SETS = re.compile(r"[-+][A-Za-z]*[oO]")
_CHILD_ENDED = re.compile(r"(?:SIG)?CHLD|17|18|20", re.IGNORECASE)
"""The signal that a shell gets when a process it started has ended; its number differs."""
PROCESSES = r"[1-9]|[1-5]\d"
"""A number of processes that may run at the same time."""
_PARALLEL_VALUED = frozenset(
    ("-j", "--jobs", "-n", "-N", "-a", "--arg-file", "-S", "--delay", "--timeout", "-P", "--colsep")
)
_PARALLEL_SOURCES = frozenset((":::", "::::", ":::+", "::::+"))


_SHORTENED = frozenset(
    (
        *("aws", "cargo", "curl", "diff", "docker", "dotnet", "find", "gh", "git", "go", "grep"),
        *("golangci-lint", "kubectl", "ls", "mypy", "next", "npm", "npx", "pip", "playwright"),
        *("pnpm", "prettier", "prisma", "pytest", "rake", "rspec", "rubocop", "ruff", "tree"),
        *("tsc", "vitest", "wc"),
    )
)
"""Words behind which `rtk` takes what the program of that name takes."""


def is_carrier(program: str) -> bool:
    return program in SHELLS or program in _SPECIAL or find_carrier(program) is not None


def carry(judge: "Judge", name: Name, rest: Sequence[Argument], stdin: str | None) -> bool:
    """Judge what a carrier starts; whether the carrier itself changes nothing."""
    if name.program in SHELLS:
        return _carry_shell(judge, name.program, rest, stdin)
    special = _SPECIAL.get(name.program)
    if special is not None:
        return special(judge, rest)
    table = find_carrier(name.program)
    assert table is not None
    if table.users:
        reading = read_options(table, rest)
        if not reading.has("-u", "--user"):
            return _carry_login(judge, name, reading, stdin)
    return _carry_words(judge, name, table, rest, stdin)


def _carry_login(judge: "Judge", name: Name, reading: Reading, stdin: str | None) -> bool:
    """`su USER -c SCRIPT`: options may stand behind the user, and words there are for a shell."""
    if reading.strange or reading.uncertain:
        judge.into.dynamic.append(f"what {name.base} starts is not known before it runs")
    operands = reading.operands[1:] if reading.operands[:1] == [Argument("-")] else reading.operands
    given = operands[1:]
    for option in ("-s", "--shell"):
        for shell in reading.values.get(option, ()):
            if shell is None or shell.text.rpartition("/")[2] not in SHELLS:
                judge.into.dynamic.append(f"what {name.base} starts is not known before it runs")
                judge.judge_words([shell or Argument(UNKNOWN), *given], shadow=True)
    options = ("-c", "--command", "--session-command")
    scripts = [value for option in options for value in reading.values.get(option, ())]
    for script in scripts:
        run_script(judge, script)
    if not scripts:
        _carry_shell(judge, "sh", given, stdin)
        if given and given[0].text[:1] != "-":  # a script, which needs a rule of its own
            judge.judge_words(given[:1])
    return False


def _carry_words(
    judge: "Judge", name: Name, table: Program, rest: Sequence[Argument], stdin: str | None
) -> bool:
    """`timeout 5 ls`: options, operands of its own, then a command line."""
    if table.asks and rest and re.fullmatch(rf"-[a-z]*[{table.asks}].*", rest[0].text):
        return True
    reading, inner = read_leading(table, rest)
    judge.into.add_hazards(
        *(f"{name.base}: {hazard}" for hazard in reading.hazards), conceals=reading.runs
    )
    judge.note_carried(reading.carried)
    _run_pipes(judge, table, reading)
    given = [value for values in reading.values.values() for value in values if value is not None]
    judge.note_places(given, reads=True)
    if table.assigns:
        inner = _take_assignments(judge, inner)
    own, inner = _split_operands(table, inner)
    unsure = reading.strange or reading.uncertain or any(not a.known for a in own)
    unsure = unsure or _may_bring_command(rest, inner)
    _check_settings(judge, name, table, reading)
    if unsure:
        judge.into.dynamic.append(f"what {name.base} starts is not known before it runs")
    folders = [v for option in table.within.split() for v in reading.values.get(option, ())]
    with judge.places.visit(folders[-1:]) if folders else nullcontext():
        has_script = _run_strings(judge, table, reading, inner)
        if not inner:
            if (table.shell == "_" and not has_script) or reading.has(*table.shell.split()):
                _read_input(judge, "sh", stdin)
            return table.transparent and not unsure
        starts_shell = name.program == "sudo" and reading.has("-s", "-i", "--shell", "--login")
        if starts_shell or (table.joined and not reading.has(*table.joined.split())):
            run_script(judge, _join(inner))
        else:
            judge.judge_words(_with_input(table, reading.values, inner))
    return table.transparent and not unsure and not reading.hazards


def _split_operands(table: Program, words: list[Argument]) -> tuple[list[Argument], list[Argument]]:
    """The operands of a carrier itself, and what it starts: `setarch -R ls` has none of its own."""
    own, inner = words[: table.skip], words[table.skip :]
    if not table.skipped:
        return own, inner
    if not all(re.fullmatch(table.skipped, word.text) for word in own if word.known):
        return [], words
    return own, read_leading(table, inner)[1]  # `setarch x86_64 -R ls`


def _check_settings(judge: "Judge", name: Name, table: Program, reading: Reading) -> None:
    """Check the variables that `xargs` sets, and how many processes it starts."""
    for value in (v for option in table.names.split() for v in reading.values.get(option, ())):
        judge.set_variable(value.text if value else "PATH", None)
    for count in (c for option in ("-P", "--max-procs") for c in reading.values.get(option, ())):
        if table.appends and (count is None or not re.fullmatch(PROCESSES, count.text)):
            judge.into.add_hazards(f"{name.base} may start processes without end")


def _may_bring_command(rest: Sequence[Argument], inner: Sequence[Argument]) -> bool:
    """Return True if a word before the command line `inner` may become another command line."""
    return any(word.several for word in rest[: len(rest) - len(inner)])


def _run_pipes(judge: "Judge", table: Program, reading: Reading) -> None:
    """Judge `strace -o '|COMMAND'`, which looks like the name of a file."""
    for option in (option.rstrip("=") for option in table.pipes.split()):
        for value in reading.values.get(option, ()):
            if value is not None and value.text[:1] in ("|", "!"):
                run_script(judge, Argument(value.text[1:], many=value.many))
            elif value is None or value.may_be_option:
                judge.into.dynamic.append("a file whose name is not known may be a command")


def _run_strings(
    judge: "Judge", table: Program, reading: Reading, inner: Sequence[Argument]
) -> bool:
    """Judge the scripts that options hold; whether there is one."""
    names = [option.rstrip("=") for option in table.strings.split()]
    scripts = [value for name in names for value in reading.values.get(name, ())]
    # `script FILE -c SCRIPT`
    scripts += [following for word, following in pairwise(inner) if word.text in names]
    for script in scripts:
        run_script(judge, script)
    return bool(scripts)


def _with_input(
    table: Program, values: dict[str, list[Argument | None]], inner: Sequence[Argument]
) -> Sequence[Argument]:
    """The command line of `xargs`: words from its input take a place in it, or its end."""
    if not table.appends:
        return inner
    for option in ("-I", "-i", "--replace"):
        if option in values:
            given = values[option][-1]
            mark = given.text if given is not None and given.text else "{}"
            return [Argument(word.text.replace(mark, UNKNOWN), word.pattern) for word in inner]
    return [*inner, Argument(UNKNOWN, many=True)]


def _take_assignments(judge: "Judge", words: list[Argument]) -> list[Argument]:
    while words and (match := _ASSIGNMENT.fullmatch(words[0].text)):
        judge.set_variable(match[1], None if UNKNOWN in match[2] else [match[2]])
        words = words[1:]
    return words


def run_script(
    judge: "Judge", script: Argument | None, shell: str = "sh", *, inherits: bool = False
) -> None:
    """Judge a string that a shell is to run."""
    if script is None:
        return
    if not script.known or script.many:
        judge.into.dynamic.append("a script is put together only when it runs")
    # What is known of it counts for rules that deny.
    read_as(judge, script.text.replace(UNKNOWN, "${_}"), shell, inherits=inherits)


def read_as(judge: "Judge", text: str, shell: str, *, inherits: bool = False) -> None:
    """Judge a script for a shell that may read it otherwise than bash does."""
    if doubt := differs(text, shell):
        judge.into.problem = judge.into.problem or doubt
    judge.read(text, inherits=inherits)


def _join(words: Sequence[Argument]) -> Argument:
    return Argument(
        " ".join(word.text for word in words),
        any(word.pattern for word in words),
        any(word.many for word in words),
    )


def _carry_shell(judge: "Judge", shell: str, rest: Sequence[Argument], stdin: str | None) -> bool:
    words = list(reversed(rest))
    is_script = logs_in = reads = False
    while words:
        word = words.pop()
        text = word.text
        if text[:1] not in ("-", "+") or text == "-":
            words.append(word)
            break
        if text == "--":
            break
        if text in ("--version", "--help"):
            return True
        takes = text in ("--rcfile", "--init-file") or _SETS.fullmatch(text) is not None
        value = words[-1].text if takes and words else ""
        judge.into.add_hazards(*_find_changes(shell, text, value))
        if takes:
            words[-1:] = []
        logs_in = logs_in or text == "--login" or re.match(r"-[A-Za-z]*l", text) is not None
        is_script = is_script or (text[1:2] != "-" and "c" in text[1:])
        reads = reads or re.match(r"-[A-Za-z]*s", text) is not None
    if _may_bring_command(rest, words):
        judge.into.dynamic.append("what a shell runs is not known before it runs")
    if not words or (reads and not is_script):
        return _read_input(judge, shell, stdin)
    script = words[-1]
    if is_script:
        run_script(judge, script, shell)
        return not logs_in
    if not script.known or _STANDARD_INPUT.fullmatch(script.text):
        judge.into.dynamic.append("what a shell runs is not known before it runs")
    else:
        judge.judge_words([script], shadow=True)  # a rule may mean it by its name
    judge.note_places(judge.note_script(words[::-1]), reads=False)
    return False


def _find_changes(shell: str, option: str, value: str) -> Iterator[str]:
    """Why a shell with this option runs something else than it is given."""
    if shell == "fish" and re.match(r"-[A-Za-z]*C|--init-c", option):
        yield "a script is run before the others"
    if option in ("--rcfile", "--init-file") or re.match(r"-[a-z]*i", option):
        yield "an interactive shell runs its start-up files"
    if _REREADS.fullmatch(value) or re.match(r"-[A-Za-z]*[kH]|\+[A-Za-z]*B", option):
        yield f"{value or option} makes a shell read words otherwise"


def _read_input(judge: "Judge", shell: str, stdin: str | None) -> bool:
    if stdin is None or UNKNOWN in stdin:
        judge.into.dynamic.append("a shell runs what it reads")
        return False
    read_as(judge, stdin, shell)
    return True


def _carry_eval(judge: "Judge", rest: Sequence[Argument]) -> bool:
    words = rest[1:] if rest and rest[0].text == "--" else rest
    run_script(judge, _join(words), "bash", inherits=True)
    return True


def _carry_trap(judge: "Judge", rest: Sequence[Argument]) -> bool:
    words = [word for word in rest if word.text not in ("--", "-p", "-l", "-P")]
    if len(words) > 1 and words[0].text not in ("-", ""):
        run_script(judge, words[0], "bash", inherits=True)
        if any(_CHILD_ENDED.fullmatch(word.text) for word in words[1:]):
            judge.into.add_hazards("what runs when a process ends may start processes without end")
    return True


def _carry_source(judge: "Judge", rest: Sequence[Argument]) -> bool:
    if not rest or not rest[0].known or _STANDARD_INPUT.fullmatch(rest[0].text):
        judge.into.dynamic.append("what is read as a script is not known before it runs")
    judge.note_places(judge.note_script(rest), reads=False)
    return False


def _carry_jobs(judge: "Judge", rest: Sequence[Argument]) -> bool:
    """`jobs -x COMMAND` runs a command; any other form only prints."""
    if any(word.may_be_option or word.many for word in rest[:1]):
        judge.into.dynamic.append("what jobs starts is not known before it runs")
    elif rest[1:] and re.match(r"-[a-z]*x", rest[0].text):
        judge.judge_words(rest[1:])
    return True


def _carry_busybox(judge: "Judge", rest: Sequence[Argument]) -> bool:
    if rest and rest[0].text[:2] == "--":
        return rest[0].text in ("--list", "--list-full", "--help")
    if rest:
        judge.judge_words(rest)
    return True


def _carry_parallel(judge: "Judge", rest: Sequence[Argument]) -> bool:
    words = list(rest)
    while words and words[0].text[:1] == "-":
        words = words[2:] if words[0].text in _PARALLEL_VALUED else words[1:]
    template: list[Argument] = []
    for word in words:
        if word.text in _PARALLEL_SOURCES:
            break
        template.append(word)
    unsure = _may_bring_command(rest, words)
    if unsure or not template or any(not word.known for word in template):
        judge.into.dynamic.append("what parallel starts is not known before it runs")
        return False
    script = re.sub(r"\{[^{}\s]*\}", '"$_"', " ".join(word.text for word in template))
    judge.read(script + ' "$_"')
    return False


def _carry_shortened(judge: "Judge", rest: Sequence[Argument]) -> bool:
    """`rtk git status` runs git and shortens what it prints; other words are its own commands."""
    if rest and rest[0].text in _SHORTENED:
        judge.judge_words(rest)
        return True
    if rest and not rest[0].known:
        judge.into.dynamic.append("what rtk starts is not known before it runs")
    judge.note_carried(word.text for word in rest)
    judge.note_places(rest, reads=False)
    return False


_SPECIAL: dict[str, Callable[["Judge", Sequence[Argument]], bool]] = {
    "eval": _carry_eval,
    "trap": _carry_trap,
    "source": _carry_source,
    ".": _carry_source,
    "jobs": _carry_jobs,
    "busybox": _carry_busybox,
    "toybox": _carry_busybox,
    "parallel": _carry_parallel,
    "rtk": _carry_shortened,
}
