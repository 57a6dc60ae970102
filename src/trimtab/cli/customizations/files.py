"""Puts skills and agents where they are found, and takes them away again."""

import os
import shutil
from collections.abc import Mapping
from typing import Literal

from trimtab.checkout.checkout import find_checkout
from trimtab.cli.customizations.arguments import Given
from trimtab.config.edit import change_field, read_object
from trimtab.config.files import cannot, make_private_dir
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError

What = Literal["skills", "agents"]
LARGEST = 64 * 1024 * 1024


def add_file(path: str, what: What, given: Given) -> str:
    """Copy a skill or an agent; returns where it is now. One that exists is never replaced."""
    source = os.path.abspath(path)
    if what == "skills" and os.path.basename(source) == "SKILL.md":
        source = os.path.dirname(source)
    wanted = os.path.join(source, "SKILL.md") if what == "skills" else source
    if not os.path.isfile(wanted) or (what == "agents" and not source.endswith(".md")):
        kind = "folder with a SKILL.md" if what == "skills" else "Markdown file"
        raise UsageError(f"{path} is no {kind}; name one.")
    target = os.path.join(_folder(what, given), os.path.basename(source))
    if os.path.lexists(target):
        raise UsageError(f"{target} exists already; remove it first.")
    try:
        if given.switches:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        else:
            make_private_dir(os.path.dirname(target))
        _check_size(source)
        if what == "skills":
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise cannot("copy to", target, error) from error
    return target


def remove_file(name: str, what: What, given: Given) -> str:
    """Delete a skill or an agent that lies where `add_file` puts them; returns where it was."""
    folder = _folder(what, given)
    endings = ("",) if what == "skills" else (".agent.md", ".md")
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
    raise UsageError(f"There is no {name!r} in {folder}; see `trimtab {what}`.")


def set_listed(env: Mapping[str, str], key: str, name: str, *, listed: bool) -> None:
    """Put a name into a list of the user's settings, or take it out."""
    path = find_home(env).settings
    change_field(path, key, _listed(read_object(path).get(key), name, listed=listed))


def set_subagent(env: Mapping[str, str], name: str, *, enabled: bool) -> None:
    """Say in the user's settings whether other agents may give work to one."""
    path = find_home(env).settings
    before = read_object(path).get("subagents")
    chosen = before if isinstance(before, dict) else {}
    names = _listed(chosen.get("disabledSubagents"), name, listed=not enabled)
    change_field(path, "subagents", {**chosen, "disabledSubagents": names})


def _listed(before: object, name: str, *, listed: bool) -> list[object]:
    names = [one for one in before if one != name] if isinstance(before, list) else []
    return [*names, name] if listed else names


def _folder(what: What, given: Given) -> str:
    if "--project" in given.switches:
        root = find_checkout(given.cwd).git_root or given.cwd
        return os.path.join(root, ".github", what)
    return os.path.join(find_home(os.environ).config, what)


def _check_size(source: str) -> None:
    """A skill is text and a few files; a whole disk named by mistake is not copied."""
    total = 0
    for folder, _, names in os.walk(source):
        total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        if total > LARGEST:
            raise UsageError(f"{source} is larger than {LARGEST >> 20} MB; name a smaller folder.")
