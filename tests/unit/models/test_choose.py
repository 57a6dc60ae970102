"""The choice of a model: by name, by the environment, among available services."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trimtab.config.paths import Home
from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.provider import Price
from trimtab.models.choose import Chosen, ModelChooser
from trimtab.providers.copilot import Copilot
from trimtab.providers.service import Service
from trimtab.testing import ModelServer, Script

FILE = {
    "providers": [
        {
            "name": "work",
            "baseUrl": "http://127.0.0.1:9/v1",
            "apiKeyEnv": "WORK_KEY",
            "headers": {"X-Team": "blue"},
        },
        {
            "name": "home",
            "baseUrl": "http://127.0.0.1:8/v1",
            "type": "anthropic",
            "defaultModel": "claude-x",
        },
    ],
    "models": [
        {
            "id": "big",
            "provider": "work",
            "wireModel": "acme/big-v2",
            "maxPromptTokens": 50_000,
            "price": {"input": 3, "output": 9, "cacheRead": 1},
            "efforts": ["low", "high"],
        },
        {"id": "small", "provider": "work"},
    ],
    "default": "work/big",
    "roles": {"title": "work/small"},
    "fallback": ["home/claude-x"],
}
KEYS = {"WORK_KEY": "secret-0123456789"}


class Desk:
    """A home with or without a providers.json, and nothing else on the machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        (self.folder / "providers.json").write_text(text)

    def chooser(self, env: Mapping[str, str]) -> ModelChooser:
        home = Home(config=str(self.folder), state=str(self.folder))
        return ModelChooser({"PATH": "", "TRIMTAB_LOCAL_SERVERS": "off", **env}, home)

    async def choose(self, env: Mapping[str, str], role: str = "main", **options: Any) -> Chosen:
        chosen = await self.chooser(env).choose(SessionOptions(cwd="/", **options), role)
        await chosen.aclose()
        return chosen


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def service(chosen: Chosen) -> Service:
    assert isinstance(chosen.provider, Service)
    return chosen.provider


async def test_the_flag_comes_before_the_variable_and_that_before_the_default(desk: Desk) -> None:
    env = {"OPENAI_API_KEY": "sk-0123456789"}
    assert (await desk.choose(env)).model == "gpt-4.1"
    named = {**env, "COPILOT_MODEL": "gpt-5"}
    assert (await desk.choose(named)).model == "gpt-5"
    assert (await desk.choose(named, model="o3")).model == "o3"


async def test_a_registered_model_brings_its_service_key_limits_and_price(desk: Desk) -> None:
    desk.write(FILE)
    for name in ("work/big", "big", None):
        chosen = await desk.choose(KEYS, model=name)
        choice = service(chosen).choice
        assert choice.base_url == "http://127.0.0.1:9/v1"
        assert choice.wire_model == "acme/big-v2"
        assert choice.headers == {"x-team": "blue"}
        assert choice.efforts == ("low", "high")
        assert choice.key.source == "WORK_KEY"
        assert chosen.prompt_limit == 50_000
        assert chosen.price == Price(input=3, output=9, cache_read=1)


async def test_roles_have_models_of_their_own_and_else_the_main_one(desk: Desk) -> None:
    desk.write(FILE)
    assert (await desk.choose(KEYS, "title")).model == "work/small"
    assert (await desk.choose(KEYS, "subagent")).model == "work/big"
    assert (await desk.choose(KEYS, "title", model="work/big")).model == "work/small"


async def test_the_byok_variables_win_over_the_files_default(desk: Desk) -> None:
    desk.write(FILE)
    env = {**KEYS, "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:7/v1", "COPILOT_MODEL": "a/b"}
    chosen = await desk.choose(env)
    assert (chosen.model, service(chosen).choice.base_url) == ("a/b", "http://127.0.0.1:7/v1")
    assert (await desk.choose(env, model="work/big")).model == "work/big"


async def test_a_provider_alone_means_its_default_model(desk: Desk) -> None:
    desk.write(FILE)
    assert service(await desk.choose(KEYS, model="home")).choice.wire_model == "claude-x"


async def test_fallbacks_are_those_named_and_none_otherwise(desk: Desk) -> None:
    env = {**KEYS, "OPENAI_API_KEY": "sk-0123456789"}
    options = SessionOptions(cwd="/")
    assert await desk.chooser(env).choose_fallbacks(options) == []
    desk.write(FILE)
    found = await desk.chooser(env).choose_fallbacks(options)
    assert [chosen.model for chosen in found] == ["home/claude-x"]
    assert service(found[0]).choice.wire == "anthropic-messages"
    named = SessionOptions(cwd="/", fallback=("work/small", "openai/o3"))
    found = await desk.chooser(env).choose_fallbacks(named)
    assert [chosen.model for chosen in found] == ["work/small", "o3"]


async def test_an_unknown_model_of_a_provider_is_refused_with_near_matches(desk: Desk) -> None:
    desk.write(FILE)
    with pytest.raises(ConfigurationError, match="did you mean small"):
        await desk.choose(KEYS, model="work/smal")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "correct it"),
        ({"providers": [{"name": "x", "baseUrl": "http://h", "apiKey": "k"}]}, "contains a key"),
        (
            {"providers": [{"name": "x", "baseUrl": "http://h", "bearerToken": "k"}]},
            "contains a key",
        ),
        ({"models": [{"id": "m", "provider": "nobody"}]}, "not among its providers"),
        ({"roles": {"cook": "x/y"}}, "use one of main"),
        ({"providers": 3}, "correct it"),
    ],
)
async def test_a_wrong_file_is_a_configuration_error_that_names_it(
    desk: Desk, value: Any, message: str
) -> None:
    desk.write(value)
    with pytest.raises(ConfigurationError, match=message) as caught:
        await desk.choose({})
    assert "providers.json" in caught.value.message


async def test_a_key_that_is_not_set_is_named(desk: Desk) -> None:
    desk.write(FILE)
    with pytest.raises(ConfigurationError, match="WORK_KEY"):
        await desk.choose({})


async def test_two_keys_in_the_environment_can_both_be_used_by_name(desk: Desk) -> None:
    env = {"OPENAI_API_KEY": "sk-0123456789", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    chosen = await desk.choose(env, model="anthropic/claude-opus-4-5")
    assert (chosen.model, service(chosen).choice.name) == ("claude-opus-4-5", "anthropic")


async def test_a_github_token_is_used_when_no_service_is_named(desk: Desk) -> None:
    chosen = await desk.choose({"GH_TOKEN": "gho_1"})
    assert isinstance(chosen.provider, Copilot)
    both = {"GH_TOKEN": "gho_1", "OPENAI_API_KEY": "sk-0123456789"}
    assert (await desk.choose(both)).provider.name == "openai"
    assert (await desk.choose(both, model="copilot/gpt-5")).provider.name == "copilot"


async def test_a_server_on_this_machine_is_found_when_nothing_is_configured(desk: Desk) -> None:
    async with ModelServer(Script.of({"replies": [], "models": ["qwen3"]})) as server:
        env = {"TRIMTAB_LOCAL_SERVERS": f"dead=http://127.0.0.1:1/v1,ollama={server.base_url}"}
        chosen = await desk.choose(env)
        assert (chosen.provider.name, chosen.model) == ("ollama", "qwen3")
        assert chosen.prompt_limit == 128_000
        chosen = await desk.choose({**env, "OPENAI_API_KEY": "k"}, model="ollama/llama3")
        assert (chosen.provider.name, chosen.model) == ("ollama", "llama3")


@pytest.mark.parametrize("text", ["ollama", "x=http://192.168.1.9:80/v1", "x=nonsense"])
async def test_only_addresses_of_this_machine_are_looked_at(desk: Desk, text: str) -> None:
    with pytest.raises(ConfigurationError, match="TRIMTAB_LOCAL_SERVERS"):
        await desk.choose({"TRIMTAB_LOCAL_SERVERS": text})


async def test_nothing_at_all_says_what_can_be_set(desk: Desk, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY"):
        await desk.choose(env)
    with pytest.raises(AuthenticationError, match="gpt-9"):
        await desk.choose(env, model="gpt-9")
    with pytest.raises(AuthenticationError, match="GitHub token"):
        await desk.choose(env, model="copilot/gpt-5")
