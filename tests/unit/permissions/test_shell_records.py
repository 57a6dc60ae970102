"""Every command of our lists is read as the file says it was."""

from itertools import zip_longest

from properties.analyses import describe_all, read_known


def test_every_command_is_read_as_it_was() -> None:
    differ = [pair for pair in zip_longest(read_known(), describe_all()) if pair[0] != pair[1]]
    assert differ == [], (
        "the analyser reads commands otherwise: look at each, then run "
        "`python tests/properties/analyses.py --write`"
    )
