"""Changes to files: what stood at a path before, and what stands there after."""

from typing import Literal

import msgspec


class FileState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What stood at a path at one moment.

    `digest` names the blob that holds a file's bytes or a link's target; a file without one was
    not kept (too large, no room), so it can be told from others but not brought back.
    """

    kind: Literal["absent", "file", "symlink", "directory"] = "absent"
    mode: int = 0
    digest: str = ""
    size: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether this state can be brought back."""
        return bool(self.digest) or self.kind in ("absent", "directory")

    def matches(self, other: "FileState") -> bool:
        """Whether both are certainly the same, mode included."""
        return self == other and self.is_kept


ABSENT = FileState()


class Change(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One path that became something else. `raw` is its name in base64 if that is not UTF-8."""

    path: str
    before: FileState = ABSENT
    after: FileState = ABSENT
    raw: str = ""

    @classmethod
    def at(cls, path: str, before: FileState, after: FileState) -> "Change":
        """A change of the file of this name, whatever bytes the name has."""
        if path.isascii():
            return cls(path=path, before=before, after=after)
        try:
            path.encode()
        except UnicodeEncodeError:
            from base64 import b64encode

            name = path.encode("utf-8", "surrogateescape")
            raw = b64encode(name).decode()
            return cls(path=name.decode("utf-8", "replace"), before=before, after=after, raw=raw)
        return cls(path=path, before=before, after=after)

    @property
    def place(self) -> str:
        """The path as the operating system takes it."""
        if not self.raw:
            return self.path
        from base64 import b64decode

        return b64decode(self.raw).decode("utf-8", "surrogateescape")
