"""Goes through the commands of a script and says of each what it is and what it touches."""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

import msgspec

from trimtab.permissions.shell.grammar.arithmetic import (
    find_subscripts,
    find_unknown,
    runs_if_evaluated,
)
from trimtab.permissions.shell.grammar.builtins import unwrap
from trimtab.permissions.shell.grammar.functions import (
    find_callable,
    find_later,
    find_recursion,
)
from trimtab.permissions.shell.grammar.parser import parse
from trimtab.permissions.shell.grammar.parts import DECLARATIONS
from trimtab.permissions.shell.grammar.syntax import Command, Effort, Script
from trimtab.permissions.shell.grammar.words import FRESH, UNKNOWN, Argument, Variables
from trimtab.permissions.shell.programs.carried import find_carried
from trimtab.permissions.shell.programs.carriers import carry, is_carrier
from trimtab.permissions.shell.programs.destruction import find_destruction
from trimtab.permissions.shell.programs.given_places import find_given
from trimtab.permissions.shell.programs.identify import Name, identify
from trimtab.permissions.shell.programs.launchers import find_launched, search_aliases
from trimtab.permissions.shell.programs.leading import (
    keep_identifier,
    skip_leading_options,
    split_targets,
)
from trimtab.permissions.shell.programs.network import (
    PROXY,
    find_addresses,
    find_downloads,
    find_open,
    find_sent,
    find_socket,
    find_uploads,
    find_urls,
    may_be_socket,
)
from trimtab.permissions.shell.programs.options import (
    Program,
    Reading,
    find_program,
    read_options,
)
from trimtab.permissions.shell.programs.searchers import SEARCHERS, search_git
from trimtab.permissions.shell.programs.variables import is_hazardous, is_usual
from trimtab.permissions.shell.verdict.analysis import Analysis, Found
from trimtab.permissions.shell.verdict.evaluated import (
    check_assigned,
    check_computed,
    check_evaluated,
)
from trimtab.permissions.shell.verdict.inline_code import INSTALLED
from trimtab.permissions.shell.verdict.option_folders import note_folders
from trimtab.permissions.shell.verdict.places import Places
from trimtab.permissions.shell.verdict.reading import (
    INTERPRETERS,
    WRITERS,
    compares_folders,
    follows_links,
    informs,
    is_read_only,
    may_inform,
    never_writes,
    seems_read_only,
    shows_names,
)
from trimtab.permissions.shell.verdict.settings import (
    SETTERS,
    UNNAMED,
    check_names,
    extends_path,
    find_hidden,
    find_unknown_elements,
    is_assignment,
    names_variable,
    note_settings,
)

DEEPEST = 8
_FAR = re.compile(r"(?:/|~|\.\./)\S*$")
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
_DELETERS = frozenset(("rm", "unlink", "rmdir", "shred"))
_BUILTIN_TESTS = frozenset(("test", "[", "[["))
_MOVING = frozenset(("cd", "pushd", "popd"))
_MOST_ROUNDS = 4
"""The most times that repeated commands are judged again, until they reach no new folder."""


class Judge:
    """Fills an analysis. Nested scripts (`bash -c`, `eval`) are read by the same judge."""

    def __init__(self, analysis: Analysis, cwd: str, home: str, effort: Effort) -> None:
        self.into = analysis
        self.places = Places(cwd, home)
        self._surroundings = {"HOME": home, "PWD": cwd} if home else {"PWD": cwd}
        self._depth = 0
        self._functions: frozenset[str] = frozenset()
        self._effort = effort
        self._doubtful = False
        """True if the command being judged only reads unless an unknown word is an option."""
        self._redefined = False
        """True if a script around this one may have replaced programs by functions."""
        self._separators: Sequence[str] | None = ()
        """The separators of words that scripts set, and that others in the same shell inherit."""

    def read(self, text: str, *, inherits: bool = False) -> None:
        """Judge every command of a script; one that `inherits` runs in the shell of the last.

        Raises `Unparsable` when the effort is spent; what was found until then stays.
        """
        if self._depth >= DEEPEST:
            self.into.dynamic.append("scripts are nested too deeply")
            return
        self._depth += 1
        script, problem = parse(text, self._effort)
        if problem or script.unclear:
            self.into.problem = self.into.problem or problem or script.unclear[0]
        self._note_urls(find_urls(text))
        self.into.add_hazards(*script.hazards)
        if function := find_recursion(script):
            self.into.add_hazards(f"the function {function} may call itself without end")
        self.into.add_hazards(*note_settings(script))
        separators = self._separators if inherits else ()
        variables = Variables(
            script,
            self._surroundings,
            separators=separators,
            redefined=self._redefined,
            folders=self.places.list_now,
        )
        self._redefined = variables.redefines or bool(script.bodies) or self._redefined
        if "IFS" in script.values:
            self._separators = variables.separators
        self._note_expansions(script)
        self._check_settings(script, variables)
        check_computed(self.into, script, variables)
        outer = self._functions
        names = [n | outer if inherits else n for n in find_callable(script)]
        before = self.places.count
        self._judge_some(script, variables, names, range(len(script.commands)))
        if self.places.count != before:
            self._judge_again(script, variables, names)
        self._functions = outer
        self._depth -= 1

    def _judge_some(
        self,
        script: Script,
        variables: Variables,
        functions: Sequence[frozenset[str]],
        indices: Iterable[int],
    ) -> None:
        for index in indices:
            command = script.commands[index]
            self._functions = functions[index]
            variables.at = None if command.in_function else index
            self._judge(command, variables)

    def _judge_again(
        self, script: Script, variables: Variables, functions: Sequence[frozenset[str]]
    ) -> None:
        """Judge what runs again, or later, where the commands behind it have led."""
        spans = find_later(script)
        for _ in range(_MOST_ROUNDS if spans else 0):
            before = self.places.count
            for span in spans:
                self.places.enter_again()
                self._judge_some(script, variables, functions, span)
            if self.places.count == before:
                return
        if spans:
            self.into.reads.append("/")

    def note_carried(self, texts: Iterable[str]) -> None:
        """Note the commands in texts that a program runs in its own way, for rules that deny."""
        for line in (line for text in texts for line in find_carried(text)):
            self._effort.spend()
            name, words = identify(line), tuple(word.text for word in line)
            found = Found(identifier=name.identifier, read_only=False, base=name.base, words=words)
            if found not in self.into.carried:
                self.into.carried.append(found)

    def _note_urls(self, urls: Iterable[str]) -> None:
        found = self.into.possible_urls
        found += [url for url in dict.fromkeys(urls) if url not in found]

    def _note_open(self, texts: Iterable[str]) -> None:
        found = self.into.open_urls
        found += [text for text in dict.fromkeys(texts) if text not in found]

    def _note_expansions(self, script: Script) -> None:
        """Note the paths that stand in expansions."""
        home = self._surroundings.get("HOME", "")
        defaults = (re.sub(r"^~(?=/|$)", lambda _: home or "~", path) for path in script.defaults)
        self.note_places(map(Argument, defaults), reads=True, certain=True)
        there = (path for path in script.replacements if os.path.lexists(path))
        self.note_places(map(Argument, there), reads=True)

    def _check_settings(self, script: Script, variables: Variables) -> None:
        for name, words in script.values.items():
            home, values = self._surroundings.get("HOME", ""), variables.values(name)
            if is_usual(name, values, home) or (name == "PATH" and extends_path(words, home)):
                continue
            self.set_variable(name, values)
            # One value that is not known does not make the others harmless.
            given = [a.text for word in words if word is not None for a in variables.expand(word)]
            self._check_values(name, given)

    def set_variable(self, name: str, values: Sequence[str] | None) -> None:
        unknown: list[str | None] = [None]
        if any(is_hazardous(name, value) for value in values or unknown):
            self.into.add_hazards(f"{name} decides what programs load or run")
            self.note_carried(values or ())
        if PROXY.fullmatch(name):
            self.into.proxied = True
            self._note_urls(
                value if "://" in value else f"http://{value}" for value in values or ()
            )
            self._note_open(() if values else [UNKNOWN])
        self._check_values(name, values or ())

    def _check_values(self, name: str, values: Sequence[str]) -> None:
        if any(map(runs_if_evaluated, values)):
            self.into.add_hazards(f"the value of {name} would run commands if evaluated")

    def _judge(self, command: Command, variables: Variables) -> None:
        self._effort.spend()
        arguments = self._expand(command, variables)
        moves = bool(arguments) and unwrap(arguments)[0].text in _MOVING
        fixed = all(map(variables.is_written_out, command.words))
        self.places.enter(command, moves=moves, fixed=fixed)
        self._judge_redirects(command, variables)
        if not arguments:
            if command.words:
                self.into.dynamic.append("the name of a command is not known before it runs")
            return
        if not arguments[0].known:
            self._guess(command, variables)
        builtin = unwrap(arguments)
        if command.is_test or builtin[0].text in (*_BUILTIN_TESTS, *SETTERS, *DECLARATIONS):
            check_evaluated(self.into, builtin, variables)
            check_assigned(self.into, find_subscripts(builtin), variables)
        self.into.add_hazards(*find_unknown(command, variables), *find_hidden(command, arguments))
        if builtin[0].text in DECLARATIONS:
            self.into.add_hazards(*find_unknown_elements(builtin, variables))
        body = [
            "".join(argument.text for argument in variables.expand(redirect.body))
            for redirect in command.redirects
            if redirect.body is not None
        ]
        if arguments[0].text in self._functions:
            # Its body is judged where it stands; the call decides on which files it works.
            for reads in (True, False):
                self.note_places(arguments[1:], reads=reads)
            name = arguments[0].text
            self.into.commands.append(Found(identifier=name, read_only=True, base=name))
            return
        self._check_input(command, arguments[0], body[-1] if body else None)
        literal = fixed and not (self.places.unknown or self.places.roams)
        self.judge_words(arguments, stdin=body[-1] if body else None, literal=literal)

    def _judge_redirects(self, command: Command, variables: Variables) -> None:
        for redirect in command.redirects:
            target = variables.expand(redirect.target, unset=redirect.operator in _WRITING)
            given = [argument for argument in target if argument.text] or target
            self._judge_redirect(redirect.operator, given)
            if redirect.operator not in ("<<", "<<-", "<<<"):
                self._note_remains(variables.if_empty(redirect.target))
        for word in command.words[1:]:
            self._note_remains(variables.if_empty(word))

    def _note_remains(self, remains: Iterable[tuple[str, bool]]) -> None:
        """Note the paths that a word becomes if what it begins with turns out to be empty."""
        for text, likely in remains:
            path = os.path.normpath(text)
            folder = os.path.dirname(path)
            there = os.path.lexists(path) or (folder.count("/") > 1 and os.path.isdir(folder))
            if text and (likely or (path.count("/") > 1 and there)):
                self.note_places([Argument(text)], reads=True)

    def _check_input(self, command: Command, program: Argument, body: str | None) -> None:
        """Check what a program reads that takes its input for code, if it may run commands."""
        table = find_program(program.text.rpartition("/")[2])
        if table is None or not (table.code or table.launches):
            return
        self.note_carried([body] if body else [])
        if not table.code:  # it is a hazard anyway
            return
        if body is not None:
            if UNKNOWN in body or re.search(table.hazard, body, re.IGNORECASE):
                self.into.add_hazards(f"{program.text} is given commands to run")
        elif command.joint == "|" or any(one.operator == "<" for one in command.redirects):
            self.into.add_hazards(f"{program.text} runs what it reads")

    def _guess(self, command: Command, variables: Variables) -> None:
        """Judge a command as if variables had the values that the script gives them.

        No rule may allow it by that, but one that denies finds it, and so does destruction.
        """
        likely = [argument for word in command.words for argument in variables.expand(word)]
        if likely and likely[0].known and not likely[0].many:
            self.judge_words(likely, shadow=True)

    def _expand(self, command: Command, variables: Variables) -> list[Argument]:
        """The arguments of a command. What may be a script is taken as it is written: a variable
        in it, with several possible values, would stand for only one of them."""
        words = command.words
        first = variables.expand(words[0], strict=True) if words else []
        strict = not first or is_carrier(first[0].text.rpartition("/")[2])
        arguments = list(first)
        # Bash neither splits nor globs what a declaration assigns; a nested shell may be another.
        declares = bool(first) and first[0].text in DECLARATIONS
        unsplit = self._depth == 1 and declares and words[0].bare is not None
        for word in words[1:]:
            self._effort.spend()
            given = variables.expand(word, strict=strict)
            if declares and not names_variable(word) and any("=" in a.text for a in given):
                self.into.add_hazards(UNNAMED)
            elif unsplit and is_assignment(word):
                given = [Argument(argument.text) for argument in given]
            arguments += given
        return arguments

    def judge_words(
        self,
        arguments: Sequence[Argument],
        *,
        stdin: str | None = None,
        shadow: bool = False,
        literal: bool = False,
    ) -> None:
        """Judge one command: a word and its arguments."""
        self._effort.spend()
        first = arguments[0]
        if not first.known or first.many:
            self.into.dynamic.append("the name of a command is not known before it runs")
            return
        name = identify(arguments)
        check_names(self.into, arguments)
        if name.dynamic:
            self.into.dynamic.append(f"what {name.base} is to do is not known before it runs")
        self._check_patterns(name, arguments)
        slot = len(self.into.commands)
        self._doubtful = False
        read_only = self._judge_program(name, arguments, stdin)
        note_folders(self, arguments, reads=read_only)
        named = "/" not in first.text or os.path.normpath(first.text).startswith(INSTALLED)
        doubtful, self._doubtful = self._doubtful and named, False
        known = tuple(argument.text for argument in arguments if argument.known)
        fixed = takewhile(lambda argument: argument.known and not argument.many, arguments)
        texts = [argument.text for argument in arguments]
        leading = skip_leading_options([a.text for a in fixed], texts, self.places.is_near)
        found = Found(
            identifier=keep_identifier(name.identifier, leading),
            read_only=read_only,
            doubtful=doubtful,
            base=name.base,
            words=known,
            leading=leading,
            shadow=shadow,
            literal=literal and len(known) == len(arguments),
            spelled=literal and not any(UNKNOWN in argument.text for argument in arguments),
            places=tuple(self.places.resolve(first.text)) if "/" in first.text else (),
            given=find_given(name.program, arguments[1:], self.places.resolve),
            unclear=any(argument.may_be_option or argument.many for argument in arguments),
        )
        for words in reversed(split_targets(leading)):
            one = msgspec.structs.replace(found, leading=words)
            if one not in self.into.commands[:slot]:
                self.into.commands.insert(slot, one)

    def _check_patterns(self, name: Name, arguments: Sequence[Argument]) -> None:
        """A pattern puts file names among the arguments; one that begins with `-` is an option."""
        table = find_program(name.table)
        if table is not None and (table.free or table.text):
            return
        for argument in takewhile(lambda argument: argument.text != "--", arguments):
            if not argument.pattern or argument.text[:1] not in "-*?[":
                continue
            found = self.places.find_options(argument.text)
            if found is None:
                self.into.add_hazards("a pattern may match a file that is named like an option")
            elif found:
                self.into.add_hazards(f"the name of the file {found[0]!r} would be an option")

    def _judge_program(self, name: Name, arguments: Sequence[Argument], stdin: str | None) -> bool:
        """Return True if a program only reads; what it starts and touches is noted on the way."""
        program, rest = name.program, arguments[1:]
        self._note_urls(find_addresses(program, rest))
        self._note_open(find_open(name, rest))
        self.note_places(find_sent(program, rest), reads=True)
        is_plain = "/" not in arguments[0].text
        self.into.destructive += find_destruction(name, rest)
        if program in _DELETERS:
            self._note_deleted(rest)
        elif program == "mv":
            sources = [argument for argument in rest if argument.text[:1] != "-"][:-1]
            self.into.deleted += [p for s in sources for p in self.places.resolve(s.text)]
        if program in SEARCHERS:
            return SEARCHERS[program](self, rest) and is_plain
        if is_carrier(program):
            return carry(self, name, rest, stdin) and is_plain
        for launched in find_launched(program, rest):
            self.judge_words(launched, shadow=True)
        if program == "git":
            self.into.add_hazards(*name.hazards)
            leading = rest[: name.skipped]
            folders = [b for a, b in pairwise(leading) if a.text == "-C" and b.known]
            if bare := self.places.find_repository(folders):
                self.into.add_hazards(f"git takes settings and hooks from {bare}")
            if name.hazards:
                given = rest[: name.skipped - 1] if name.skipped else rest
                self.note_carried(word.text for word in given)
            search_git(self, name.subcommand, rest[name.skipped :])
            search_aliases(self, name, arguments)
        read_only = self._judge_by_table(name, rest)
        # A program that is named by its path may be another one of the same name.
        self._doubtful = self._doubtful or (read_only and not is_plain)
        return read_only and is_plain

    def _judge_by_table(self, name: Name, rest: Sequence[Argument]) -> bool:
        table = find_program(name.table)
        given = self.note_script(rest) if name.program in INTERPRETERS else rest
        if table is None:
            self._doubtful = may_inform(name, rest)
            self.note_places(given[name.skipped :], reads=False, certain=name.program in WRITERS)
            return False
        if informs(table, rest):
            return True
        if table.launches:
            self.into.add_hazards(f"{name.base} runs what it is told or finds in files")
            self.note_carried(word.text for word in rest)
        # Options of git itself stand before the subcommand and were read with its name.
        reading = read_options(table, rest[name.skipped if name.program == "git" else 0 :])
        self.into.add_hazards(
            *(f"{name.base}: {hazard}" for hazard in reading.hazards), conceals=reading.runs
        )
        self.note_carried(reading.carried)
        for target in (*reading.targets, *find_downloads(name.program, reading)):
            self.add_target(target)
        self.note_places(find_uploads(name.program, reading, rest), reads=True, certain=True)
        read_only = is_read_only(name, table, reading, self.into)
        if name.table == "git config" and not read_only:
            self.note_carried(word.text for word in reading.operands)
            if self.into.hazards:
                self.into.touched += self.places.resolve(".git/config")
        declares = name.program in DECLARATIONS
        does_more = table.runs or table.writes or (table.hazard and not declares)
        if reading.uncertain and does_more and not table.free:
            self._doubt(name, table, reading)
        else:
            seems = may_inform(name, rest) or seems_read_only(name, table, reading)
            self._doubtful = seems and not read_only
        self._note_operands(table, reading, given, name, reads=read_only or self._doubtful)
        if name.program in _MOVING:
            stays = name.program == "pushd" and reading.has("-n")
            self.into.reads += self.places.change(reading.operands, name.program, stays=stays)
            if self.places.unknown:
                self.into.reads.append("/")
        return read_only

    def doubt(self, reason: str) -> None:
        """Note why a program may do more than read; it is worth trying behind the fence."""
        self._doubtful = True
        self.into.doubts.append(reason)

    def _doubt(self, name: Name, table: Program, reading: Reading) -> None:
        """Note that an unknown word may be an option that runs or writes something."""
        reason = f"{name.base}: a word that is not known may be an option that does more"
        certain = msgspec.structs.replace(reading, uncertain=False)
        seems = seems_read_only(name, table, certain)
        if is_read_only(name, table, certain, self.into) or seems:
            self.doubt(reason)
        else:
            self.into.add_hazards(reason, conceals=bool(table.runs or table.hazard))

    def _note_operands(
        self,
        table: Program,
        reading: Reading,
        rest: Sequence[Argument],
        name: Name,
        *,
        reads: bool,
    ) -> None:
        """Note the arguments that may be paths: neither text nor the pattern of a search."""
        if not reads and never_writes(name, table, reading):
            self._note_operands(table, reading, rest, name, reads=True)
        if name.program == "git":
            self.note_places(rest[: max(name.skipped - 1, 0)], reads=reads)
        if table.text or name.program == "set":
            # What is printed or set may become another program's argument.
            self.note_places([a for a in rest if _FAR.match(a.text)], reads=reads)
        first = 0 if table.partial and not reads else table.first
        if table.text or first >= 999:
            return
        given = reading.has("-e", "-f", "--regexp", "--file", "--files", "--from-file")
        patterns = reading.operands[: 0 if given else first]
        shown = [a for a in rest[name.skipped :] if a not in patterns]
        files = [a for a in shown if a in reading.operands]
        writes = name.program in WRITERS or name.table in WRITERS
        strays = follows_links(name, rest) or compares_folders(name, reading, self.places.is_folder)
        if reads and strays:
            self.into.strays = self.into.strays or f"{name.base} reads what links or files lead to"
        noted = self.into.strays
        self.note_places(files, reads=reads, certain=reads or writes)
        if shows_names(name, reading):
            self.into.strays = noted
        for argument in (a for a in shown if a not in files):
            self.note_places([argument], reads=reads, certain=writes and "/" in argument.text)

    def note_places(
        self, arguments: Iterable[Argument], *, reads: bool, certain: bool = False
    ) -> None:
        """Note which places arguments may mean; if `certain`, they are names of files."""
        for argument in arguments:
            known = UNKNOWN not in argument.text or argument.text.startswith((FRESH, "/dev/fd/"))
            if reads and certain and not known:
                self.into.strays = self.into.strays or "a file that it reads is not known"
            for text in self.places.paths_in(argument, certain=certain):
                if text not in self.into.possible_paths:
                    self.into.possible_paths.append(text)
                into = self.into.reads if reads else self.into.touched
                into += [path for path in self.places.resolve(text) if path not in into]

    def note_script(self, arguments: Sequence[Argument]) -> Sequence[Argument]:
        """Note the file that an interpreter is given first, to run it; return the others."""
        first = arguments[0] if arguments else Argument("-")
        if not first.known or first.many or first.text[:1] in ("-", ""):
            return arguments
        if first.text not in self.into.possible_paths:
            self.into.possible_paths.append(first.text)
        into = self.into.scripts
        into += [path for path in self.places.resolve(first.text) if path not in into]
        return arguments[1:]

    def _note_deleted(self, arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            text = argument.text
            if text[:1] == "-":
                continue
            if text[:1] == UNKNOWN or (argument.many and UNKNOWN in text):
                self.into.unsure = True
            # Of `/tmp/$x` the folder is known; what is deleted is something in it.
            within = "*" if UNKNOWN in text else ""
            self.into.deleted += [path + within for path in self.places.resolve(text)]
            if self.places.is_critical(argument):
                self.into.add_hazards(f"{argument.text} must not be removed", conceals=False)

    def _judge_redirect(self, operator: str, target: Sequence[Argument]) -> None:
        if operator == "<<<":
            self.note_places([a for a in target if _FAR.match(a.text)], reads=True)
        if operator in ("<<", "<<-", "<<<"):
            return
        for argument in target:
            self._note_socket(argument.text)
            if re.match(r"/dev/(tcp|udp)/", argument.text):
                self.into.add_hazards("/dev/tcp opens a connection")
            elif operator not in _WRITING:
                if operator == "<":
                    self.note_places([argument], reads=True, certain=True)
            elif operator != ">&" or not re.fullmatch(r"\d+-?|-", argument.text):
                self.into.writes |= self.add_target(argument)
        if not target and operator in _WRITING:
            self.into.targets.append(None)
            self.into.writes = True

    def _note_socket(self, path: str) -> None:
        if socket := find_socket(path):
            self._note_urls([socket])
        elif may_be_socket(path):
            self._note_open([UNKNOWN])

    def add_target(self, argument: Argument) -> bool:
        """Note a file that is written; whether it is one."""
        text = argument.text
        if text in _NO_FILES or re.fullmatch(r"/dev/fd/\d+", text):
            return False
        paths = self.places.resolve(text) if argument.known and not argument.many else []
        if text and UNKNOWN not in text and text not in self.into.possible_paths:
            self.into.possible_paths.append(text)
        if not paths:
            self.into.targets.append(None)
        self.into.targets += [path for path in paths if path not in self.into.targets]
        return True
