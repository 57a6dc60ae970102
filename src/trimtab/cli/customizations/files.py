"""Adds, removes, enables and disables skills and agents in a person's or repository's files."""

import os
import shutil
from collections.abc import Mapping
from typing import Literal

from trimtab.checkout.checkout import find_checkout
from trimtab.cli.command_parser import Arguments, chosen_folder
from trimtab.config.edit import change_field, read_object
from trimtab.config.files import cannot, make_private_dir
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError

Kind = Literal["skills", "agents"]
MAX_SIZE = 64 * 1024 * 1024
"""Bytes of a skill; guards against copying a whole disk named by mistake."""


def add_file(path: str, kind: Kind, args: Arguments) -> str:
    """Copy a skill or an agent and return its new path. Never replaces an existing file."""
    source = os.path.abspath(path)
    if kind == "skills" and os.path.basename(source) == "SKILL.md":
        source = os.path.dirname(source)
    wanted = os.path.join(source, "SKILL.md") if kind == "skills" else source
    if not os.path.isfile(wanted) or (kind == "agents" and not source.endswith(".md")):
        expected = "a folder with a SKILL.md" if kind == "skills" else "a Markdown file"
        raise UsageError(f"{path} is not {expected}; name one.")
    target = os.path.join(_folder(kind, args), os.path.basename(source))
    if os.path.lexists(target):
        raise UsageError(f"{target} exists already; remove it first.")
    try:
        if args.project:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        else:
            make_private_dir(os.path.dirname(target))
        _check_size(source)
        if kind == "skills":
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise cannot("copy to", target, error) from error
    return target


def remove_file(name: str, kind: Kind, args: Arguments) -> str:
    """Delete a skill or an agent from the folder of `add_file`; return its former path."""
    folder = _folder(kind, args)
    endings = ("",) if kind == "skills" else (".agent.md", ".md")
    for ending in endings:
        target = os.path.join(folder, name + ending)
        if name == os.path.basename(name) and name.strip(".") and os.path.lexists(target):
            try:
                if os.path.isdir(target) and not os.path.islink(target):
                    shutil.rmtree(target)
                else:
                    os.unlink(target)
            except OSError as error:
                raise cannot("delete", target, error) from error
            return target
    raise UsageError(f"There is no {name!r} in {folder}; see `trimtab {kind}`.")


def set_listed(env: Mapping[str, str], key: str, name: str, *, listed: bool) -> None:
    """Add a name to a list in the user's settings, or remove it."""
    path = find_home(env).settings
    change_field(path, key, _listed(read_object(path).get(key), name, listed=listed))


def set_subagent(env: Mapping[str, str], name: str, *, enabled: bool) -> None:
    """Allow or forbid in the user's settings that other agents give an agent work."""
    path = find_home(env).settings
    before = read_object(path).get("subagents")
    chosen = before if isinstance(before, dict) else {}
    names = _listed(chosen.get("disabledSubagents"), name, listed=not enabled)
    change_field(path, "subagents", {**chosen, "disabledSubagents": names})


def _listed(before: object, name: str, *, listed: bool) -> list[object]:
    others = [item for item in before if item != name] if isinstance(before, list) else []
    return [*others, name] if listed else others


def _folder(kind: Kind, args: Arguments) -> str:
    if args.project:
        cwd = chosen_folder(args)
        root = find_checkout(cwd).git_root or cwd
        return os.path.join(root, ".github", kind)
    return os.path.join(find_home(os.environ).config, kind)


def _check_size(source: str) -> None:
    total = 0
    for folder, _, names in os.walk(source):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        if total > MAX_SIZE:
            raise UsageError(f"{source} is larger than {MAX_SIZE >> 20} MB; name a smaller folder.")
