"""The environment of sessions that a server hosts."""

import os

from trimtab.cli.parse import Values
from trimtab.contracts.errors import UsageError


def build_env(values: Values) -> dict[str, str]:
    """Return the environment of sessions, with the token the caller chose, or without any."""
    env = dict(os.environ)
    if "config_dir" in values:
        env["COPILOT_HOME"] = os.path.abspath(values["config_dir"])
    if "no_auto_login" in values:
        for name in ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
            env.pop(name, None)
        env["TRIMTAB_NO_LOGIN"] = "1"
    if "auth_token_env" in values:
        variable = str(values["auth_token_env"])
        token = env.get(variable)
        if not token:
            raise UsageError(f"--auth-token-env names {variable}, which is not set; set it.")
        env["COPILOT_GITHUB_TOKEN"] = token
    return env
