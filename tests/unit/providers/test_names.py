"""When two names mean one model, what a mistyped one may have meant, and levels of effort."""

import pytest

from trimtab.providers.effort import effort_schema, map_effort
from trimtab.providers.names import did_you_mean, near, same_model


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4.1", "gpt-4.1-2025-04-14", True),
        ("claude-sonnet-4.5", "claude-sonnet-4-5-20250929", True),
        ("openai/gpt-4o", "gpt-4o-2024-11-20", True),
        ("qwen2.5-coder", "qwen2.5-coder:latest", True),
        ("m", "/models/m.gguf", True),
        ("auto", "gpt-5-mini", True),
        ("gpt-4.1", None, True),
        ("gpt-4.1", "gpt-4.1-mini", False),
        ("claude-opus-4.5", "claude-sonnet-4.5", False),
        ("gpt-5", "gpt-5-codex", False),
    ],
)
def test_a_date_or_vendor_does_not_make_another_model(
    asked: str, answered: str | None, same: bool
) -> None:
    assert same_model(asked, answered) == same


def test_near_names_are_found_by_spelling_and_by_part() -> None:
    known = ["gpt-4.1", "gpt-4.1-mini", "claude-sonnet-4.5", "text-embedding-3"]
    assert near("gtp-4.1", known)[0] == "gpt-4.1"
    assert near("sonnet", known)[0] == "claude-sonnet-4.5"
    assert "did you mean claude-sonnet-4.5" in did_you_mean("claude-sonet-4.5", known)
    assert "run `trimtab models`" in did_you_mean("x", [])


@pytest.mark.parametrize(
    ("effort", "levels", "sent"),
    [
        ("max", ("low", "medium", "high", "xhigh"), "xhigh"),
        ("max", ("low", "medium", "high"), "high"),
        ("max", ("high", "max"), "max"),
        ("max", (), "max"),
        ("xhigh", ("low",), "xhigh"),
        (None, ("low",), None),
    ],
)
def test_max_becomes_the_highest_level_a_model_has(
    effort: str | None, levels: tuple[str, ...], sent: str | None
) -> None:
    assert map_effort(effort, levels) == sent


@pytest.mark.proves("MODEL-11")
def test_a_model_has_a_schema_of_its_own_levels_of_effort() -> None:
    schema = effort_schema(("low", "medium", "high", "xhigh"))
    assert schema == {
        "type": "object",
        "properties": {
            "reasoningEffort": {"type": "string", "enum": ["low", "medium", "high", "xhigh"]}
        },
    }
    assert effort_schema(()) is None
