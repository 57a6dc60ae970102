"""Calls of curl that only print what an address answers: a rule for the address covers them."""

import re
from collections.abc import Sequence

from trimtab.contracts.permission import Rule
from trimtab.permissions.rules import matches_address
from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.options import find_program, read_options
from trimtab.permissions.shell.verdict.analysis import Found

_PRINTING = frozenset(
    (
        *("-f", "-s", "-S", "-v", "-I", "-i", "-N", "-k", "-g", "-m", "-w", "-H", "-A", "-X", "-o"),
        *("--fail", "--silent", "--show-error", "--verbose", "--head", "--include", "--no-buffer"),
        *("--insecure", "--globoff", "--compressed", "--fail-with-body", "--http1.1", "--http2"),
        *("--max-time", "--connect-timeout", "--retry", "--retry-delay", "--retry-connrefused"),
        *("--write-out", "--header", "--user-agent", "--request", "--output", "--url"),
    )
)
"""Options that send nothing but the request itself, and send it nowhere else."""
_AMBIGUOUS = re.compile(r"[@#\\{}\[\]<>|^`\s]")
"""Characters by which programs find different hosts in an address, or several addresses in one."""
_METHODS = ("GET", "HEAD", "OPTIONS")


def find_fetch_rules(found: Found, allow: Sequence[Rule]) -> list[Rule]:
    """Return the rules that cover each address a command fetches; none if it does more.

    Files that it writes are judged as those of a redirection.
    """
    rules: list[Rule] = []
    for address in _find_addresses(found):
        rule = next((rule for rule in allow if matches_address(rule, address)), None)
        if rule is None:
            return []
        rules.append(rule)
    return rules


def _find_addresses(found: Found) -> list[str]:
    """Return the addresses of a plain request; none for a call that sends or follows anything."""
    if found.identifier != "curl" or not found.literal:
        return []
    table = find_program("curl")
    assert table is not None
    reading = read_options(table, [Argument(word) for word in found.words[1:]])
    if reading.hazards or reading.strange or reading.uncertain:
        return []
    if not _PRINTING.issuperset(reading.values):
        return []
    given = {
        name: [value.text for value in values if value is not None]
        for name, values in reading.values.items()
    }
    methods = (*given.get("-X", ()), *given.get("--request", ()))
    texts = (
        text for name in ("-H", "--header", "-w", "--write-out") for text in given.get(name, ())
    )
    if not set(_METHODS).issuperset(methods) or any(text.startswith("@") for text in texts):
        return []
    addresses = [operand.text for operand in reading.operands] + given.get("--url", [])
    if any(map(_AMBIGUOUS.search, addresses)):
        return []
    return [text if re.match(r"\w+://", text) else f"http://{text}" for text in addresses]
