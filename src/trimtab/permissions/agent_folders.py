"""Folders with the configuration of coding agents, which a person may open for changes.

They are protected: what stands there can make things run. A rule that names such a folder in full
(`write(/project/.claude/)`) opens it, but for the files that start programs or grant rights.
"""

import os
import re
from collections.abc import Iterable

from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.protected import AGENT_FOLDERS
from trimtab.permissions.paths import fold, has_other_names, is_inside, is_protected, resolve

CLOSED = re.compile(
    r"settings.*|config\..*|permissions.*|hooks?(?:\..*)?|plugins?(?:\..*)?|extensions?|tools?"
    r"|\.?mcp.*|\.?lsp.*|.*credential.*|.*token.*|auth\..*"
)
"""Names below such a folder that stay protected."""


def name_agent_folder(rule: Rule) -> str:
    """Return the folder of an agent that a rule opens; empty for any other rule."""
    argument = rule.argument or ""
    if rule.kind != "write" or rule.root or argument[:1] != os.sep or argument[-1:] != os.sep:
        return ""
    folder = os.path.normpath(argument)
    return folder if os.path.basename(folder).casefold() in AGENT_FOLDERS else ""


def is_guarded(path: str, policy: Policy) -> bool:
    """Return True if a path is protected and no rule opens the folder it is in."""
    if not is_protected(path):
        return False
    folders = filter(None, map(name_agent_folder, policy.allow))
    return not any(opens(folder, path) for folder in folders)


def opens(folder: str, path: str) -> bool:
    """Return True if a rule for an agent's folder covers a path: one below, that starts nothing.

    The folder is taken as it is written: if a link replaces it, nothing below is covered.
    """
    real = resolve(path)
    if not fold(real).startswith(fold(folder) + os.sep) or has_other_names(real):
        return False
    below = real[len(folder) :]
    return not is_protected(below) and not any(
        CLOSED.fullmatch(part.casefold()) for part in below.split(os.sep)
    )


def find_agent_folder(path: str, policy: Policy) -> str:
    """Return the agent's folder, inside the workspace, that a path needs opened; empty if none."""
    parts = resolve(path).split(os.sep)
    for end, part in enumerate(parts, 1):
        if part.casefold() in AGENT_FOLDERS:
            folder = os.sep.join(parts[:end])
            fits = is_inside(folder, policy.roots) and not re.search(r"[(),*?\[\]\s]", folder)
            return folder if fits and opens(folder, path) else ""
    return ""


def offer_agent_folders(paths: Iterable[str], policy: Policy) -> list[str]:
    """Return the folders to open so that no path is guarded; none if that is not possible."""
    folders = [find_agent_folder(path, policy) for path in paths if is_guarded(path, policy)]
    return list(dict.fromkeys(folders)) if all(folders) else []
