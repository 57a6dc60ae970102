"""Loads permission rules from the settings of the person and of a trusted repository."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.config.paths import POLICY
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.contracts.permission import Rule
from trimtab.contracts.questions import Loadable
from trimtab.contracts.run import SessionPort

if TYPE_CHECKING:
    from trimtab.config.paths import Home
    from trimtab.policy.folder_trust import FolderTrust

REPOSITORY = (".github/copilot/settings.json", ".github/copilot/settings.local.json")
_VERBS = ("allow", "ask", "deny")
_OTHER_KEYS = ("defaultMode", "additionalDirectories", "disableBypassPermissionsMode")
"""Keys of other agents, which the import of their settings reports."""
_URLS = {"allowedUrls": "allow", "deniedUrls": "deny"}


class FileRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of settings files."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


async def load_rules(
    home: "Home", trust: "FolderTrust", session: SessionPort, more: Sequence[str] = ()
) -> FileRules:
    """Load the rules of all files. A repository may allow only what was trusted.

    Raises `ConfigurationError` for a rule that cannot be read.
    Exclusions apply in the folder and in `more` folders.
    """
    found: dict[str, list[Rule]] = {verb: [] for verb in _VERBS}
    found["deny"] += load_exclusions(home, (trust.root, *more))
    files = [home.settings]
    if trust.trusted and any(item.kind == "settings" for item in trust.items):
        files += [os.path.join(trust.root, name) for name in REPOSITORY]
    for file in files:
        rules = read_rules(home, file)
        if file != home.settings and rules["allow"]:
            entries = [(_describe(rule, trust.root), str(rule)) for rule in rules["allow"]]
            admitted = await trust.admit(session, "rules", entries)
            pairs = zip(rules["allow"], admitted, strict=True)
            rules["allow"] = [rule for rule, good in pairs if good]
        for verb in _VERBS:
            found[verb] += rules[verb]
    trust.remember("rules")
    return FileRules(**{verb: tuple(rules) for verb, rules in found.items()})


def load_exclusions(home: "Home", folders: Sequence[str], policy: str = POLICY) -> list[Rule]:
    """Return rules that deny content excluded by the machine's policy and the person."""
    own = read_exclusion(home)
    if own is None and not os.path.isdir(policy):
        return []
    from trimtab.policy.exclusions import read_policy, to_rules

    rules: list[Rule] = []
    for file, given in read_policy(policy).items():
        rules += to_rules(given, file, folders)
    if own is not None:
        rules += to_rules(own, home.settings, folders)
    return rules


def read_exclusion(home: "Home") -> Any:
    """Return the exclusions in the person's settings as written; None if there are none."""
    return _load(home, home.settings).get("contentExclusion")


def _load(home: "Home", file: str) -> dict[str, Any]:
    if not os.path.lexists(file):
        return {}
    from trimtab.policy.guards import read_guarded

    return read_guarded(home, file)


def _describe(rule: Rule, root: str) -> Loadable:
    return Loadable("rules", f"{os.path.relpath(rule.source, root)} allows {rule}")


def read_rules(home: "Home", file: str) -> dict[str, list[Rule]]:
    """Return the rules of a file. Raises `ConfigurationError`: a typo must not open a door."""
    rules: dict[str, list[Rule]] = {verb: [] for verb in _VERBS}
    content = _load(home, file)
    given = content.get("permissions", {})
    for key in given:
        _check_key(key, file)
    for verb in _VERBS:
        rules[verb] += _parse(_texts(given.get(verb, []), f"permissions.{verb}", file), file)
    for key, verb in _URLS.items():
        texts = [f"url({pattern})" for pattern in _texts(content.get(key, []), key, file)]
        rules[verb] += _parse(texts, file)
    return rules


def _check_key(key: str, file: str) -> None:
    if key in _VERBS or key in _OTHER_KEYS:
        return
    from difflib import get_close_matches

    close = get_close_matches(key, _VERBS, 1)
    advice = f"did you mean {close[0]}?" if close else "use allow, ask or deny."
    raise ConfigurationError(f"{file}: there is no setting permissions.{key}; {advice}")


def _parse(texts: Sequence[str], file: str) -> list[Rule]:
    if not texts:  # most people have no rules, and need not wait for the parser
        return []
    from trimtab.permissions.rules import parse_rule

    try:
        return [parse_rule(text, file) for text in texts]
    except UsageError as error:
        raise ConfigurationError(f"{file}: {error.message}") from None


def _texts(value: Any, key: str, file: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ConfigurationError(f"{file}: `{key}` is not a list of texts; write one.")
    return value
