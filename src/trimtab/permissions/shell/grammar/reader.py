"""Reads the words of a bash script: quotes, escapes and expansions."""

import re
from abc import ABC, abstractmethod

from trimtab.permissions.shell.grammar.ansi import decode
from trimtab.permissions.shell.grammar.syntax import (
    Command,
    Effort,
    Piece,
    Redirect,
    Script,
    Unparsable,
    Word,
)

DEEPEST = 60
META = frozenset(" \t\n;&|<>()")
_PLAIN = re.compile(r"[^ \t\n\\'\"$`;&|<>()]+")
_IN_QUOTES = re.compile(r'[^\\"$`]+')
_IN_HEREDOC = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POSITION = re.compile(r"\$\{?([1-9]\d*|[@*])")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_BRACED = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_KEYS = re.compile(r"!?[A-Za-z_][A-Za-z0-9_]*\[[@*]\]\}")
_DEFAULT = re.compile(r":?-\d+\}")
_FAR = re.compile(r":?[-=+]['\"]?((?:/|~|\.\./|\$HOME/|\$\{HOME\}/)[^}$`'\"]*)")
_FOLDERS = frozenset(("PWD", "OLDPWD", "HOME"))
_ENDED = re.compile(r'"?(?:[\s;&|()<>]|$)')
_SHORTENED = re.compile(r"%|/|:[^-=+?]")
"""Operations that make a folder's path another one."""
_REPLACED = re.compile(r"(?:/[\w.@+-]+){2,}")
_COUNTS = re.compile(r"--count|-[A-Za-z]*c")
_NAMING = re.compile(r"-[A-Za-z]*[rRHd]|--(?!count$)")
"""Options of grep by which it prints names of files that it finds."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
UNKNOWN = Piece("unknown")
SPLITTING = Piece("unknown", splits=True)
NUMERIC = frozenset(("((", "wc", "date", "nproc", "stat", "id", "getconf", "tput", "seq"))
"""Commands whose output is a number: what they print may be computed with."""
TOP = "git rev-parse --show-toplevel"
COPIED = "cat <<"
"""Marks a piece that is the text of a heredoc, which follows."""
DEFAULTED = ":-"
"""Marks a piece that is a variable, or a number if that has no value."""


class Reader(ABC):
    """A text and a place in it. What is found goes into `script`, also from nested texts."""

    def __init__(self, text: str, script: Script, *, depth: int, effort: Effort) -> None:
        self.text = text
        self.pos = 0
        self.script = script
        self.depth = depth
        self.effort = effort
        self.heredocs: list[tuple[Redirect, bool, bool]] = []
        self._prompts = "@P}" in text
        if depth > DEEPEST:
            raise Unparsable("it is nested too deeply")
        if depth == 0 and _CONTROL.search(text):
            self.doubt("it contains control characters")

    def doubt(self, reason: str) -> None:
        if reason not in self.script.unclear:
            self.script.unclear.append(reason)

    def peek(self, length: int = 1) -> str:
        return self.text[self.pos : self.pos + length]

    def nested(self, text: str) -> "Reader":
        """A reader of the same kind for a text inside this one."""
        return type(self)(text, self.script, depth=self.depth + 1, effort=self.effort)

    @abstractmethod
    def read_substitution(self) -> None:
        """Read commands up to the parenthesis that closes them."""

    @abstractmethod
    def read_script(self) -> None:
        """Read commands up to the end of the text."""

    def read_word(self, *, pattern: bool = False) -> Word:
        """The word that starts here; in a `pattern` parentheses and bars belong to the word."""
        self.effort.spend()
        pieces: list[Piece] = []
        opened = 0
        while self.pos < len(self.text):
            character = self.text[self.pos]
            if character in META:
                if character in "<>" and self.text[self.pos + 1 : self.pos + 2] == "(":
                    self.pos += 2
                    self.read_substitution()
                    pieces += [Piece("quoted", "/dev/fd/"), UNKNOWN]
                    continue
                if not pattern or character not in "()|<>" or (character == ")" and not opened):
                    break
                opened += {"(": 1, ")": -1}.get(character, 0)
                pieces.append(Piece("quoted", character))
                self.pos += 1
            elif character == "\\" and self._joins_lines():
                self.pos += 2
                if self.peek() and self.peek() not in META:
                    self.doubt("a line is continued inside a word")
            elif match := _PLAIN.match(self.text, self.pos):
                pieces.append(Piece("bare", match[0]))
                self.pos = match.end()
            else:
                self._read_special(pieces)
        return Word(pieces)

    def _joins_lines(self) -> bool:
        return self.text.startswith("\\\n", self.pos)

    def _read_special(self, pieces: list[Piece]) -> None:
        character = self.text[self.pos]
        self.pos += 1
        if character == "\\":
            pieces.append(Piece("quoted", self._take("a backslash ends the text")))
        elif character == "'":
            end = self.text.find("'", self.pos)
            if end < 0:
                raise Unparsable("a quote is not closed")
            pieces.append(Piece("quoted", self.text[self.pos : end]))
            self.pos = end + 1
        elif character == '"':
            pieces.append(Piece("quoted"))
            self.read_quoted(pieces, '"')
        elif character == "`":
            pieces.append(self._read_backticks(quoted=False))
        else:
            self._read_dollar(pieces, quoted=False)

    def _take(self, otherwise: str) -> str:
        if self.pos >= len(self.text):
            raise Unparsable(otherwise)
        self.pos += 1
        return self.text[self.pos - 1]

    def read_quoted(self, pieces: list[Piece], close: str) -> None:
        """The inside of double quotes, or (with `close` empty) of a heredoc."""
        plain = _IN_QUOTES if close else _IN_HEREDOC
        while True:
            if self.pos >= len(self.text):
                if close:
                    raise Unparsable("a quote is not closed")
                return
            if match := plain.match(self.text, self.pos):
                pieces.append(Piece("quoted", match[0]))
                self.pos = match.end()
                continue
            character = self.text[self.pos]
            self.pos += 1
            if character == close:
                return
            if character == "\\":
                self._read_escape(pieces, close)
            elif character == "`":
                pieces.append(self._read_backticks(quoted=bool(close)))
            else:
                self._read_dollar(pieces, quoted=True)

    def _read_escape(self, pieces: list[Piece], close: str) -> None:
        following = self.peek()
        if following == "\n":
            self.pos += 1
        elif following and following in f"$`\\{close}":
            self.pos += 1
            pieces.append(Piece("quoted", following))
        else:
            pieces.append(Piece("quoted", "\\"))

    def _read_backticks(self, *, quoted: bool) -> Piece:
        start = self.pos
        while self.pos < len(self.text) and self.text[self.pos] != "`":
            self.pos += 2 if self.text[self.pos] == "\\" else 1
        if self.pos >= len(self.text):
            raise Unparsable("a backtick is not closed")
        inside = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", self._since(start))
        self.pos += 1
        self.doubt("it uses backticks")
        self.nested(inside).read_script()
        return UNKNOWN if quoted else SPLITTING

    def _since(self, start: int) -> str:
        return self.text[start : self.pos]

    def _read_dollar(self, pieces: list[Piece], *, quoted: bool) -> None:
        """Read what follows a dollar sign."""
        while self._joins_lines():
            self.doubt("a line is continued inside an expansion")
            self.pos += 2
        following = self.peek()
        if following == "'" and not quoted:
            pieces.append(self._read_ansi())
        elif following == '"' and not quoted:
            self.doubt("it uses a translated string")
            self.pos += 1
            pieces.append(UNKNOWN)
            self.read_quoted(pieces, '"')
        elif following == "(":
            self.pos += 1
            if self.peek() == "(" and self.read_arithmetic("(", ")"):
                pieces.append(Piece("unknown", "((", splits=not quoted))
                return
            before = len(self.script.commands)
            self.read_substitution()
            pieces.append(Piece("unknown", self._speaker(before), splits=not quoted))
        elif following == "{":
            self.pos += 1
            pieces.append(self._read_braced(quoted=quoted))
        elif following == "[":
            self.doubt("it uses an outdated form of arithmetic")
            if not self.read_arithmetic("[", "]"):
                raise Unparsable("a bracket is not closed")
            pieces.append(UNKNOWN)
        elif match := _PARAMETER.match(self.text, self.pos):
            self.pos = match.end()
            pieces.append(Piece("variable", match[0], splits=not quoted or match[0] == "@"))
        else:
            pieces.append(Piece("quoted", "$"))

    def _speaker(self, before: int) -> str:
        """The command that alone writes what a substitution just read gives, if one does."""
        commands = self.script.commands[before:]
        if not commands or any(command.joint != "|" for command in commands[1:]):
            return ""
        is_whole = len(commands) == 1
        if len(commands) > 1 and [word.bare for word in commands[-1].words[:2]] == ["tr", "-d"]:
            commands = commands[:-1]
        pieces = [piece for word in commands[-1].words for piece in word.pieces]
        if any(piece.kind not in ("bare", "quoted") for piece in pieces):
            return ""
        words = [word.bare or "" for word in commands[-1].words]
        if is_whole and (known := _find_known(commands[0], words)):
            return known
        # Some print the names of files, too, and a file may be named like code.
        names = any(character in piece.text for piece in pieces for character in "*?[")
        if words[:1] == ["grep"] and any(_COUNTS.fullmatch(word) for word in words):
            return "" if names or any(map(_NAMING.match, words)) else "wc"
        text = "".join(words)
        if words[:1] in (["wc"], ["stat"]) and (names or re.search("%[nN]|--f", text)):
            return ""
        return words[0] if words else ""

    def _read_ansi(self) -> Piece:
        start = self.pos + 1
        self.pos = start
        while self.pos < len(self.text) and self.text[self.pos] != "'":
            self.pos += 2 if self.text[self.pos] == "\\" else 1
        if self.pos >= len(self.text):
            raise Unparsable("a quote is not closed")
        raw = self._since(start)
        self.pos += 1
        decoded, unusual = decode(raw)
        # A NUL ends such a string early; what is lost then depends on the version of the shell.
        if "\0" in decoded or unusual:
            self.doubt("it uses an unusual escape")
        if not (decoded.isascii() or raw == decoded):  # bytes, or what the locale makes of them
            return UNKNOWN
        return Piece("quoted", decoded.partition("\0")[0])

    def read_arithmetic(self, opening: str, closing: str) -> bool:
        """Read `((…))` or `[…]` from its opening; False, at the same place, if it is none."""
        start, depth = self.pos, 1
        self.script.failing += 1
        self.pos += 1
        joint = -1
        """The end of the last name or expansion: what follows at once is a part of it."""
        while depth:
            if self.pos >= len(self.text):
                self.pos = start
                return False
            character = self.text[self.pos]
            self.pos += 1
            if character == opening:
                depth += 1
            elif character == closing:
                depth -= 1
            elif character in "\"'\\":
                self.doubt("arithmetic contains quotes")
            elif character in "$`":
                self._note_joint(joint)
                self._read_operand(character)
                joint = self.pos
            elif match := _NAME.match(self.text, self.pos - 1):
                self._note_joint(joint)
                self.script.computed.add(match[0])
                joint = self.pos = match.end()
        if opening == "(":
            if self.peek() != ")":
                raise Unparsable("a part of it may be arithmetic or commands")
            self.pos += 1
        return True

    def _note_joint(self, joint: int) -> None:
        """Note a name that is put together: `${x}TH`, and `PA$x`."""
        if joint == self.pos - 1:
            self.script.hazards.append("arithmetic uses a name that is put together")

    def _read_operand(self, character: str) -> None:
        pieces: list[Piece] = []
        if character == "`":
            pieces.append(self._read_backticks(quoted=True))
        else:
            self._read_dollar(pieces, quoted=True)
        for piece in pieces:
            if piece.kind == "variable":
                self.script.computed.add(piece.text)
            elif piece.text.startswith(DEFAULTED):
                self.script.computed.add(piece.text.removeprefix(DEFAULTED))
            elif piece.kind == "unknown":
                self.script.computes = True
                self.script.substitutes |= piece.text not in NUMERIC

    def _read_braced(self, *, quoted: bool) -> Piece:
        """A parameter expansion after its opening brace."""
        if self.peek() in (" ", "\t", "\n", "|", "("):
            raise Unparsable("it uses a command in braces as an expansion")
        if match := _KEYS.match(self.text, self.pos):
            self.pos = match.end()
            return UNKNOWN if quoted and "[*]" in match[0] else SPLITTING
        if self.peek() == "!":
            self.script.hazards.append("${!…} uses a variable named by another")
            self.pos += 1
        elif self.peek() == "#" and self.peek(2) != "#}":
            self.pos += 1
        name = _BRACED.match(self.text, self.pos)
        if name is None:
            raise Unparsable("an expansion is malformed")
        self.pos = name.end()
        before = self.text[name.start() - 1]
        counted = "((" if before == "#" else ""
        # Quotes keep `$*` together, but not `$@` and `${a[@]}`.
        lists = not counted and (name[0] == "@" or self.peek(3) == "[@]")
        splits = not quoted or lists
        if self.peek() == "}":
            self.pos += 1
            if before == "{":
                return Piece("variable", name[0], splits=splits)
            return Piece("unknown", counted, splits=splits)
        if before == "{" and _DEFAULT.match(self.text, self.pos):
            counted = DEFAULTED + name[0]
        shortened = name[0] in _FOLDERS and _SHORTENED.match(self.text, self.pos)
        self._read_operation(name[0])
        if shortened and not _ENDED.match(self.text, self.pos):
            self.script.defaults.append("../")
        return Piece("unknown", counted, splits=splits)

    def _read_operation(self, name: str) -> None:
        """The rest of an expansion: subscript, operator and words, up to the closing brace."""
        rest = self.text[self.pos : self.pos + 2]
        self.script.failing += rest[:1] in "[=" or (rest[:1] == ":" and rest[1:] not in "-+")
        if rest == "@P" or (rest[:1] == "[" and self._prompts):
            self.script.hazards.append("${…@P} runs commands found in a value")
        if rest[:1] == "=" or rest == ":=":
            self.script.assign(name, None)
        if default := _FAR.match(self.text, self.pos):
            self.script.defaults.append(re.sub(r"^\$(?:HOME|\{HOME\})", "~", default[1]))
        if rest[:1] in ("/", "%", "#", "^", ","):
            end = self.text.find("}", self.pos)
            self.script.replacements += _REPLACED.findall(self.text[self.pos : end])
        if rest[:1] == "[" or (rest[:1] == ":" and rest[1:] not in ("-", "=", "?", "+")):
            self._note_computed()
        depth = 1
        while depth:
            character = self._take("an expansion is not closed")
            depth += (character == "{") - (character == "}")
            self._read_inside(character)

    def _read_inside(self, character: str) -> None:
        """One character of an expansion, with what it begins."""
        if character == "\\":
            if self.peek() == "\n":
                self.doubt("a line is continued inside an expansion")
            self.pos += 1
        elif character in "'\"":
            self.doubt("an expansion contains quotes")
        elif character == "`":
            self._read_backticks(quoted=True)
        elif character == "$":
            self._read_dollar([], quoted=True)
        elif character in "<>" and self.peek() == "(":
            self.pos += 1
            self.read_substitution()

    def _note_computed(self) -> None:
        """Subscripts and offsets are arithmetic."""
        end = self.text.find("}", self.pos)
        if end < 0:
            raise Unparsable("an expansion is not closed")
        inside = self.text[self.pos : end]
        self.script.computed.update(_NAME.findall(inside))
        self.script.computed.update(_POSITION.findall(inside))
        if "$(" in inside:
            self.script.substitutes = True

    def read_heredocs(self) -> None:
        """The bodies of the heredocs announced on the line that ends here."""
        waiting, self.heredocs = self.heredocs, []
        for redirect, strips, expands in waiting:
            delimiter = "".join(piece.text for piece in redirect.target.pieces)
            lines: list[str] = []
            while True:
                if self.pos >= len(self.text):
                    raise Unparsable("a heredoc is not closed")
                end = self.text.find("\n", self.pos)
                end = len(self.text) if end < 0 else end
                line = self.text[self.pos : end]
                self.pos = end + 1
                if expands and line.endswith("\\"):
                    self.doubt("a line is continued in a heredoc")
                line = line.lstrip("\t") if strips else line
                if line == delimiter:
                    break
                if line.strip(" \t") == delimiter:
                    self.doubt("the end of a heredoc is indented")
                lines.append(line + "\n")
            assert redirect.body is not None
            self._read_body("".join(lines), redirect.body, expands=expands)

    def _read_body(self, text: str, body: Word, *, expands: bool) -> None:
        if expands:
            self.nested(text).read_quoted(body.pieces, "")
        else:
            body.pieces.append(Piece("quoted", text))


def _find_known(command: Command, words: list[str]) -> str:
    """Return a mark for a command whose output can be known: a heredoc, or git's top folder."""
    if words == TOP.split():
        return TOP
    redirects = command.redirects
    if words != ["cat"] or len(redirects) != 1 or command.assignments:
        return ""
    body = redirects[0].body
    if redirects[0].operator not in ("<<", "<<-") or body is None:
        return ""
    if any(piece.kind not in ("bare", "quoted") for piece in body.pieces):
        return ""
    return COPIED + "".join(piece.text for piece in body.pieces).rstrip("\n")
