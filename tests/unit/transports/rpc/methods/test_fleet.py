"""Fleets that are started without a goal, over the official client."""

import pytest
from copilot.generated import rpc

from gitkit import git, make_repository
from sdkkit import Sdk, talking_here

DONE = {"text": "Done."}


@pytest.mark.needs("git")
async def test_a_fleet_without_a_goal_takes_up_the_conversation(sdk: Sdk) -> None:
    make_repository(sdk.cwd)
    (sdk.cwd / "a.txt").write_text("a")
    git(sdk.cwd, "add", ".")
    git(sdk.cwd, "commit", "-qm", "first")
    async with talking_here(sdk, [DONE, {"text": "x", "delay": 60}]) as talk:
        start = talk.session.rpc.fleet.start
        with pytest.raises(Exception, match="Say what the fleet is to do"):
            await start(rpc.FleetStartRequest())
        await talk.say("Write three files.")
        assert (await start(rpc.FleetStartRequest())).started
        await talk.server.wait_for_requests(2)
        assert "Finish what this conversation asks for." in talk.prompt()
