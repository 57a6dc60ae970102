"""Folding a log from the start gives the same result as folding the events live."""

import asyncio
import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import check_lines
from killkit import well_formed
from trimtab.contracts.options import PermissionOptions
from trimtab.session.session import Projections, replay
from trimtab.testing.playing import ALLOW_ALL, play

CALLS: list[dict[str, Any]] = [
    {"name": "view", "arguments": {"path": "."}},
    {"name": "view", "arguments": {"path": "nowhere"}},
    {"name": "create", "arguments": {"path": "a.txt", "file_text": "one\ntwo\n"}},
    {"name": "edit", "arguments": {"path": "a.txt", "old_str": "one", "new_str": "1\n1"}},
    {"name": "bash", "arguments": {"command": "echo hi", "description": "x"}},
    {"name": "unknown", "arguments": {}},
    {"name": "view", "arguments": "{broken"},
    {"name": "task_complete", "arguments": {"summary": "all done"}},
]

replies = st.fixed_dictionaries(
    {"text": st.text(alphabet="ab \n\u2028é\ud7ff", max_size=20)},
    optional={
        "tools": st.lists(st.sampled_from(CALLS), max_size=3),
        "reasoning": st.just({"text": "hm", "opaque": "xyz"}),
        "usage": st.just({"input": 7, "output": 3, "cached": 2}),
    },
)
scripts = st.lists(replies, min_size=1, max_size=5).map(
    lambda steps: {"replies": steps, "otherwise": {"text": "That is all."}}
)


def answers(projections: Projections) -> list[dict[str, Any]]:
    _ = projections.conversation.characters  # kept once asked for, so both are asked
    return [vars(projection) for projection in projections.all()]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    scripts,
    st.lists(st.sampled_from(["go", "do it", "again"]), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["interactive", "plan", "autopilot"]),
)
def test_live_equals_replay_on_random_runs(
    script: Any, prompts: list[str], allowed: bool, mode: str
) -> None:
    home = tempfile.mkdtemp(prefix="trimtab-replay-")
    permissions = ALLOW_ALL if allowed else PermissionOptions()
    try:
        played = asyncio.run(
            play(script, *prompts, home=home, cwd=home, mode=mode, permissions=permissions)
        )
        assert answers(replay(played.log)) == answers(played.projections)
        assert all(well_formed(list(request.messages)) for request in played.requests)
        check_lines(played.lines)
    finally:
        shutil.rmtree(home)
