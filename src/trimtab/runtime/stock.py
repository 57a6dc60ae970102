"""What the files that customize a session look like from outside, to see when one was changed."""

import os
from collections.abc import Iterator

from trimtab.customize.folders import (
    agent_folders,
    command_folders,
    instruction_places,
    skill_folders,
)
from trimtab.runtime.customizations import SETTINGS_FILES, Customizations

MOST = 5000
"""Files that are looked at before each prompt; a look costs about a microsecond."""
Stock = dict[str, tuple[int, int, int]]
"""When each path that is there was changed, its size and which file it is."""


def take_stock(custom: Customizations) -> Stock:
    """A look at everything a session was read from, and at where it could find more."""
    stock: Stock = {}
    for count, path in enumerate(_paths(custom)):
        if count == MOST:
            break
        try:
            info = os.stat(path)
        except OSError:
            continue
        stock[path] = (info.st_mtime_ns, info.st_size, info.st_ino)
    return stock


def _paths(custom: Customizations) -> Iterator[str]:
    places, read = custom.places, custom.__dict__
    yield places.home.settings
    if custom.trusted:
        folder = os.path.join(places.root, ".github", "copilot")
        yield from (os.path.join(folder, name) for name in SETTINGS_FILES)
    if custom.loads_instructions:
        yield from instruction_places(places)
        for instruction in custom.instructions.instructions:
            yield from instruction.paths
            yield from instruction.imports
    yield from (folder.path for folder in (*skill_folders(places), *command_folders(places)))
    yield from (folder.path for folder in agent_folders(places))
    if "agents" in read:
        yield from (agent.path for agent in custom.agents.agents.values() if agent.path)
    for skill in custom.skills.skills.values():
        yield skill.path
        yield os.path.dirname(skill.path)
