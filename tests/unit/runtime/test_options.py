from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.checkout.checkout import find_checkout
from trimtab.config.paths import find_home
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.contracts.options import CustomizationOptions, LimitOptions, SessionOptions
from trimtab.customize.customizations import Customizations
from trimtab.runtime.options import OPTIONS, OptionOwner, Resolved, get, resolve

AGENT = "---\nname: careful\ndescription: x\nmodel: agent-model\n---\nBe careful.\n"


class Bench:
    """A home and a folder in which options are resolved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"COPILOT_HOME": str(folder / "home"), "HOME": str(folder)}

    def settings(self, **values: Any) -> None:
        path = self.folder / "home" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(msgspec.json.encode(values))

    def agent(self) -> None:
        path = self.folder / "home" / "agents" / "careful.agent.md"
        path.parent.mkdir(parents=True)
        path.write_text(AGENT)

    def custom(self, given: SessionOptions) -> Customizations:
        home = find_home(self.env)
        return Customizations(home, self.env, find_checkout(str(self.folder)), given)

    def resolve(self, **given: Any) -> Resolved:
        options = SessionOptions(cwd=str(self.folder), **given)
        return resolve(options, self.env, self.custom(options))

    def owner(self, **given: Any) -> OptionOwner:
        options = SessionOptions(cwd=str(self.folder), **given)
        custom = self.custom(options)
        return OptionOwner(options, resolve(options, self.env, custom), custom, self.env)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_without_any_choice_the_defaults_hold(bench: Bench) -> None:
    found = bench.resolve()
    assert set(found.sources.values()) == {"default"}
    for option in OPTIONS:
        assert get(found.options, option.path) == option.default


def test_a_flag_wins_over_a_setting_even_with_the_value_of_the_default(bench: Bench) -> None:
    bench.settings(limits={"maxAutopilotContinues": 20})
    found = bench.resolve(limits=LimitOptions(max_continues=5))
    assert found.options.limits.continues == 5
    assert found.sources["limits.max_continues"] == "--max-autopilot-continues"


def test_a_variable_wins_over_the_default_and_is_named(bench: Bench) -> None:
    bench.env["TRIMTAB_RETRIES"] = "2"
    found = bench.resolve()
    assert found.options.limits.retry_policy.retries == 2
    assert found.sources["limits.retries"] == "TRIMTAB_RETRIES"


def test_a_variable_that_is_not_a_number_is_a_usage_error(bench: Bench) -> None:
    bench.env["TRIMTAB_RETRIES"] = "many"
    with pytest.raises(UsageError, match="TRIMTAB_RETRIES is 'many', not a number"):
        bench.resolve()


def test_an_agent_wins_over_a_setting_and_loses_against_a_flag(bench: Bench) -> None:
    bench.settings(model="setting-model")
    bench.agent()
    customize = CustomizationOptions(agent="careful")
    found = bench.resolve(customize=customize)
    assert found.options.model == "agent-model"
    assert found.sources["model"] == "agent careful"
    found = bench.resolve(customize=customize, model="flag-model")
    assert (found.options.model, found.sources["model"]) == ("flag-model", "--model")


def test_a_setting_that_is_not_valid_is_told(bench: Bench) -> None:
    bench.settings(limits={"maxTurns": "many"})
    with pytest.raises(ConfigurationError, match=r"limits\.maxTurns is not a whole number"):
        bench.resolve()


def test_a_later_change_wins_over_settings_too(bench: Bench) -> None:
    bench.settings(limits={"maxTurns": 20})
    owner = bench.owner()
    assert owner.sources["limits.max_turns"] == "setting limits.maxTurns"
    owner.change(limits=LimitOptions(max_turns=3))
    assert owner.current.limits.max_turns == 3
    assert owner.sources["limits.max_turns"] == "--max-turns"


def test_a_change_that_is_refused_changes_nothing(bench: Bench) -> None:
    owner = bench.owner()
    with pytest.raises(UsageError):
        owner.change(customize=CustomizationOptions(agent="nosuch"))
    assert owner.current.customize.agent is None
    assert owner.given.customize.agent is None
