"""The model of a session that names none, by the list of its service."""

from typing import Any

import pytest

from trimtab.contracts.errors import AuthenticationError
from trimtab.providers.auth import Key
from trimtab.providers.copilot import DEFAULT_MODEL, Copilot
from trimtab.providers.listing import find_default, read_model
from trimtab.testing import ModelServer, Script


def model(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "capabilities": {"type": "chat"}, "model_picker_enabled": True, **fields}


EMBEDDING = {"id": "embed", "capabilities": {"type": "embeddings"}, "model_picker_enabled": True}
HIDDEN = model("hidden", model_picker_enabled=False)
DISABLED = model("disabled", policy={"state": "disabled"})
UNASKED = model("unasked", policy={"state": "unconfigured"})
ENABLED = model("enabled", policy={"state": "enabled"})
PLAIN = model("plain")
DEFAULT = model("default", is_chat_default=True)


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([EMBEDDING, ENABLED, DEFAULT], "default"),
        ([EMBEDDING, HIDDEN, DISABLED, UNASKED, PLAIN, ENABLED], "plain"),
        ([HIDDEN, DISABLED, ENABLED], "enabled"),
        ([{**DISABLED, "is_chat_default": True}, ENABLED], "enabled"),
        ([EMBEDDING, HIDDEN], None),
        ([], None),
    ],
)
def test_the_marked_model_comes_before_the_first_that_can_be_picked(
    models: list[dict[str, Any]], expected: str | None
) -> None:
    assert find_default([read_model(raw) for raw in models]) == expected


async def test_githubs_list_decides_and_a_fixed_name_only_without_one() -> None:
    script = Script.of({"replies": [], "models": [ENABLED, DEFAULT]})
    async with ModelServer(script) as server:
        env = {"COPILOT_API_URL": server.base_url}
        listed = Copilot(Key(value="gho_1", source="test"), env)
        assert await listed.find_default_model() == "default"
        await listed.aclose()
    unreachable = Copilot(Key(value="gho_1", source="test"), {"COPILOT_API_URL": server.base_url})
    assert await unreachable.find_default_model() == DEFAULT_MODEL
    await unreachable.aclose()


async def test_a_refused_token_is_reported_by_the_first_call_and_not_by_the_choice() -> None:
    async with ModelServer(Script.of({"replies": []})) as server:
        env = {"COPILOT_DEBUG_GITHUB_API_URL": f"{server.url}/nothing-here"}
        refused = Copilot(Key(value="gho_1", source="test"), env)
        assert await refused.find_default_model() == DEFAULT_MODEL
        with pytest.raises(AuthenticationError, match="access to Copilot"):
            await refused.choice()
        await refused.aclose()
