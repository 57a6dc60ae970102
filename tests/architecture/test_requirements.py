"""The manifest of statements, the tests that prove them and the decisions about them agree."""

from pathlib import Path

from requirements import built, decided, declared_open, proven, statements


def test_every_id_a_test_names_is_a_statement() -> None:
    assert set(proven()) <= set(statements())


def test_every_statement_is_proven_decided_or_declared_open_and_only_one_of_these() -> None:
    known, done, ruled, still_open = (
        set(statements()),
        set(proven()),
        set(decided()),
        declared_open(),
    )
    assert still_open <= known
    assert not done & still_open, "proven now: run python tests/requirements.py --write"
    assert not done & ruled, "proven: take `decided` out of tests/requirements.toml"
    assert not ruled & still_open, "decided: run python tests/requirements.py --write"
    assert known == done | ruled | still_open
    assert len(known) == len(done) + len(ruled) + len(still_open)


def test_every_place_where_a_statement_is_built_exists() -> None:
    root = Path(__file__).parents[2]
    missing = {path for paths in built().values() for path in paths if not (root / path).exists()}
    assert not missing


def test_every_decision_about_a_statement_has_a_record_that_names_it() -> None:
    for name, record in decided().items():
        assert name in record.read_text(), f"{record} does not say anything about {name}"
