"""Models as the picker of an editor needs them, found again when the login changes."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clikit import serving
from trimtab import SessionOptions
from trimtab.config.accounts import Account, Accounts
from trimtab.config.paths import find_home
from trimtab.host.model_list import ModelList
from trimtab.models.sources import Offer
from trimtab.transports.acp.agent import EditorAgent
from trimtab.transports.acp.protocol import Then

WISE: dict[str, Any] = {
    "id": "wise",
    "name": "Wise One",
    "billing": {"multiplier": 3},
    "capabilities": {
        "type": "chat",
        "limits": {"max_context_window_tokens": 200_000, "max_output_tokens": 8_000},
        "supports": {"tool_calls": True, "vision": True, "reasoning_effort": ["low", "high"]},
    },
}


def environment(tmp_path: Path, url: str) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {
        "COPILOT_HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "COPILOT_API_URL": url,
        "TRIMTAB_LOCAL_SERVERS": "none=http://127.0.0.1:1",
    }


def of_copilot(offers: Sequence[Offer]) -> list[Offer]:
    """Leave out what else the machine has, such as the embedded model."""
    return [offer for offer in offers if offer.choice.startswith("copilot/")]


class Out(asyncio.WriteTransport):
    """Where the agent writes to; a test waits for the next message."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.set()

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass


@pytest.mark.proves("VSC-03")
async def test_models_are_found_with_limits_images_efforts_and_multiplier_after_a_login(
    tmp_path: Path,
) -> None:
    async with serving({"replies": [], "models": [WISE]}) as server:
        env = environment(tmp_path, server.base_url)
        home = find_home(env)
        accounts = Accounts(home, env)
        models = ModelList(env, home)
        assert of_copilot(await models.find()) == []
        accounts.add(Account(login="ann", token="gho_0123456789"))
        (offer,) = of_copilot(await models.find())
        assert of_copilot(models.known) == [offer]
        asked = len(server.requests)
        assert of_copilot(await models.find()) == [offer]
        assert len(server.requests) == asked  # the login is the same: nobody is asked again
        accounts.remove(Account(login="ann").id)
        assert of_copilot(await models.find()) == []
    assert (offer.choice, offer.name, offer.window, offer.max_output) == (
        "copilot/wise",
        "Wise One",
        200_000,
        8_000,
    )
    assert (offer.vision, offer.efforts, offer.billing_multiplier) == (True, ("low", "high"), 3)


@pytest.mark.proves("VSC-03")
async def test_the_picker_of_an_editor_has_the_models_of_a_login(tmp_path: Path) -> None:
    async with serving({"replies": [], "models": [WISE]}) as server:
        env = environment(tmp_path, server.base_url)
        agent, out = EditorAgent(env, SessionOptions(cwd=str(tmp_path))), Out()
        agent.connection.write_to(out)

        async def ask(method: str, **params: Any) -> Any:
            reply = await agent.answer(method, msgspec.Raw(msgspec.json.encode(params)))
            if isinstance(reply, Then):
                reply.after()
                return reply.result
            return reply

        def offered(session: str) -> dict[str, str]:
            options = agent.sessions.find(session).settings.describe_options()
            (model,) = [option for option in options if option["id"] == "model"]
            assert model["category"] == "model"
            return {each["value"]: each.get("description", "") for each in model["options"]}

        await ask("initialize", protocolVersion=1)
        first = (await ask("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        assert "copilot/wise" not in offered(first)
        Accounts(find_home(env), env).add(Account(login="ann", token="gho_0123456789"))
        second = (await ask("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        async with asyncio.timeout(50):
            while "copilot/wise" not in offered(second):
                out.written.clear()
                await out.written.wait()
        assert offered(first)["copilot/wise"] == offered(second)["copilot/wise"]
        assert offered(first)["copilot/wise"] == "200k tokens, images, effort low/high, 3x"
        await agent.sessions.close_all()
