"""The folders of configuration and state."""

import os
from collections.abc import Mapping

import msgspec

from trimtab.contracts.errors import ConfigurationError

DIRECTORY = ".copilot"
POLICY = "/etc/github-copilot/policy.d"
"""The folder of an administrator's policies for everybody on this machine."""


class Home(msgspec.Struct, frozen=True):
    """The two base folders: people edit `config`, programs write `state`."""

    config: str
    state: str

    @property
    def settings(self) -> str:
        return os.path.join(self.config, "settings.json")

    @property
    def accounts(self) -> str:
        return os.path.join(self.config, "accounts.json")

    @property
    def permissions(self) -> str:
        return os.path.join(self.config, "permissions-config.json")

    @property
    def session_state(self) -> str:
        return os.path.join(self.state, "session-state")

    @property
    def trash(self) -> str:
        return os.path.join(self.state, "trash")

    @property
    def logs(self) -> str:
        return os.path.join(self.state, "logs")


def find_home(env: Mapping[str, str]) -> Home:
    """Return the folders of `COPILOT_HOME`, else of the XDG variables, else `~/.copilot`."""
    if chosen := env.get("COPILOT_HOME"):
        base = _checked(os.path.abspath(_expanded(chosen, env)), "COPILOT_HOME")
        return Home(config=base, state=base)
    return Home(
        config=_under("XDG_CONFIG_HOME", env),
        state=_under("XDG_STATE_HOME", env),
    )


def _under(variable: str, env: Mapping[str, str]) -> str:
    """Return `.copilot` below a variable's folder. The XDG rules ignore a relative path."""
    base = _expanded(env.get(variable, ""), env)
    if not os.path.isabs(base):
        base, variable = _home(env), "HOME"
    return _checked(os.path.join(base, DIRECTORY), variable)


def _expanded(path: str, env: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        return _home(env) + path[1:]
    return path


def _home(env: Mapping[str, str]) -> str:
    home = env.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise ConfigurationError(
            "The home directory is unknown: set HOME or COPILOT_HOME to an absolute path."
        )
    return home


def _checked(path: str, variable: str) -> str:
    if "\0" in path:
        raise ConfigurationError(f"{variable} contains a NUL character: set it to a folder's path.")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise ConfigurationError(
            f"{path} (from {variable}) is not a folder: move it away or set COPILOT_HOME elsewhere."
        )
    return path
