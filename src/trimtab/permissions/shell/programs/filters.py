"""Scripts of `sed` and `awk`: whether they only transform text, or write and run."""

import re

_SED_FLAGS = re.compile(r"[gpiImM0-9]*")
_SED_ADDRESS = re.compile(r"\d+(?:~\d+)?|\$")
_SED_PLAIN = "=dDgGhHnNpPxzFlL"
_AWK_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"', re.DOTALL)
_AWK_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|\]?[^\]\\\n]*)\]|[^/\\\n\[])*/")
_AWK_COMMENT = re.compile(r"#[^\n]*")
_AWK_ENDS = (";", "{", "}")
_AWK_GOES_ON = (",", "&&", "||", "\\")
_AWK_PRINTS = ("print", "printf")
_AWK_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*|\\\n|\s+|\|\||&&|\+\+|--|[<>=!~+*/%^-]=|\|&|.", re.DOTALL
)
_AWK_VALUE = re.compile(r"[\w\])\"$.]*[\w\])\"]")
_AWK_WORDS = frozenset(("print", "printf", "return", "in", "else", "do", "case", "delete", "exit"))
"""After these an expression begins, so that a slash begins a regular one."""


def sed_is_plain(script: str) -> bool:
    """Return True if a `sed` script has no command that runs a program, writes or reads a file."""
    reader = _Sed(script)
    try:
        return reader.read()
    except IndexError:  # the script ends in the middle of a command
        return False


class _Sed:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def read(self) -> bool:
        while True:
            self._skip(" \t\n;")
            if self.pos >= len(self.text):
                return True
            self._read_address()
            if self._peek() == ",":
                self.pos += 1
                self._skip(" \t")
                if self._peek() in ("+", "~"):
                    self.pos += 1
                self._read_address()
            self._skip(" \t!")
            if not self._read_command():
                return False

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _skip(self, characters: str) -> None:
        while self._peek() and self._peek() in characters:
            self.pos += 1

    def _read_address(self) -> None:
        if match := _SED_ADDRESS.match(self.text, self.pos):
            self.pos = match.end()
        elif self._peek() in ("/", "\\"):
            self.pos += self._peek() == "\\"
            delimiter = self.text[self.pos]
            self.pos += 1
            self._read_until(delimiter)
            self._skip("IM")
        self._skip(" \t")

    def _read_until(self, delimiter: str, *, brackets: bool = True) -> None:
        """Skip past the next delimiter that is not escaped or in a bracket expression."""
        while (character := self.text[self.pos]) != delimiter:
            if character == "\\":
                self.pos += 1
            elif character == "[" and brackets:
                # A delimiter in brackets ends the expression for some versions and not for others.
                end = self.text.find("]", self.pos + 2)
                if end >= 0 and delimiter in self.text[self.pos : end]:
                    raise IndexError
            self.pos += 1
        self.pos += 1

    def _read_command(self) -> bool:
        command = self.text[self.pos]
        self.pos += 1
        if command in _SED_PLAIN:
            self._skip("0123456789 \t")
            return self._ends()
        if command in "{}":
            return True
        if command in "qQ":
            self._skip("0123456789 \t")
            return self._ends()
        if command in "aic#:btT":
            return self._read_line(command)
        if command in "sy":
            return self._read_substitution(command)
        return False

    def _read_line(self, command: str) -> bool:
        if command in "btT:":
            return self._read_label()
        while self._peek() and self._peek() != "\n":
            if command in "aic" and self._peek() == "\\":
                self.pos += 1
            self.pos += 1
        return True

    def _read_label(self) -> bool:
        """Read a label, which a blank ends as well: a command may follow it."""
        self._skip(" \t")
        while self._peek() and self._peek() not in ";\n} \t":
            self.pos += 1
        self._skip(" \t")
        return self._ends()

    def _read_substitution(self, command: str) -> bool:
        delimiter = self.text[self.pos]
        if delimiter in "\n\\":
            return False
        self.pos += 1
        self._read_until(delimiter, brackets=command == "s")
        self._read_until(delimiter, brackets=False)
        if command == "s":
            match = _SED_FLAGS.match(self.text, self.pos)
            assert match is not None
            self.pos = match.end()
        self._skip(" \t")
        return self._ends()

    def _ends(self) -> bool:
        return self._peek() in ("", ";", "\n", "}", "#")


def awk_is_plain(program: str) -> bool:
    """Return True if an `awk` program only prints: it starts nothing and opens no file."""
    if re.search(r"\b(system|getline|ARGV|ARGC)\b|@|\|&|\bextension\b|\x00", program):
        return False
    pos, before, depth, printing = 0, "", 0, False
    while pos < len(program):
        match = _match_awk(program, pos, before)
        if match is None:
            return False
        found = match[0]
        pos = match.end()
        if found[0] == "#" or found.strip(" \t") == "" or found == "\\\n":
            continue
        if found == "|" or (found == ">" and printing and depth <= 0):
            return False
        depth += (found in "([") - (found in ")]")
        if found in _AWK_ENDS or ("\n" in found and before not in _AWK_GOES_ON):
            printing, depth = False, 0
        elif found in _AWK_PRINTS:
            printing = True
        before = found
    return True


def _match_awk(program: str, pos: int, before: str) -> "re.Match[str] | None":
    character = program[pos]
    if character == "#":
        return _AWK_COMMENT.match(program, pos)
    if character == '"':
        return _AWK_STRING.match(program, pos)
    if character == "/":
        # After a value a slash divides. After these it cannot be told apart from an expression.
        if before in (")", "++", "--") and max(map(program.rfind, '"|>')) > pos:
            return None
        if not _AWK_VALUE.fullmatch(before) or before in _AWK_WORDS:
            return _AWK_REGEX.match(program, pos)
    return _AWK_TOKEN.match(program, pos)
