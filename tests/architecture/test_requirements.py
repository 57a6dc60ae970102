"""The manifest of statements and the tests that prove them agree, in both directions."""

from requirements import declared_open, proven, statements


def test_every_id_a_test_names_is_a_statement() -> None:
    assert set(proven()) <= set(statements())


def test_every_statement_is_proven_or_declared_open_and_never_both() -> None:
    known, done, still_open = set(statements()), set(proven()), declared_open()
    assert still_open <= known
    assert not done & still_open, "proven now: run python tests/requirements.py --write"
    assert known == done | still_open
