"""Reads bash scripts: lists, pipelines, compound commands, functions, redirections.

The grammar is stricter than bash's. What it does not know it refuses, and nothing is skipped: a
script is either read whole or `Unparsable`.
"""

import re
from itertools import count

from trimtab.permissions.shell.grammar.builtins import find_builtin, join
from trimtab.permissions.shell.grammar.parts import DECLARATIONS, PartReader
from trimtab.permissions.shell.grammar.syntax import (
    Body,
    Command,
    Effort,
    Loop,
    Piece,
    Script,
    Span,
    Unparsable,
    Word,
)

_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|do|done|case|esac|while|until|for|select|function|time|coproc|in"
    r"|\{|\}|!|\[\[)(?=[ \t\n;&|()<>]|$)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n;]|$)")
_CLOSERS = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in"))

_TIME_OPTION = re.compile(r"(?:-p|--)(?=[ \t])")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|()<>]|$)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()]|[<>](?!\()")
_NAMED_COPROCESS = re.compile(r"[A-Za-z_]\w*[ \t]+[{(]", re.ASCII)
_EVALUATING = frozenset(
    (
        *("read", "mapfile", "readarray", "unset", "getopts", "printf", "wait", "let", "test", "["),
        *DECLARATIONS,
    )
)
_DECLARING = re.compile(r"-\w*[irn]")
_ELEMENT = re.compile(r"\w\[")

ENDLESS = "a loop starts processes without waiting for them"

_groups = count(1)


def parse(text: str, effort: Effort) -> tuple[Script, str | None]:
    """Return the parts of a script, with a reason if it could not be read whole."""
    script = Script()
    try:
        Parser(text, script, depth=0, effort=effort).read_script()
    except Unparsable as problem:
        return script, str(problem)
    except RecursionError:
        return script, "it is nested too deeply"
    return script, None


class Parser(PartReader):
    """A recursive-descent parser; each method leaves the position behind what it has read."""

    _endless_loops = 0
    """The number of loops around a command that may go on without end."""
    _enclosing = 0
    """The number of constructs around a command by which it may not run, or run elsewhere."""
    _passed = 0
    """The number of places in lines before that may have failed: they skip nothing any more."""
    _fails_later = False
    """True if a command has made others fail that do not look like it."""
    _unsure: tuple[str, ...] = ()
    """The variables that are set for certain only in what is left of the line."""

    def read_script(self) -> None:
        self._read_list("")
        if self.pos < len(self.text):
            raise Unparsable(f"{self.peek()!r} is unexpected")
        if self.heredocs:
            raise Unparsable("a heredoc has no text")

    def read_substitution(self) -> None:
        held, self.heredocs = self.heredocs, []
        self.depth += 1
        if self.depth > 60:
            raise Unparsable("it is nested too deeply")
        self._read_list(")")
        self._expect(")")
        self.depth -= 1
        if self.heredocs:
            raise Unparsable("a heredoc reaches out of a substitution")
        self.heredocs = held

    def _keyword(self) -> str:
        match = _KEYWORD.match(self.text, self.pos)
        return match[0] if match else ""

    def _expect(self, text: str) -> None:
        self._skip_blanks()
        if not self.text.startswith(text, self.pos):
            raise Unparsable(f"{text!r} is missing")
        self.pos += len(text)

    def _expect_keyword(self, *words: str) -> str:
        self._skip_lines()
        word = self._keyword()
        if word not in words:
            raise Unparsable(f"{words[0]!r} is missing")
        self.pos += len(word)
        return word

    def _read_list(self, close: str, *, needed: bool = False) -> None:
        """Commands up to `close`, a closing keyword or the end."""
        group, joint, found = next(_groups), ";", False
        start = len(self.script.commands)
        while True:
            self._skip_lines()
            start = len(self.script.commands) if joint == ";" else start
            if self._at_end_of_list(close):
                if joint in ("&&", "||", "|") or (needed and not found):
                    raise Unparsable("a command is missing")
                return
            self._read_pipeline(joint, group)
            found = True
            self._skip_blanks()
            if self.peek() == "&" and self.peek(2) != "&&":
                self._forget_since(start)
            joint = self._read_joint(close)

    def _forget_since(self, start: int) -> None:
        """Take nothing for certain that commands have set which turn out to run elsewhere."""
        for name in [n for n, span in self.script.settled.items() if span.start > start]:
            del self.script.settled[name]
            self._unsure = tuple(one for one in self._unsure if one != name)
        for name in [n for n, since in self.script.functions.items() if since > start]:
            del self.script.functions[name]

    def _at_end_of_list(self, close: str) -> bool:
        if self.pos >= len(self.text):
            return True
        if self.peek() == ")":
            return True
        if close == ";;" and self.peek(2) in (";;", ";&"):
            return True
        return self._keyword() in _CLOSERS

    def _read_joint(self, close: str) -> str:
        two = self.peek(2)
        if two in ("&&", "||"):
            self.pos += 2
            return two
        if two in (";;", ";&"):
            if close != ";;":
                raise Unparsable(f"{two!r} is unexpected")
            return ";"
        if two == "&>":
            raise Unparsable("'&>' is unexpected")
        one = self.peek()
        if one == "&" and self._endless_loops:
            self.script.hazards.append(ENDLESS)
        if one in (";", "&"):
            self.pos += 1
            self._skip_blanks()
            if self.peek() in (";", "&") and self.peek(2) not in (";;", ";&"):
                raise Unparsable("a command is missing")
        elif one == "\n":
            self._read_newline()
            self._end_line()
        elif one not in ("", ")") and self._keyword() not in _CLOSERS:
            raise Unparsable(f"{one!r} is unexpected")
        return ";"

    def _end_line(self) -> None:
        """Note that a line ends: an error may have skipped the rest of it."""
        if self.depth or self._enclosing:
            return
        for name in self._unsure:
            self.script.settled[name].end = len(self.script.commands)
        self._unsure = ()
        if not self._fails_later:
            self._passed = self.script.failing

    def _read_pipeline(self, joint: str, group: int) -> None:
        start, apart = len(self.script.commands), False
        while self._keyword() in ("!", "time"):
            apart = apart or self._keyword() == "!"
            self.pos += len(self._keyword())
            self._skip_blanks()
            while option := _TIME_OPTION.match(self.text, self.pos):
                self.pos = option.end()
                self._skip_blanks()
            if self.peek() in ("", ";", "&", "|", "\n", ")"):
                raise Unparsable("a command is missing")
        while True:
            self._read_command(joint, group)
            self._skip_blanks()
            if self.peek() != "|" or self.peek(2) == "||":
                break
            self.pos += 2 if self.peek(2) == "|&" else 1
            self._skip_lines()
            joint, apart = "|", True
        for command in self.script.commands[start:] if apart else ():
            command.apart = True

    def _read_command(self, joint: str, group: int) -> None:
        self.effort.spend()
        keyword = self._keyword()
        if keyword in _CLOSERS:
            raise Unparsable(f"{keyword!r} is unexpected")
        if keyword in ("!", "time"):
            raise Unparsable(f"{keyword!r} is unexpected here")
        if keyword == "coproc":
            self.doubt("it starts a coprocess")
            self.pos += len(keyword)
            self._skip_blanks()
            if _NAMED_COPROCESS.match(self.text, self.pos):
                self.read_word()
                self._skip_blanks()
            self._read_command(joint, group)
        elif keyword == "function":
            self.pos += len(keyword)
            self._skip_blanks()
            self._read_function(self.read_word(), joint)
        elif keyword or self.peek() == "(":
            self._read_compound(keyword)
        else:
            self._read_simple(Command(joint=joint, group=group))

    def _read_compound(self, keyword: str) -> None:
        self._enclosing += 1
        if not keyword:
            if self.peek(2) == "((":
                self.pos += 1
                if not self.read_arithmetic("(", ")"):
                    raise Unparsable("arithmetic is not closed")
            else:
                self.pos += 1
                self._read_list(")", needed=True)
                self._expect(")")
        else:
            self.pos += len(keyword)
            self._BODIES[keyword](self)
        self._enclosing -= 1
        self._read_trailing_redirects()

    def _read_trailing_redirects(self) -> None:
        command = Command()
        self._skip_blanks()
        while self._read_redirect(command):
            self._skip_blanks()
        if command.redirects:
            self.script.commands.append(command)

    def _read_braces(self) -> None:
        self._read_list("", needed=True)
        self._expect_keyword("}")

    def _read_if(self) -> None:
        self._read_list("", needed=True)
        self._expect_keyword("then")
        self._read_list("", needed=True)
        while (word := self._expect_keyword("fi", "elif", "else")) != "fi":
            self._read_list("", needed=True)
            if word == "elif":
                self._expect_keyword("then")
                self._read_list("", needed=True)

    def _read_while(self) -> None:
        self._endless_loops += 1
        start = len(self.script.commands)
        self._read_list("", needed=True)
        self._read_do(start)
        self._endless_loops -= 1

    def _read_do(self, start: int) -> None:
        span = Span(start)
        self.script.repeats.append(span)
        self._expect_keyword("do")
        self._read_list("", needed=True)
        self._expect_keyword("done")
        span.end = len(self.script.commands)

    def _read_for(self) -> None:
        self._skip_blanks()
        if self.peek(2) == "((":
            self.pos += 1
            if not self.read_arithmetic("(", ")"):
                raise Unparsable("arithmetic is not closed")
            self._endless_loops += 1
            self._read_repeated()
            self._endless_loops -= 1
            return
        name, words = self._read_loop_words()
        start = len(self.script.commands)
        self._read_repeated()
        loop = Loop(start, len(self.script.commands), words)
        self.script.loops.setdefault(name, []).append(loop)

    def _read_select(self) -> None:
        """A `select` asks until its input ends; its variable may be empty after an answer."""
        self._skip_blanks()
        self._read_loop_words()
        self._endless_loops += 1
        self._read_repeated()
        self._endless_loops -= 1

    def _read_repeated(self) -> None:
        self._skip_blanks()
        if self.peek() == ";" and self.peek(2) != ";;":
            self.pos += 1
        self._read_do(len(self.script.commands))

    def _read_loop_words(self) -> tuple[str, int]:
        """Read the variable of a loop, and what it is set to; return it with their number."""
        name = _NAME.match(self.text, self.pos)
        if name is None:
            raise Unparsable("a loop has no variable")
        self.pos = name.end()
        self._skip_lines()
        if self._keyword() != "in":
            self.script.assign(name[0], None)
            return name[0], 1
        self.pos += 2
        self._skip_blanks()
        words = 0
        while self.peek() not in ("", ";", "\n"):
            self.script.assign(name[0], self._read_plain_word())
            self._skip_blanks()
            words += 1
        return name[0], words

    def _read_case(self) -> None:
        self._skip_blanks()
        self._read_plain_word()
        self._expect_keyword("in")
        while True:
            self._skip_lines()
            if self._keyword() == "esac":
                self.pos += 4
                return
            if self.peek() == "(":
                self.pos += 1
            while True:
                self._skip_blanks()
                self._read_plain_word()
                self._skip_blanks()
                if self.peek() != "|":
                    break
                self.pos += 1
            self._expect(")")
            self._read_list(";;")
            self._skip_lines()
            if self.peek(3) == ";;&":
                self.pos += 3
            elif self.peek(2) in (";;", ";&"):
                self.pos += 2
            elif self._keyword() != "esac":
                raise Unparsable("a case is not closed")

    def _read_test(self) -> None:
        """`[[ … ]]`: its words are kept as the arguments of a command of that name."""
        words = [Word([Piece("quoted", "[[")])]
        regex = False
        while True:
            self._skip_lines()
            if self.pos >= len(self.text):
                raise Unparsable("'[[' is not closed")
            if _TEST_END.match(self.text, self.pos):
                self.pos += 2
                break
            operator = _TEST_OPERATOR.match(self.text, self.pos)
            if operator and not regex:
                self.pos = operator.end()
                continue
            before = self.pos
            word = self.read_word(pattern=regex)
            if self.pos == before:
                raise Unparsable(f"{self.peek()!r} is unexpected")
            regex = word.bare in ("=~", "==", "=", "!=")
            words.append(word)
        self.script.failing += any(_ELEMENT.search(join(word)) is not None for word in words)
        self.script.commands.append(Command(words=words, is_test=True))

    def _drop(self, command: Command) -> None:
        """Forget a command that turned out to be the name of a function; it is among the last."""
        commands = self.script.commands
        last = next(i for i in range(len(commands) - 1, -1, -1) if commands[i] is command)
        del commands[last]

    def _read_function(self, name: Word, joint: str) -> None:
        self._skip_blanks()
        if self.peek() == "(":
            self.pos += 1
            self._expect(")")
        if name.bare is None or not name.bare:
            raise Unparsable("a function has no plain name")
        self._skip_lines()
        keyword = self._keyword()
        if keyword not in self._BODIES and self.peek() != "(":
            raise Unparsable("a function has no body")
        start, failing = len(self.script.commands), self.script.failing
        self._read_compound(keyword)
        for command in self.script.commands[start:]:
            command.in_function = True
        self.script.bodies.append(Body(name.bare, start, len(self.script.commands)))
        self._skip_blanks()
        if self._surely_ran(joint) and failing == self._passed:
            self.script.functions.setdefault(name.bare, len(self.script.commands))

    def _surely_ran(self, joint: str) -> bool:
        """Return True if what was just read runs for certain, in the shell of the script itself."""
        elsewhere = self.peek() in ("|", "&") and self.peek(2) not in ("||", "&&")
        return not (self.depth or self._enclosing or elsewhere or joint != ";")

    def _read_simple(self, command: Command) -> None:
        start = self.pos
        # Before its words, so that what is in substitutions is listed after their command.
        self.script.commands.append(command)
        while True:
            self._skip_blanks()
            if self._read_redirect(command):
                continue
            if self.peek() in ("", "\n", ";", "&", "|", ")"):
                break
            if self.peek() == "(":
                if len(command.words) != 1 or command.assignments or command.redirects:
                    raise Unparsable("'(' is unexpected")
                self._drop(command)
                self._read_function(command.words[0], command.joint)
                return
            if not self._read_assignment(command):
                command.words.append(self._read_plain_word())
        if self.pos == start:
            raise Unparsable(f"{self.peek()!r} is unexpected")
        if command.words and _KEYWORD.fullmatch(command.words[0].bare or ""):
            raise Unparsable("a keyword is split over lines")
        self._fails_later = self._fails_later or _makes_fail(command)
        self.script.failing += self._fails_later or _may_fail(command, self.script)
        self._note_settled(command)

    def _note_settled(self, command: Command) -> None:
        if command.redirects or not self._surely_ran(command.joint):
            return
        names = [assignment.name for assignment in command.assignments]
        for name in command.exported if command.words else names:
            if name not in self.script.settled:
                self.script.settled[name] = Span(len(self.script.commands))
                self._unsure += (name,) if self.script.failing > self._passed else ()

    _BODIES = {
        "{": _read_braces,
        "if": _read_if,
        "while": _read_while,
        "until": _read_while,
        "for": _read_for,
        "select": _read_select,
        "case": _read_case,
        "[[": _read_test,
    }


def _makes_fail(command: Command) -> bool:
    """Return True for a command by which assignments or patterns may fail."""
    name, words = find_builtin(command.words)
    texts = [join(word) for word in words]
    if name in DECLARATIONS and (name == "readonly" or any(map(_DECLARING.match, texts))):
        return True
    return name == "shopt" and any("failglob" in text for text in texts)


def _may_fail(command: Command, script: Script) -> bool:
    """Return True for a command after which the shell may skip the rest of a line."""
    name, words = find_builtin(command.words)
    if any(body.function == name for body in script.bodies):
        return True
    return name in _EVALUATING and any(_ELEMENT.search(join(word)) for word in words)
