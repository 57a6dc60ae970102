"""Hostile commands and repositories have no effect, whatever surface they come through."""

import pytest

from properties.hostile_corpus import (
    CHUNK,
    SURFACES,
    attempt,
    judge,
    load,
    make_random_class,
    unguarded,
)

CLASSES = {given.name: given for given in load()}
RUNNABLE = {name: given for name, given in CLASSES.items() if not given.judged_only}

pytestmark = pytest.mark.needs("git")


def test_the_corpus_has_cases_of_every_class() -> None:
    assert sum(len(given.cases) for given in CLASSES.values()) >= 1500
    assert len(CLASSES) >= 30


@pytest.mark.needs("landlock")
@pytest.mark.parametrize("name", RUNNABLE)
async def test_no_case_of_a_class_has_an_effect(name: str) -> None:
    given = RUNNABLE[name]
    sampled = given.cases[:: max(1, len(given.cases) // CHUNK)][:CHUNK]
    assert await attempt(given, sampled, SURFACES["main"], "auto") == []


@pytest.mark.needs("landlock")
@pytest.mark.parametrize("surface", [name for name in SURFACES if name != "main"])
async def test_no_case_has_an_effect_on_other_surfaces(surface: str) -> None:
    for given in RUNNABLE.values():
        sampled = given.cases[:: max(1, len(given.cases) // 4)][:4]
        assert await attempt(given, sampled, SURFACES[surface], "auto") == [], given.name


async def test_no_case_has_an_effect_without_a_fence() -> None:
    for given in RUNNABLE.values():
        sampled = given.cases[:: max(1, len(given.cases) // 6)][:6]
        assert await attempt(given, sampled, SURFACES["main"], "none") == [], given.name


@pytest.mark.needs("bubblewrap")
async def test_no_case_has_an_effect_with_bubblewrap() -> None:
    for given in RUNNABLE.values():
        sampled = given.cases[:: max(1, len(given.cases) // 4)][:4]
        assert await attempt(given, sampled, SURFACES["main"], "bubblewrap") == [], given.name


def test_processes_without_end_are_asked_about() -> None:
    (given,) = [given for given in CLASSES.values() if given.judged_only]
    assert list(judge(given)) == []


async def test_the_canaries_notice_what_happens() -> None:
    given = CLASSES["git: settings in other places"]
    seen = await attempt(given, ["git diff"], unguarded, "auto")
    assert {effect.kind for effect in seen} >= {"made", "written", "executed", "signalled"}
    reading = CLASSES["reading outside the workspace"]
    seen = await attempt(reading, ["cat link"], unguarded, "auto")
    assert [effect.kind for effect in seen] == ["read"]


@pytest.mark.needs("landlock")
async def test_random_scripts_have_no_effect() -> None:
    given = make_random_class(60, "suite")
    for start in range(0, len(given.cases), CHUNK):
        cases = given.cases[start : start + CHUNK]
        assert await attempt(given, cases, SURFACES["main"], "auto") == []
