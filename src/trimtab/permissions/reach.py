"""Finds the rule that covers a command; a group covers less than its programs can do."""

import os
import stat
from contextlib import suppress

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.groups import MARK, find_member, load_groups
from trimtab.permissions.left_out import find_started, is_left_out
from trimtab.permissions.paths import PUBLIC, is_inside, resolve
from trimtab.permissions.read_folders import ANSWERS
from trimtab.permissions.rules import HERE, matches_command, runs_from
from trimtab.permissions.shell.grammar.words import Argument
from trimtab.permissions.shell.programs.identify import identify
from trimtab.permissions.shell.programs.options import find_program, read_options
from trimtab.permissions.shell.verdict.analysis import Found

CODE = MARK + "code"
START_UP = frozenset(
    (
        *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv"),
        *(".nvm/nvm.sh", ".cargo/env", ".sdkman/bin/sdkman-init.sh", ".asdf/asdf.sh"),
        *(".rvm/scripts/rvm", ".deno/env", ".local/bin/env", ".ghcup/env", ".poetry/env"),
    )
)
"""Files of a home that the person's own shells read at their start."""


def find_rule(found: Found, policy: Policy) -> Rule | None:
    """Return a rule that allows a command by its name."""
    covering = (
        rule
        for rule in policy.allow
        if (
            matches_command(rule, found)
            or runs_from(rule, found, policy.cwd)
            or _runs_temporary(rule, found, policy)
        )
        and not _exceeds(found, rule, policy)
    )
    return next(covering, None)


def _runs_temporary(rule: Rule, found: Found, policy: Policy) -> bool:
    """Return True for `shell(@code)` and a program of the temp directory, like a script there."""
    if rule.kind != "shell" or rule.argument != CODE or not policy.temp or len(found.places) != 1:
        return False
    program = found.places[0]
    return is_inside(program, (policy.temp,)) and _is_near(program, policy)


def _exceeds(found: Found, rule: Rule, policy: Policy) -> bool:
    """Return True if a command does more than the rule that covers it by its name means."""
    argument = rule.argument or ""
    if found.base == "git push" and rule.source in ANSWERS and argument:
        return not pushes_to_remote(found, argument)
    if argument[:1] != MARK and argument != HERE:
        return False
    given = {words for words in (found.words, found.leading) if words}
    left_out = any(is_left_out(words, unclear=found.unclear) for words in given)
    if left_out or _hides_subcommand(found) or _starts_another(found, argument):
        return True
    return not policy.allow_all_paths and not all(_is_near(path, policy) for path in found.given)


def _starts_another(found: Found, argument: str) -> bool:
    """Return True if a command of a group starts one that another group is for."""
    groups = [MARK + group for group in load_groups()]
    if argument not in groups or not found.words:
        return False
    for line in find_started(found.words):
        name = " ".join(line)
        others = (group for group in groups if group != argument)
        if not find_member(argument, name) and any(find_member(one, name) for one in others):
            # The group may name this way to start it.
            whole = " ".join(found.words)
            return not find_member(argument, whole).endswith(line[0])
    return False


def _hides_subcommand(found: Found) -> bool:
    """Return True for `yarn --cwd /elsewhere publish`, which is named by its program alone."""
    name = identify([Argument(word) for word in found.words])
    return "/" not in found.identifier and name.identifier.startswith(f"{found.identifier} ")


def pushes_to_remote(found: Found, argument: str) -> bool:
    """Return True if git pushes to a remote by its name, or to the address in a rule."""
    words = list(found.leading)
    after = words[words.index("push") + 1 :] if "push" in words else []
    table = find_program("git push")
    assert table is not None
    reading = read_options(table, [Argument(word) for word in after])
    named = [*reading.operands[:1]] or [v for v in reading.values.get("--repo", ()) if v]
    if not named:
        return not found.unclear
    address = named[0].text
    return address in argument.split() or (":" not in address and address[:1] not in "/.~")


def _is_near(path: str, policy: Policy) -> bool:
    """Return True for a path that is the system's, or inside and nobody else can change."""
    if is_inside(path, PUBLIC) or path in (f"{policy.home}/{name}" for name in START_UP):
        return True
    return is_inside(path, policy.roots) and _is_own(path, policy)


def _is_own(path: str, policy: Policy) -> bool:
    """Return False for a file in a folder for everybody that another user owns, or may change."""
    place, foreign = resolve(path), False
    while place.strip(os.sep) and not is_inside(place, (policy.cwd,)):
        with suppress(OSError):  # nothing may be there yet
            status = os.stat(place)
            everybody = bool(status.st_mode & stat.S_IWOTH)
            if everybody and status.st_mode & stat.S_ISVTX:  # as the temp directory
                return not foreign
            foreign = foreign or everybody or status.st_uid not in (0, os.getuid())
        place = os.path.dirname(place)
    return True
