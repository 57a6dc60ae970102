"""Refuses rules for a tool that nobody has and that is named like a program or a tool: `rm`."""

from collections.abc import Collection

from trimtab.agents.setup import SessionSetup
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.permission import Policy


def check_denied_tools(policy: Policy, setup: SessionSetup, tools: Collection[str]) -> None:
    """Raise `ConfigurationError` if a rule that denies or asks was meant for a command.

    `tools` are the names of the session's tools. A rule for one that only other sessions have, or
    a server has, is fine.
    """
    rules = [rule for rule in (*policy.deny, *policy.ask) if not rule.root]
    if not rules:
        return
    import shutil
    from difflib import get_close_matches

    from trimtab.permissions.rules import is_kind
    from trimtab.tools.aliases import ALIASES
    from trimtab.tools.catalog import NAMES

    custom = setup.customizations
    known = {*tools, *NAMES, *ALIASES, *(custom.servers.servers if custom is not None else ())}
    for rule in rules:
        name = rule.kind
        if rule.argument is not None and name in NAMES and not is_kind(name):
            raise ConfigurationError(
                f"The rule {rule} names a tool, which takes no argument; write {name}."
            )
        if rule.argument is not None or is_kind(name) or name in known:
            continue
        if close := get_close_matches(name, (*NAMES, *tools), 1, cutoff=0.75):
            raise ConfigurationError(
                f"The rule {name} is for a tool, and no tool is called {name}; did you mean "
                f"{close[0]}?"
            )
        if not shutil.which(name, path=setup.env.get("PATH")):
            continue
        raise ConfigurationError(
            f"The rule {name} is for a tool, and no tool is called {name}; to mean the command, "
            f"write shell({name})."
        )
