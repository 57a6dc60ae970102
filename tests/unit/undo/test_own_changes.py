"""The session's own changes to files, apart from those of others."""

from pathlib import Path

import pytest

from livekit import opened
from trimtab.undo.own_changes import list_own_changes


@pytest.mark.parametrize(("old", "new"), [("b\n", "a\n"), ("a\n", "b\n"), ("", "a\n")])
async def test_a_changed_file_is_listed_whatever_it_says(
    tmp_path: Path, old: str, new: str
) -> None:
    (tmp_path / "a.txt").write_text(old)
    (tmp_path / "same.txt").write_text("same\n")
    command = f"printf {new!r} > a.txt; printf x > same.txt; printf 'same\\n' > same.txt"
    call = {"name": "bash", "arguments": {"command": command, "description": "write"}}
    async with opened(tmp_path, [{"tools": [call]}, "Done."]) as (live, _, _):
        await live.ask("go")
        own = list_own_changes(live.history.recorded(), live.recorder.store)
    changed = [change for change in own if change.path.endswith("a.txt")]
    assert [(change.before, change.after) for change in changed] == [(old.encode(), new.encode())]
    assert [change.path for change in own if change.path.endswith("same.txt")] == []
