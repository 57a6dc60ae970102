"""The analysis against a real bash, at the size of a test run."""

from properties.place_fuzz import fuzz as fuzz_places
from properties.reading_fuzz import fuzz as fuzz_reading
from properties.shell_fuzz import fuzz


def test_bash_starts_nothing_that_the_analysis_does_not_name() -> None:
    figures = fuzz(300, "suite")
    assert figures.misses == []
    assert figures.certain >= 60
    assert figures.started >= 60


def test_what_is_called_read_only_changes_no_file() -> None:
    figures = fuzz_reading(500, "suite")
    assert figures.changed == []
    assert figures.run >= 40


def test_a_rule_for_writing_covers_only_files_that_were_judged() -> None:
    figures = fuzz_places(2000, "suite")
    assert figures.misses == []
    assert figures.covered >= 40
    assert figures.changed >= 50
