"""Skills that a client provides, over the official client."""

from pathlib import Path
from typing import Any

import pytest
from copilot import SkillProviderDescriptor

from sdkkit import Sdk, talking_here, use

DONE = {"text": "Done."}


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path)


class Provider:
    """Provides skills by name; one without a text does not exist."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.fails = False

    async def list_skills(self) -> Any:
        if self.fails:
            raise RuntimeError("no storage")
        return [
            SkillProviderDescriptor(description=f"The {name}.", name=name) for name in self.texts
        ]

    async def read_skill(self, name: str) -> str | None:
        return self.texts.get(name)


async def test_skills_of_a_client_are_offered_read_and_renewed(sdk: Sdk) -> None:
    provider = Provider(knots="Tie a bowline.")
    replies = [use("skill", skill="knots"), DONE, use("skill", skill="knots"), DONE]
    async with talking_here(sdk, replies, skill_provider=provider) as talk:
        assert [skill.name for skill in (await talk.session.rpc.skills.list()).skills] == ["knots"]
        await talk.say("one")
        assert "- knots: The knots." in talk.system()
        assert "Tie a bowline." in str(talk.shown())
        provider.texts = {
            "knots": "---\ndescription: Better knots.\n---\nTie a hitch.",
            "sails": "Furl.",
        }
        await talk.say("two")
        assert "- knots: Better knots." in talk.system()
        assert "- sails: The sails." in talk.system()
        assert "Tie a hitch." in str(talk.shown())
        provider.texts = {"sails": "Furl."}
        names = [skill.name for skill in (await talk.session.rpc.skills.list()).skills]
        assert names == ["sails"]


async def test_a_provider_that_fails_is_reported_and_its_skills_stay(sdk: Sdk) -> None:
    provider = Provider(knots="Tie.")
    async with talking_here(sdk, [DONE, DONE], skill_provider=provider) as talk:
        await talk.say("one")
        provider.fails = True
        await talk.say("two")
        assert "- knots: The knots." in talk.system()
        (warning,) = talk.heard.of("session.warning")
        assert "could not be read" in warning.message
        provider.fails = False
        await talk.session.disconnect()
        session = await talk.client.resume_session(
            talk.session.session_id, skill_provider=Provider(sails="Furl.")
        )
        names = [skill.name for skill in (await session.rpc.skills.list()).skills]
        assert names == ["sails"]
