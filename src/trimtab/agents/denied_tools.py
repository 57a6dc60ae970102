"""Refuses rules for a tool that nobody has and that is named like a program: `rm`."""

from collections.abc import Collection

from trimtab.agents.setup import SessionSetup
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Policy


def check_denied_tools(policy: Policy, setup: SessionSetup, tools: Collection[str]) -> None:
    """Raise `ConfigurationError` if a rule that denies or asks was meant for a command.

    `tools` are the names of the session's tools. A rule for one that only other sessions have, or
    a server has, is fine.
    """
    names = [rule.kind for rule in (*policy.deny, *policy.ask) if rule.argument is None]
    if not names:
        return
    import shutil

    from trimtab.permissions.rules import is_kind
    from trimtab.tools.aliases import ALIASES
    from trimtab.tools.catalog import NAMES

    custom = setup.customizations
    known = {*tools, *NAMES, *ALIASES, *(custom.servers.servers if custom is not None else ())}
    for name in names:
        if is_kind(name) or name in known or not shutil.which(name, path=setup.env.get("PATH")):
            continue
        raise ConfigurationError(
            f"The rule {name} is for a tool, and no tool is called {name}; to mean the command, "
            f"write shell({name})."
        )
