"""What follows from what was found in a command."""

import pytest

from trimtab.permissions.shell.verdict.analysis import Analysis, Found

READS = Found(identifier="ls", read_only=True, base="ls")
MAY_READ = Found(identifier="sort", read_only=False, base="sort", doubtful=True)
CHANGES = Found(identifier="rm", read_only=False, base="rm")
STARTED = Found(identifier="foo", read_only=True, base="foo", shadow=True)


@pytest.mark.parametrize(
    ("commands", "reads", "seems"),
    [
        ([], True, True),
        ([READS], True, True),
        ([READS, MAY_READ], False, True),
        ([MAY_READ], False, True),
        ([READS, CHANGES], False, False),
        ([CHANGES], False, False),
    ],
)
def test_a_command_reads_only_if_all_that_it_starts_does(
    commands: list[Found], reads: bool, seems: bool
) -> None:
    analysis = Analysis(commands=commands)
    assert (analysis.read_only, analysis.seems_read_only) == (reads, seems)


@pytest.mark.parametrize(
    ("analysis", "seems", "offered", "ruled", "known"),
    [
        (Analysis(commands=[READS]), True, True, True, True),
        (Analysis(), True, False, False, True),
        (Analysis(commands=[READS], targets=["/a"]), False, False, True, True),
        (Analysis(commands=[READS], targets=[None]), False, False, True, True),
        (Analysis(commands=[READS], hazards=["a"]), False, False, False, True),
        (Analysis(commands=[READS], dynamic=["a"]), False, False, False, False),
        (Analysis(commands=[READS], destructive=["a"]), False, False, False, True),
        (Analysis(commands=[READS], problem="a"), False, False, False, False),
        (Analysis(commands=[READS], doubts=["a"]), True, False, False, False),
        (Analysis(commands=[READS], conceals="a"), True, True, True, False),
        (Analysis(commands=[CHANGES], deleted=["/a"]), False, True, True, True),
    ],
)
def test_one_reason_is_enough_against_each_conclusion(
    analysis: Analysis, seems: bool, offered: bool, ruled: bool, known: bool
) -> None:
    assert analysis.seems_read_only is analysis.read_only is seems
    assert (analysis.can_be_offered, analysis.can_be_ruled) == (offered, ruled)
    assert analysis.is_known is known


def test_a_hazard_is_noted_once_and_the_first_that_conceals_is_kept() -> None:
    analysis = Analysis()
    analysis.add_hazards()
    assert (analysis.hazards, analysis.conceals) == ([], "")
    analysis.add_hazards("a", conceals=False)
    assert (analysis.hazards, analysis.conceals) == (["a"], "")
    analysis.add_hazards("b", "c")
    analysis.add_hazards("a", "d")
    assert (analysis.hazards, analysis.conceals) == (["a", "b", "c", "d"], "b")


def test_a_request_names_what_is_started_by_the_command_itself() -> None:
    analysis = Analysis(
        commands=[READS, STARTED, CHANGES],
        possible_paths=["/a"],
        possible_urls=["https://a.example"],
        writes=True,
    )
    assert analysis.describe() == {
        "commands": [
            {"identifier": "ls", "readOnly": True},
            {"identifier": "rm", "readOnly": False},
        ],
        "possiblePaths": ["/a"],
        "possibleUrls": [{"url": "https://a.example"}],
        "hasWriteFileRedirection": True,
        "canOfferSessionApproval": True,
    }
    assert Analysis().describe()["hasWriteFileRedirection"] is False
