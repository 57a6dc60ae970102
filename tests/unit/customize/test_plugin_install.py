"""Plugins are fetched as the environment of the caller says, not as that of the process."""

from pathlib import Path

import pytest

from trimtab.contracts.errors import UsageError
from trimtab.customize.plugin_install.installed import PluginStore
from trimtab.customize.plugin_install.marketplaces import Marketplaces

REMOTE = "https://git.invalid/tools.git"


def test_offline_in_the_given_environment_refuses_what_is_on_other_machines(tmp_path: Path) -> None:
    env = {"COPILOT_HOME": str(tmp_path), "COPILOT_OFFLINE": "true"}
    with pytest.raises(UsageError, match="while COPILOT_OFFLINE is set"):
        PluginStore(env).install(REMOTE)
    with pytest.raises(UsageError, match="while COPILOT_OFFLINE is set"):
        Marketplaces(env).add(REMOTE)
