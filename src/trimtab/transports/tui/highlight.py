"""Colours of source code, one line at a time, with the state carried from line to line."""

from typing import Any

from pygments.lexer import Lexer, RegexLexer, default
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

from trimtab.transports.tui.cells import Line, Span

LONGEST = 2000
"""Characters of a line above which it is not coloured: some patterns take quadratic time."""
_STYLES = (
    (Token.Comment, "comment"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "name"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "name"),
    (Token.Generic.Inserted, "added"),
    (Token.Generic.Deleted, "removed"),
    (Token.Generic.Heading, "heading"),
    (Token.Generic.Subheading, "heading"),
)


class Highlighter:
    """Colours the lines of one code block. An unknown language is not coloured."""

    def __init__(self, language: str) -> None:
        self._lexer = find_lexer(language)
        self._stack = ["root"]

    def colour(self, line: str) -> Line:
        """Return the next line of the block with styles; its text is unchanged."""
        if self._lexer is None or len(line) > LONGEST:
            return (("", line),)
        if isinstance(self._lexer, RegexLexer):
            spans = self._lex(self._lexer, f"{line}\n")
        else:
            spans = [(style_of(kind), text) for kind, text in self._lexer.get_tokens(line)]
        return merge(spans, line)

    def _lex(self, lexer: RegexLexer, text: str) -> list[Span]:
        """Lex as `RegexLexer` does, but keep the stack of states for the next line."""
        states: dict[str, Any] = lexer._tokens  # type: ignore[attr-defined]
        spans: list[Span] = []
        position, steps = 0, 0
        while position < len(text):
            steps += 1
            for match_at, action, new_state in states[self._stack[-1]]:
                found = match_at(text, position)
                if found is None or (not found.group() and new_state is None):
                    continue
                if action is not None:
                    spans += self._run(lexer, action, found)
                position = found.end()
                self._move(new_state)
                break
            else:
                if text[position] == "\n":
                    self._stack = self._stack if len(self._stack) > 1 else ["root"]
                spans.append(("", text[position]))
                position += 1
            if steps > 4 * len(text) + 16:  # states that never consume anything
                spans.append(("", text[position:]))
                self._stack = ["root"]
                break
        return spans

    @staticmethod
    def _run(lexer: RegexLexer, action: Any, found: Any) -> list[Span]:
        if isinstance(action, _TokenType):
            return [(style_of(action), found.group())]
        return [(style_of(kind), text) for _, kind, text in action(lexer, found)]

    def _move(self, new_state: Any) -> None:
        if new_state is None:
            return
        if isinstance(new_state, default):
            new_state = new_state.state
        for state in new_state if isinstance(new_state, tuple) else (new_state,):
            if state == "#pop":
                del self._stack[1 if len(self._stack) == 1 else -1 :]
            elif state == "#push":
                self._stack.append(self._stack[-1])
            elif isinstance(state, int):
                del self._stack[max(1, len(self._stack) + state) :]
            else:
                self._stack.append(state)


def find_lexer(language: str) -> Lexer | None:
    """Return the lexer for the name after a fence, or None."""
    try:
        return get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        return None


def style_of(kind: _TokenType) -> str:
    """Return the style of a kind of token."""
    for parent, style in _STYLES:
        if kind is parent or kind in parent:  # type: ignore[comparison-overlap]
            return style
    return ""


def merge(spans: list[Span], line: str) -> Line:
    """Join neighbours of one style; return the line uncoloured if its text was changed."""
    merged: list[Span] = []
    for style, text in spans:
        if merged and merged[-1][0] == style:
            merged[-1] = (style, merged[-1][1] + text)
        elif text:
            merged.append((style, text))
    if "".join(text for _, text in merged) not in (line, f"{line}\n"):
        return (("", line),)
    if merged and merged[-1][1].endswith("\n"):
        merged[-1] = (merged[-1][0], merged[-1][1][:-1])
    return tuple(span for span in merged if span[1])
