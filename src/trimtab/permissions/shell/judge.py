"""Goes through the commands of a script and says of each what it is and what it touches."""

import os
import re
from collections.abc import Sequence

from trimtab.permissions.shell.analysis import Analysis, Found
from trimtab.permissions.shell.carriers import CARRIED, carry
from trimtab.permissions.shell.destruction import find_destruction
from trimtab.permissions.shell.identify import Name, identify
from trimtab.permissions.shell.options import find_program, read_options
from trimtab.permissions.shell.parser import DECLARATIONS, parse
from trimtab.permissions.shell.places import Places
from trimtab.permissions.shell.reading import is_read_only
from trimtab.permissions.shell.syntax import Command, Script
from trimtab.permissions.shell.variables import is_hazardous
from trimtab.permissions.shell.words import UNKNOWN, Argument, Variables

DEEPEST = 8
_SETTERS = frozenset(("read", "mapfile", "readarray", "getopts", "unset", "let", "printf", "wait"))
_SETTING = re.compile(r"([A-Za-z_]\w*)(?:\[.*\])?(?:(\+?=)(.*))?", re.DOTALL)
_EVALUATED = re.compile(r"[A-Za-z_]\w*\[[^\]]*(?:\$\(|`|\$\{|<\()")
_URL = re.compile(r"(?:https?|ftp|wss?)://[^\s'\"<>|;)\]}\0]+", re.IGNORECASE)
_NUMBERS = frozenset(("wc", "date", "nproc", "seq", "expr", "stat", "getconf", "tput", "id"))
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"))
_BUILTIN_TESTS = frozenset(("test", "[", "[["))


class Judge:
    """Fills an analysis. Nested scripts (`bash -c`, `eval`) are read by the same judge."""

    def __init__(self, analysis: Analysis, cwd: str, home: str) -> None:
        self.into = analysis
        self.places = Places(cwd, home)
        self._surroundings = {"HOME": home, "PWD": cwd} if home else {"PWD": cwd}
        self._depth = 0
        self._functions: set[str] = set()
        self._seconds = 1.0

    def read(self, text: str, *, seconds: float | None = None) -> None:
        """Judge every command of a script."""
        if self._depth >= DEEPEST:
            self.into.dynamic.append("scripts are nested too deeply")
            return
        self._seconds = seconds or self._seconds
        self._depth += 1
        script, problem = parse(text, seconds=self._seconds)
        if problem or script.unclear:
            self.into.problem = self.into.problem or problem or script.unclear[0]
        self._functions |= script.functions
        self._find_urls(text)
        self.into.hazards += script.hazards
        self._note_settings(script)
        variables = Variables(script, self._surroundings)
        self._check_settings(script, variables)
        self._check_computed(script, variables)
        for command in script.commands:
            self._judge(command, variables)
        self._depth -= 1

    def _find_urls(self, text: str) -> None:
        for url in _URL.findall(text):
            if url not in self.into.possible_urls:
                self.into.possible_urls.append(url)

    def _note_settings(self, script: Script) -> None:
        """Variables that builtins set; their values count as not known."""
        for command in script.commands:
            name = command.words[0].bare if command.words else None
            if name not in _SETTERS and name not in DECLARATIONS:
                continue
            for word in command.words[1:]:
                text = "".join(piece.text for piece in word.pieces)
                if match := _SETTING.match(text):
                    script.assign(match[1], None)

    def _check_settings(self, script: Script, variables: Variables) -> None:
        for name in script.values:
            self.set_variable(name, variables.values(name))

    def set_variable(self, name: str, values: Sequence[str] | None) -> None:
        if any(is_hazardous(name, value) for value in values or [None]):
            self.into.hazards.append(f"{name} decides what programs load or run")
        for value in values or ():
            if _EVALUATED.search(value):
                self.into.hazards.append(f"the value of {name} would run commands if evaluated")

    def _check_computed(self, script: Script, variables: Variables) -> None:
        """In arithmetic a value is code: text from elsewhere must not get there."""
        if all(self._gives_numbers(command) for command in script.commands):
            return
        for name in script.computed:
            if variables.comes_from_output(name) and not self._is_numeric(name, script):
                self.into.hazards.append(f"arithmetic evaluates {name}, which is not known")
        if script.substitutes and not self._all_substitutions_are_numbers(script):
            self.into.hazards.append("arithmetic evaluates the output of a command")

    def _gives_numbers(self, command: Command) -> bool:
        return not command.words or command.words[0].bare in _NUMBERS

    def _is_numeric(self, name: str, script: Script) -> bool:
        """Whether every unknown value comes from the script's own arithmetic or counting."""
        return not any(
            command.words and command.words[0].bare in ("read", "mapfile", "readarray", "printf")
            for command in script.commands
        ) and self._all_substitutions_are_numbers(script)

    def _all_substitutions_are_numbers(self, script: Script) -> bool:
        names = {command.words[0].bare for command in script.commands if command.words}
        return not names & _PRODUCERS

    def _judge(self, command: Command, variables: Variables) -> None:
        arguments = [argument for word in command.words for argument in variables.expand(word)]
        self.places.enter(command)
        for redirect in command.redirects:
            self._judge_redirect(redirect.operator, variables.expand(redirect.target))
        if not arguments:
            if command.words:
                self.into.dynamic.append("the name of a command is not known before it runs")
            return
        if command.is_test or arguments[0].text in (*_BUILTIN_TESTS, *_SETTERS, *DECLARATIONS):
            self._check_evaluated(arguments)
        body = [
            "".join(argument.text for argument in variables.expand(redirect.body))
            for redirect in command.redirects
            if redirect.body is not None
        ]
        self.judge_words(arguments, stdin=body[-1] if body else None)

    def _check_evaluated(self, arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            if _EVALUATED.search(argument.text):
                self.into.hazards.append("a subscript in quotes runs commands")

    def judge_words(
        self, arguments: Sequence[Argument], *, stdin: str | None = None, shadow: bool = False
    ) -> None:
        """Judge one command: a word and its arguments."""
        first = arguments[0]
        if not first.known or first.many:
            self.into.dynamic.append("the name of a command is not known before it runs")
            return
        name = identify(arguments)
        if name.dynamic:
            self.into.dynamic.append(f"what {name.base} is to do is not known before it runs")
        slot = len(self.into.commands)
        read_only = self._judge_program(name, arguments, stdin)
        known = tuple(argument.text for argument in arguments if argument.known)
        found = Found(
            identifier=name.identifier,
            read_only=read_only,
            base=name.base,
            words=known,
            shadow=shadow,
        )
        if found not in self.into.commands[:slot]:
            self.into.commands.insert(slot, found)

    def _judge_program(
        self, name: Name, arguments: Sequence[Argument], stdin: str | None
    ) -> bool:
        program, rest = name.program, arguments[1:]
        is_plain = "/" not in arguments[0].text
        if program in self._functions:
            return True
        self.into.destructive += find_destruction(name, rest)
        if program in ("rm", "unlink", "rmdir", "shred"):
            self._note_deleted(rest)
        if program in CARRIED:
            return carry(self, name, rest, stdin) and is_plain
        table = find_program(name.table)
        if name.program == "git":
            self.into.hazards += name.hazards
        if table is None:
            self._note_places(rest, reads=False)
            return False
        reading = read_options(table, rest[name.skipped :])
        self.into.hazards += [f"{name.base}: {hazard}" for hazard in reading.hazards]
        for target in reading.targets:
            self.add_target(target)
        read_only = is_plain and is_read_only(name, table, reading, self.into)
        if program in ("cd", "pushd", "popd"):
            self.places.change(reading.operands, program)
        skipped = 0 if reading.has("-e", "-f", "--regexp", "--file", "--files") else table.first
        shown = [] if table.text else [
            argument for argument in rest if argument not in reading.operands[:skipped]
        ]
        self._note_places(shown, reads=read_only)
        return read_only

    def _note_places(self, arguments: Sequence[Argument], *, reads: bool) -> None:
        for argument in arguments:
            for text in self.places.paths_in(argument):
                if text not in self.into.possible_paths:
                    self.into.possible_paths.append(text)
                into = self.into.reads if reads else self.into.touched
                into += [path for path in self.places.resolve(text) if path not in into]

    def note_places(self, arguments: Sequence[Argument], *, reads: bool) -> None:
        self._note_places(arguments, reads=reads)

    def _note_deleted(self, arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            if argument.text[:1] == "-":
                continue
            self.into.deleted += self.places.resolve(argument.text)
            if self.places.is_critical(argument):
                self.into.hazards.append(f"{argument.text or 'something'} must not be removed")

    def _judge_redirect(self, operator: str, target: Sequence[Argument]) -> None:
        if operator in ("<<", "<<-", "<<<"):
            return
        for argument in target:
            if re.match(r"/dev/(tcp|udp)/", argument.text):
                self.into.hazards.append("/dev/tcp opens a connection")
            elif operator not in _WRITING:
                if operator == "<":
                    self._note_places([argument], reads=True)
            elif operator != ">&" or not re.fullmatch(r"\d+-?|-", argument.text):
                self.add_target(argument)
        if not target and operator in _WRITING:
            self.into.targets.append(None)

    def add_target(self, argument: Argument) -> None:
        """Note a file that is written."""
        text = argument.text
        if text in _NO_FILES or re.fullmatch(r"/dev/fd/\d+", text):
            return
        paths = self.places.resolve(text) if argument.known and not argument.many else []
        if text and UNKNOWN not in text and text not in self.into.possible_paths:
            self.into.possible_paths.append(text)
        for path in paths or [None]:
            if path not in self.into.targets:
                self.into.targets.append(path)


_PRODUCERS = frozenset(
    ("cat", "echo", "printf", "head", "tail", "sed", "awk", "base64", "xxd", "tr", "cut", "rev")
)
