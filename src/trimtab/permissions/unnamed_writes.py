"""Commands that change files which they do not name, against rules that forbid to write some.

Where the kernel keeps such files from commands, only those need a question that do not exist yet.
"""

import os
import re

from trimtab.contracts.permission import Decision, Policy, Rule
from trimtab.permissions.denied_files import denies_some_writes, search
from trimtab.permissions.file_commands import ON_FILES
from trimtab.permissions.paths import is_inside
from trimtab.permissions.rules import name_rule
from trimtab.permissions.shell.verdict.analysis import Analysis, Found
from trimtab.permissions.shell.verdict.inline_code import runs_inline_code
from trimtab.permissions.tracked_files import is_tracked

NAMED_IN_INPUT = frozenset(
    (
        *("patch", "gpatch", "git apply", "git am", "tar", "gtar", "bsdtar", "star", "unzip", "7z"),
        *("7za", "7zr", "7zz", "unrar", "unar", "cpio", "pax", "jar", "ar", "cabextract", "unshar"),
        *("uudecode", "dpkg", "dpkg-deb", "rpm2archive", "munpack", "ripmime", "lha", "arj"),
        *("ed", "red", "ex", "vi", "vim", "nvim", "sqlite3", "split", "csplit", "wget", "wget2"),
        *("aria2c", "ftp", "lftp", "sftp", "logrotate", "mmv", "rename", "prename", "cargo-clone"),
    )
)
"""Programs that change files whose names are in what they read: archives, patches, scripts."""
FROM_HISTORY = frozenset(
    f"git {name}"
    for name in (
        *("checkout", "checkout-index", "cherry-pick", "clean", "merge", "pull", "read-tree"),
        *("rebase", "reset", "restore", "revert", "rm", "sparse-checkout", "stash", "submodule"),
        *("switch", "bisect", "lfs", "mv"),
    )
)
"""Commands of git that change tracked files without naming them."""
_RECURSIVE = re.compile(r"-[a-zA-Z]*[raR][a-zA-Z]*|--(?:recursive|archive)")
_NO_EXTRACTION = re.compile(r"-{0,2}[a-zA-Z]*[ctru][a-zA-Z]*|--(?:create|list|append|update|diff)")


def ask_about_unnamed(analysis: Analysis, policy: Policy) -> Decision | None:
    """Ask about a command that may write a file which a rule forbids to write."""
    rules = [rule for rule in policy.deny if denies_some_writes(rule)]
    if not rules or analysis.read_only:
        return None
    if policy.keeps_writes:
        rules = [rule for rule in rules if not os.path.lexists(_find_place(rule, policy))]
    for rule in rules:
        place = _find_place(rule, policy)
        above = any(is_inside(place, (path,)) for path in filter(os.path.isdir, analysis.touched))
        for found in analysis.commands:
            if names_in_input(found) or (above and _copies_folders(found)):
                reason = f"{name_rule(rule)} forbids some files, and {found.base} does not say"
                return Decision(
                    verdict="ask", reason=f"{reason} which files it changes.", rule=rule
                )
    return None if policy.keeps_writes else _ask_if_unsure(analysis, policy, rules)


def _find_place(rule: Rule, policy: Policy) -> str:
    """Return the place that a rule means first: it may be for such a name in every folder."""
    return os.path.join(policy.cwd, os.path.expanduser(rule.argument or ""))


def _copies_folders(found: Found) -> bool:
    """Return True for a program that copies whatever is in a folder."""
    return found.base in ("cp", "scp", "rsync", "ditto") and (
        found.base == "ditto" or any(map(_RECURSIVE.fullmatch, found.words))
    )


def names_in_input(found: Found) -> bool:
    """Return True for a program that changes files whose names are in what it reads."""
    if found.read_only or found.base not in NAMED_IN_INPUT:
        return False
    if found.base in ("tar", "gtar", "bsdtar", "star"):
        first = found.words[1] if len(found.words) > 1 else ""
        return _NO_EXTRACTION.fullmatch(first) is None
    return True


def _ask_if_unsure(analysis: Analysis, policy: Policy, rules: list[Rule]) -> Decision | None:
    """Ask where nothing but our reading of a command holds it to the rules."""
    reason = _find_doubt(analysis)
    for rule in rules:
        places = search(policy.cwd, [rule], policy.cwd)
        given = [path for path in (*analysis.touched, *analysis.targets) if path]
        if above := next((p for p in places.found if _is_given_above(p, given)), ""):
            reason = reason or f"{above} is in a folder that it is given"
        tracked = not places.complete or any(map(is_tracked, places.found))
        if tracked and (git := next(filter(_restores, analysis.commands), None)):
            reason = reason or f"{git.base} may change it"
        if reason:
            text = f"{name_rule(rule)} forbids some files, and only our reading of the command"
            return Decision(
                verdict="ask", reason=f"{text} keeps it from them: {reason}.", rule=rule
            )
    return None


def _find_doubt(analysis: Analysis) -> str:
    if not analysis.is_known:
        unknown = (*analysis.dynamic, analysis.problem, analysis.conceals, *analysis.doubts)
        return next(filter(None, unknown), "")
    for found in analysis.commands:
        if runs_inline_code(found):
            return f"{found.base} runs code that is not read"
        if found.base in ON_FILES and not (found.read_only or found.spelled):
            return f"it is not known which files {found.base} changes"
    return "it is not known which file it writes" if None in analysis.targets else ""


def _is_given_above(path: str, given: list[str]) -> bool:
    return any(is_inside(path, (folder,)) for folder in given if os.path.isdir(folder))


def _restores(found: Found) -> bool:
    return found.base in FROM_HISTORY and not found.read_only
