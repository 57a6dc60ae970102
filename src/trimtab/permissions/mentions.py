"""Programs that run others by a language we do not read, or elsewhere: what they mention counts.

`python -c`, `ssh host …`, `docker exec …`: a rule that forbids a command cannot see whether it
would run there, so a text that has its name in it is asked about.
"""

import os
import re
from functools import lru_cache

import msgspec

from trimtab.contracts.permission import Decision, Policy, Rule
from trimtab.permissions.shell.analysis import Analysis, Found

_ESCAPED = re.compile(r"\\[abefnrtv0]")
"""A blank or a control character, as languages write it."""
NEAR = 80
"""Characters that may stand between the words of a command that is mentioned."""


@lru_cache(1)
def _table() -> dict[str, frozenset[str]]:
    """Programs, each with the words one of which it must have to run something; none: any."""
    path = os.path.join(os.path.dirname(__file__), "mentions.json")
    with open(path, "rb") as file:
        given = msgspec.json.decode(file.read(), type=dict[str, str])
    return {name: frozenset(words.split()) for name, words in given.items()}


def ask_about_mentions(analysis: Analysis, policy: Policy, text: str = "") -> Decision | None:
    """Asks about a program that is given the name of a forbidden command."""
    rules = [rule for rule in policy.deny if rule.kind in ("shell", "bash") and rule.argument]
    for found in analysis.commands if rules else ():
        if not _runs_others(found):
            continue
        given = " ".join(found.words[1:])
        if "<<" in text or "|" in text:  # it may read its program
            given = f"{given}\n{text}"
        given = _ESCAPED.sub(" ", given)
        for rule in rules:
            if _compile(rule).search(given):
                reason = f"{found.base} is given a text with {_stem(rule)!r} in it"
                return Decision(verdict="ask", reason=f"The rule {rule} forbids it, and {reason}.")
    return None


def _runs_others(found: Found) -> bool:
    name = re.sub(r"[\d.]+$", "", found.base.partition(" ")[0])
    wanted = _table().get(name)
    if wanted is None:
        return False
    return not wanted or any(word.partition("=")[0] in wanted for word in found.words[1:])


def _stem(rule: Rule) -> str:
    return (rule.argument or "").removesuffix(":*").rstrip()


@lru_cache(256)
def _compile(rule: Rule) -> re.Pattern[str]:
    words = _stem(rule).split() or [""]
    named = [re.escape(word) for word in (os.path.basename(words[0]), *words[1:])]
    between = rf"(?![\w-]).{{0,{NEAR}}}?(?<![\w-])"
    return re.compile(rf"(?<![\w-]){between.join(named)}(?![\w-])", re.DOTALL)
