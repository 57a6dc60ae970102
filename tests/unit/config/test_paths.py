import os
from pathlib import Path

import pytest

from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import ConfigurationError


@pytest.mark.proves("PATH-01")
def test_config_is_below_the_home_directory_unless_xdg_says_otherwise() -> None:
    assert find_home({"HOME": "/h"}).config == "/h/.copilot"
    assert find_home({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}).config == "/x/.copilot"
    assert find_home({"HOME": "/h", "XDG_STATE_HOME": "/x"}).config == "/h/.copilot"


@pytest.mark.proves("PATH-02")
def test_state_is_below_the_home_directory_unless_xdg_says_otherwise() -> None:
    assert find_home({"HOME": "/h"}).state == "/h/.copilot"
    assert find_home({"HOME": "/h", "XDG_STATE_HOME": "/x"}).state == "/x/.copilot"
    assert find_home({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}).state == "/h/.copilot"


@pytest.mark.proves("PATH-03")
@pytest.mark.parametrize("variables", [{}, {"XDG_CONFIG_HOME": "/a", "XDG_STATE_HOME": "/b"}])
def test_the_base_directory_is_always_called_dot_copilot(variables: dict[str, str]) -> None:
    home = find_home({"HOME": "/h", **variables})
    assert os.path.basename(home.config) == os.path.basename(home.state) == ".copilot"


def test_copilot_home_wins_over_everything() -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/x", "XDG_STATE_HOME": "/y", "COPILOT_HOME": "/c"}
    assert find_home(env) == Home(config="/c", state="/c")


def test_a_relative_xdg_path_is_ignored_as_its_specification_says() -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "x", "XDG_STATE_HOME": ""}
    assert find_home(env) == find_home({"HOME": "/h"})


def test_a_relative_or_tilde_copilot_home_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_home({"HOME": "/h", "COPILOT_HOME": "here"}).config == str(tmp_path / "here")
    assert find_home({"HOME": "/h", "COPILOT_HOME": "~/there"}).config == "/h/there"
    assert find_home({"HOME": "/h", "COPILOT_HOME": ""}).config == "/h/.copilot"


def test_every_known_file_is_below_its_base_folder() -> None:
    home = Home(config="/c", state="/s")
    assert {home.settings, home.permissions} == {"/c/settings.json", "/c/permissions-config.json"}
    assert {home.session_state, home.trash, home.logs} == {
        "/s/session-state",
        "/s/trash",
        "/s/logs",
    }


@pytest.mark.parametrize("env", [{"HOME": "relative"}, {"COPILOT_HOME": "/a\0b"}])
def test_an_impossible_home_is_a_configuration_error(env: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="set"):
        find_home(env)


def test_a_file_in_place_of_the_folder_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / ".copilot").write_text("")
    with pytest.raises(ConfigurationError, match="not a folder"):
        find_home({"HOME": str(tmp_path)})
