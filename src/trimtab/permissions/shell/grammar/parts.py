"""Reads the parts of simple commands: blanks, assignments, redirections."""

import re

from trimtab.permissions.shell.grammar.reader import Reader
from trimtab.permissions.shell.grammar.syntax import (
    Assignment,
    Command,
    Redirect,
    Unparsable,
    Word,
)

_OPERATOR = re.compile(
    r"(?:(\d+|\{[A-Za-z_]\w*\}))?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)", re.ASCII
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_ELEMENT = re.compile(r"\[(.*?)\]\+?=", re.DOTALL)
_EVALUATED = re.compile(r"[A-Za-z_]\w*")
DECLARATIONS = frozenset(("export", "declare", "typeset", "local", "readonly"))


class PartReader(Reader):
    """Reads what stands between the words of a command: blanks, redirections, heredocs."""

    def _skip_blanks(self) -> None:
        while self.pos < len(self.text):
            if self.text[self.pos] in " \t":
                self.pos += 1
            elif self._joins_lines():
                self.pos += 2
            elif self.text[self.pos] == "#":
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            else:
                return

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self.peek() == "\n":
            self._read_newline()
            self._skip_blanks()

    def _read_newline(self) -> None:
        self.pos += 1
        if self.heredocs:
            self.read_heredocs()

    def _read_plain_word(self) -> Word:
        before = self.pos
        word = self.read_word()
        if self.pos == before:
            raise Unparsable("a word is missing")
        return word

    def _read_assignment(self, command: Command) -> bool:
        """An assignment before a command, or an array given to a declaration."""
        match = _ASSIGNMENT.match(self.text, self.pos)
        if command.words:
            declares = command.words[0].bare in DECLARATIONS
            if not declares or not match or self.text[match.end() : match.end() + 1] != "(":
                return False
        elif _SUBSCRIPT.match(self.text, self.pos):
            return self._read_element(command)
        if match is None:
            return False
        self.pos = match.end()
        value: Word | None
        if self.peek() == "(":
            self.pos += 1
            options = [word.bare or "" for word in command.words[1:]]
            self._read_array(keyed=any(re.match("-[A-Za-z]*A", option) for option in options))
            value = None
        else:
            value = self.read_word()
        if match[2] == "+=":
            value = None
        self.script.assign(match[1], value)
        command.assignments.append(Assignment(match[1], value))
        return True

    def _read_element(self, command: Command) -> bool:
        """`name[subscript]=value`; anything else of that look is an ordinary word."""
        start = self.pos
        name = self.text[start : self.text.index("[", start)]
        self.pos += len(name)
        if not self.read_arithmetic("[", "]") or self.peek() not in ("=", "+"):
            self.pos = start
            return False
        self.pos += 1 if self.peek() == "=" else 2
        self.read_word()
        self.script.assign(name, None)
        command.assignments.append(Assignment(name, None))
        return True

    def _read_array(self, *, keyed: bool) -> None:
        """Read the elements of an array; a `keyed` one has texts for subscripts."""
        while True:
            self._skip_lines()
            if self.peek() == ")":
                self.pos += 1
                if self.peek() == "#":  # no comment: it goes on as a word
                    raise Unparsable("something follows an array at once")
                return
            word = self._read_plain_word()
            if not keyed:
                self._note_element(word)

    def _note_element(self, word: Word) -> None:
        """Note what is evaluated in an element with a subscript: `[x=1]=value`."""
        text = "".join(piece.text for piece in word.pieces)
        if text[:1] == "[" and "]" not in text and word.pieces[0].kind == "bare":
            self.doubt("an array has a subscript of several words")
        if match := _ELEMENT.match(text):
            self.script.computed.update(_EVALUATED.findall(match[1]))

    def _read_redirect(self, command: Command) -> bool:
        match = _OPERATOR.match(self.text, self.pos)
        if match is None:
            return False
        operator = match[2]
        if operator in ("<", ">") and self.text[match.end() : match.end() + 1] == "(":
            if match[1]:
                raise Unparsable("a redirection is ambiguous")
            return False
        if match[1] and match[1][0] == "{":  # the shell sets that variable to a descriptor
            self.script.assign(match[1][1:-1], None)
        self.pos = match.end()
        self._skip_blanks()
        target = self._read_plain_word()
        if operator in ("<<", "<<-"):
            if any(piece.kind not in ("bare", "quoted") for piece in target.pieces):
                raise Unparsable("the end of a heredoc is not plain")
            expands = target.bare is not None
            redirect = Redirect(operator, target, Word([]))
            self.heredocs.append((redirect, operator == "<<-", expands))
        elif operator == "<<<":
            redirect = Redirect(operator, target, target)
        else:
            redirect = Redirect(operator, target)
        command.redirects.append(redirect)
        return True
