"""The sessions that a person is offered to continue."""

from pathlib import Path

from livekit import opened
from trimtab.config.paths import find_home
from trimtab.host.session_list import list_resumable, list_sessions


async def test_sessions_in_which_nobody_spoke_and_the_own_one_are_not_offered(
    tmp_path: Path,
) -> None:
    home = find_home({"COPILOT_HOME": str(tmp_path / "home")})
    async with opened(tmp_path, []) as (empty, _, _):
        pass
    async with opened(tmp_path, ["Hello."]) as (first, _, _):
        await first.ask("say hello")
    async with opened(tmp_path, ["Hello."]) as (own, _, _):
        await own.ask("say it again")
        assert [summary.id for summary in list_resumable(home, own.id)] == [first.id]
    assert {summary.id for summary in list_sessions(home)} == {empty.id, first.id, own.id}
