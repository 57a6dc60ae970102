"""Changes to files: the state of a path before and after."""

from binascii import a2b_base64, b2a_base64
from typing import Literal

import msgspec


class FileState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a path at one moment.

    `digest` names the blob that holds a file's bytes or a link's target. The content of a file
    without a digest was not kept (too large, no room): it can be compared, but not restored.
    """

    kind: Literal["absent", "file", "symlink", "directory"] = "absent"
    mode: int = 0
    digest: str = ""
    size: int = 0

    @property
    def is_kept(self) -> bool:
        """True if this state can be restored."""
        return bool(self.digest) or self.kind in ("absent", "directory")

    def matches(self, other: "FileState") -> bool:
        """Return True if both states are certainly the same, mode included."""
        return self == other and self.is_kept


ABSENT = FileState()


class Change(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A change of one path. `raw` is the path in base64 if its bytes are not UTF-8."""

    path: str
    before: FileState = ABSENT
    after: FileState = ABSENT
    raw: str = ""

    @classmethod
    def at(cls, path: str, before: FileState, after: FileState) -> "Change":
        """Create a change for a path that may contain any bytes."""
        if path.isascii():
            return cls(path=path, before=before, after=after)
        try:
            path.encode()
        except UnicodeEncodeError:
            name = path.encode("utf-8", "surrogateescape")
            raw = b2a_base64(name, newline=False).decode()
            return cls(path=name.decode("utf-8", "replace"), before=before, after=after, raw=raw)
        return cls(path=path, before=before, after=after)

    @property
    def os_path(self) -> str:
        """The path as the operating system expects it."""
        if not self.raw:
            return self.path
        return a2b_base64(self.raw).decode("utf-8", "surrogateescape")
