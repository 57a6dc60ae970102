"""Properties of the order and the result of merging instructions."""

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from customizekit import places_in, write
from trimtab.contracts.customization import Instruction
from trimtab.customize.instructions import find_instructions, merge

STEPS = (
    "home/.copilot/copilot-instructions.md",
    "home/.codex/AGENTS.md",
    "home/.claude/CLAUDE.md",
    "home/.gemini/GEMINI.md",
    "repo/.github/copilot-instructions.md",
    "repo/AGENTS.md",
    "repo/CLAUDE.md",
    "repo/.claude/CLAUDE.md",
    "repo/GEMINI.md",
    "repo/.cursorrules",
    "repo/.github/instructions/a.instructions.md",
    "repo/.claude/rules/b.md",
    "home/.copilot/instructions/c.instructions.md",
    "home/.claude/rules/d.md",
    "repo/here/.github/copilot-instructions.md",
    "repo/here/AGENTS.md",
    "repo/here/CLAUDE.md",
    "repo/here/inner/AGENTS.md",
    "repo/here/inner/deep/GEMINI.md",
    "extra/AGENTS.md",
)
"""Files in the order of the specification: you, repository, rules, working directory, below."""

instructions = st.builds(
    Instruction,
    text=st.sampled_from("abc"),
    paths=st.tuples(st.sampled_from("pqrs")),
    source=st.just("repository"),
    location=st.just("repository"),
    globs=st.sampled_from([(), ("*.py",)]),
)


@given(st.lists(instructions, max_size=12))
def test_merging_keeps_the_first_places_and_loses_no_file(found: list[Instruction]) -> None:
    merged = merge(found)
    keys = [(each.text, each.globs) for each in merged]
    assert keys == list(dict.fromkeys((each.text, each.globs) for each in found))
    assert merge(merged) == merged
    for each in merged:
        same = [other for other in found if (other.text, other.globs) == (each.text, each.globs)]
        assert each.paths == tuple(dict.fromkeys(path for other in same for path in other.paths))


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(STEPS), st.sampled_from(["x", "y", "z", "w"]), max_size=12),
    st.booleans(),
)
def test_files_are_merged_in_the_order_of_the_steps(texts: dict[str, str], links: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        extra = folder / "extra"
        extra.mkdir()
        present = [name for name in STEPS if name in texts]
        for name in present:
            write(folder / name, texts[name])
        twin = folder / "repo" / "CLAUDE.local.md"
        if links and "repo/CLAUDE.md" in texts:
            os.symlink("CLAUDE.md", twin)
        places = places_in(folder, cwd="here", COPILOT_CUSTOM_INSTRUCTIONS_DIRS=str(extra))
        found = find_instructions(places, children=True)
        assert [each.text for each in found.instructions] == list(
            dict.fromkeys(texts[name] for name in present)
        )
        for each in found.instructions:
            mine = {str(folder / name) for name in present if texts[name] == each.text}
            assert set(each.paths) - {str(twin)} == mine
