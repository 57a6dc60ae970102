"""Loads permission rules from the settings of the person and of a trusted repository."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.config.files import read_regular
from trimtab.config.jsonc import JsonProblem, read_jsonc
from trimtab.config.paths import POLICY
from trimtab.config.settings import Settings
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.contracts.permission import Rule
from trimtab.contracts.questions import Loadable
from trimtab.contracts.run import SessionPort
from trimtab.policy.rule_keys import check_names, check_repeated, may_hold_rules

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
        rules = _read(home, file)
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
    """Return rules that deny content excluded by the machine's policy and the person.

    Raises `ConfigurationError` for what cannot be read.
    """
    own = read_exclusion(home)
    if own is None and not os.path.isdir(policy):
        return []
    from trimtab.policy.exclusions import read_policy, to_rules

    given = read_policy(policy)
    if own is not None:
        given[home.settings] = own
    return [rule for file, one in given.items() for rule in to_rules(one, file, folders)]


def read_exclusion(home: "Home") -> Any:
    """Return the exclusions in the person's settings as written; None if there are none."""
    return _load(home, home.settings).get("contentExclusion")


def _load(home: "Home", file: str) -> dict[str, Any]:
    """Return the contents of a file, or of its last good copy if it is broken.

    A broken file must not remove rules that deny. `Settings` reports the problem. Raises
    `ConfigurationError` for a broken one that seems to have rules and has no good copy.
    """
    try:
        data = read_regular(file)
    except OSError:
        return {}
    try:
        content = read_jsonc(data) if data.strip() else {}
        if not isinstance(content, dict):
            raise JsonProblem("it is not a JSON object", 1)
    except JsonProblem as error:
        content = Settings(home).load(file)
        if content is None and may_hold_rules(data):
            raise ConfigurationError(
                f"{file}, line {error.line}: {error}, so its rules are not known; correct it."
            ) from None
        return content or {}
    check_repeated(data, file)
    check_names(content, file)
    return content


def _describe(rule: Rule, root: str) -> Loadable:
    return Loadable("rules", f"{os.path.relpath(rule.source, root)} allows {rule}")


def _read(home: "Home", file: str) -> dict[str, list[Rule]]:
    """Return the rules of a file. Raises `ConfigurationError`: a typo must not open a door."""
    rules: dict[str, list[Rule]] = {verb: [] for verb in _VERBS}
    content = _load(home, file)
    if not isinstance(content.get("sandbox", {}), dict):
        raise ConfigurationError(f"{file}: `sandbox` is not an object; write one.")
    given = content.get("permissions", {})
    if not isinstance(given, dict):
        raise ConfigurationError(
            f"{file}: `permissions` is not an object; write allow, ask or deny with lists of rules."
        )
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
