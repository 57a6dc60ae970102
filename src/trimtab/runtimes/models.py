"""Lists the models of a runtime, as far as its program prints them."""

import os
import re

import msgspec

from trimtab.config.files import make_private_dir, replace_file
from trimtab.contracts.errors import TrimtabError
from trimtab.runtimes.binaries import Binaries
from trimtab.runtimes.contract import AgentRuntime, Binary

_ID = re.compile(r"^[\w.@-]+/[\w.:@/-]+$")
_COLUMNS = re.compile(r"^([\w.@-]+)\s{2,}([\w.:@/-]+)\s{2,}")


async def list_models(
    binaries: Binaries, runtime: AgentRuntime, binary: Binary
) -> list[str] | None:
    """Return the models that a runtime lists, and keep them in a file; None if that fails."""
    if not runtime.capabilities.model_discovery:
        return None
    if runtime.list_arguments:
        text = await binaries.print_models(runtime, binary)
        models = read_models(text) if text is not None else None
    else:
        models = await runtime.fetch_models(binaries.env)
    if not models:
        return None
    path = os.path.join(binaries.folder, f"{runtime.name}-models.json")
    try:
        make_private_dir(binaries.folder)
        replace_file(path, msgspec.json.encode({"models": models}) + b"\n")
    except (TrimtabError, OSError):
        pass  # a cache
    return models


def read_models(text: str) -> list[str]:
    """Return the models of a printed list: `provider/model`, or two columns with the same."""
    found = []
    for line in text.splitlines():
        if _ID.match(line.strip()):
            found.append(line.strip())
        elif (columns := _COLUMNS.match(line)) and columns[1] != "provider":
            found.append(f"{columns[1]}/{columns[2]}")
    return list(dict.fromkeys(found))
