"""Arguments, as far as they can be known."""

import pytest

from trimtab.permissions.shell.grammar.syntax import Piece, Script, Word
from trimtab.permissions.shell.grammar.words import (
    LONGEST,
    UNKNOWN,
    Argument,
    Variables,
    expand_braces,
)
from trimtab.permissions.shell.verdict.analyse import analyse


@pytest.mark.parametrize(
    ("argument", "known", "several", "option"),
    [
        (Argument("a"), True, False, False),
        (Argument(""), True, False, False),
        (Argument("*a"), True, False, False),
        (Argument("*a", pattern=True), False, True, True),
        (Argument("?a", pattern=True), False, True, True),
        (Argument("[a]", pattern=True), False, True, True),
        (Argument("a*", pattern=True), False, True, False),
        (Argument(UNKNOWN), False, False, True),
        (Argument(UNKNOWN + "a", many=True), False, True, True),
        (Argument("a" + UNKNOWN), False, False, False),
        (Argument("a", many=True), True, True, False),
    ],
)
def test_an_argument_says_how_much_of_it_is_certain(
    argument: Argument, known: bool, several: bool, option: bool
) -> None:
    assert (argument.known, argument.several, argument.may_be_option) == (known, several, option)


@pytest.mark.parametrize(("length", "known"), [(LONGEST // 2, True), (LONGEST // 2 + 1, False)])
def test_a_text_that_grows_too_long_is_not_known(length: int, known: bool) -> None:
    script = Script()
    script.assign("x", Word([Piece("quoted", "a" * length)]))
    twice = Word([Piece("variable", "x"), Piece("variable", "x")])
    (argument,) = Variables(script, {}).expand(twice)
    assert argument.known is known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", ["a"]),
        ("{a,b}c", ["ac", "bc"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{a}", ["{a}"]),
        ("{a}{b,c}", ["{a}b", "{a}c"]),
        ("{a,b", ["{a,b"]),
        ("{,a}", ["", "a"]),
        ("{" * 64 + "a,b}", ["{" * 63 + "a", "{" * 63 + "b"]),
    ],
)
def test_braces_make_several_words(text: str, words: list[str]) -> None:
    found = expand_braces([Piece("bare", text)])
    assert ["".join(piece.text for piece in pieces) for pieces in found] == words


@pytest.mark.parametrize("text", ["{a,b}" * 7, "{" * 65 + "a,b}", "{" + "a," * 64 + "}"])
def test_a_word_that_makes_too_many_is_not_known(text: str) -> None:
    assert list(expand_braces([Piece("bare", text)])) == [[Piece("unknown", splits=True)]]


@pytest.mark.parametrize(
    ("script", "known"),
    [
        ("git commit -m \"$(cat <<'EOF'\nfix: $x\nEOF\n)\"", True),
        ('git merge a -m "$(cat <<EOF\n-s ours\nEOF\n)"', True),
        ('git merge a -m "$(cat <<EOF\n$x\nEOF\n)"', False),
        ('git merge a -m "$(cat f <<EOF\na\nEOF\n)"', False),
        ('git merge a -m "$(cat <<EOF | tr a b\na\nEOF\n)"', False),
        ('cat() { frob; }; git merge a -m "$(cat <<EOF\na\nEOF\n)"', False),
    ],
)
def test_the_text_of_a_heredoc_that_is_printed_is_known(script: str, known: bool) -> None:
    found = next(c for c in analyse(script, "/srv/project").commands if c.base.startswith("git "))
    assert (len(found.words) == len(found.leading) and "-m" not in found.words[-1:]) is known
