"""The token for GitHub's own MCP server. Every start looks for one, so this imports little."""

import os
from collections.abc import Mapping

from trimtab.config.paths import find_home
from trimtab.providers.auth import GITHUB_TOKENS
from trimtab.providers.endpoints import PREFIX


def find_github_token(env: Mapping[str, str]) -> str:
    """Return the token of the environment or of the stored account; empty if there is none.

    With a model service of one's own, the variables that other programs share do not count: who
    chose that service did not ask to contact GitHub.
    """
    names = GITHUB_TOKENS[:1] if env.get(f"{PREFIX}BASE_URL") else GITHUB_TOKENS
    named = next((value for name in names if (value := env.get(name, "").strip())), "")
    if named or not os.path.exists(find_home(env).accounts):
        return named
    from trimtab.config.accounts import find_stored_token

    stored = find_stored_token(env)
    return stored[0] if stored else ""
