"""The parts of a script."""

import pytest

from trimtab.permissions.shell.grammar.syntax import (
    Command,
    Effort,
    Piece,
    Script,
    Unparsable,
    Word,
)


def test_as_many_steps_may_be_taken_as_there_are() -> None:
    effort = Effort(2)
    effort.spend()
    effort.spend()
    with pytest.raises(Unparsable, match="it takes too long to read"):
        effort.spend()


def test_only_a_word_without_quotes_and_expansions_is_bare() -> None:
    assert Word([Piece("bare", "a"), Piece("bare", "b")]).bare == "ab"
    assert Word([]).bare == ""
    assert Word([Piece("bare", "a"), Piece("quoted", "b")]).bare is None
    assert Word([Piece("variable", "a")]).bare is None


def test_a_command_is_plain_until_something_else_is_said() -> None:
    command = Command()
    assert (command.joint, command.is_test, command.in_function) == (";", False, False)
    assert not Piece("bare").splits
    script = Script()
    assert not script.computes
    assert not script.substitutes


def test_every_value_of_a_variable_is_kept() -> None:
    script = Script()
    word = Word([Piece("bare", "a")])
    script.assign("x", word)
    script.assign("x", None)
    script.assign("y", None)
    assert script.values == {"x": [word, None], "y": [None]}
