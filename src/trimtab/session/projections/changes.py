"""Files changed by tools, with line counts."""

from typing import ClassVar

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.tool import ToolExecutionComplete


class CodeChanges:
    """The sums of the file edits that tools reported."""

    reads: ClassVar[frozenset[str]] = frozenset(("tool.execution_complete",))

    def __init__(self) -> None:
        self.lines_added = 0
        self.lines_removed = 0
        self._files: dict[str, None] = {}

    @property
    def files(self) -> list[str]:
        """Paths in the order they were first changed."""
        return list(self._files)

    def apply(self, event: Event) -> None:
        done = event.data
        if not isinstance(done, ToolExecutionComplete):
            return
        for edit in done.file_edits or ():
            self.lines_added += edit.get("linesAdded", 0)
            self.lines_removed += edit.get("linesRemoved", 0)
            self._files[str(edit.get("path"))] = None
