"""Folders elsewhere that a rule opens for work (`write(/FOLDER/)`), as the working directory is."""

import os
from collections.abc import Sequence

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.agent_folders import name_agent_folder
from trimtab.permissions.paths import PUBLIC, is_inside, resolve
from trimtab.permissions.read_folders import offer_folders
from trimtab.permissions.shell.verdict.analysis import Analysis


def name_work_folder(rule: Rule) -> str:
    """Return the folder that a rule opens for work; empty for any other rule."""
    argument = rule.argument or ""
    if rule.kind != "write" or rule.root or not argument.endswith("/") or name_agent_folder(rule):
        return ""
    folder = os.path.normpath(os.path.expanduser(argument))
    return folder if os.path.isabs(folder) and folder.strip(os.sep) else ""


def find_opened(policy: Policy) -> tuple[str, ...]:
    """Return the folders that rules open for work.

    A folder is taken as it is written: if a link replaces it, nothing is opened.
    """
    named = filter(None, map(name_work_folder, policy.allow))
    return tuple(dict.fromkeys(folder for folder in named if resolve(folder) == folder))


def widen(policy: Policy) -> Policy:
    """Return a policy with the folders that its rules open among the allowed directories."""
    opened = find_opened(policy)
    if not opened:
        return policy
    writable = policy.writable
    # The session records its own folder, if it is not a home, and those beside it likewise.
    recorded = [folder for folder in opened if policy.undone and not is_home(folder, policy)]
    return msgspec.structs.replace(
        policy,
        roots=tuple(dict.fromkeys((*policy.roots, *opened))),
        undone=tuple(dict.fromkeys((*policy.undone, *recorded))),
        writable=None if writable is None else tuple(dict.fromkeys((*writable, *opened))),
    )


def is_home(folder: str, policy: Policy) -> bool:
    """Return True for the home of the person and for what is above it, which undo cannot hold."""
    return policy.home != "" and is_inside(policy.home, (folder,))


def offer_work_folders(analysis: Analysis, policy: Policy) -> Sequence[str]:
    """Return the folders to open so that a command names nothing outside; none if one is unfit."""
    if policy.allow_all_paths:
        return ()
    inside = (*policy.roots, *policy.readable, *PUBLIC, "/dev")
    named = (*analysis.reads, *analysis.touched, *analysis.scripts, *analysis.targets)
    outside = [path for path in named if path is not None and not is_inside(path, inside)]
    return offer_folders(outside, policy) or ()
