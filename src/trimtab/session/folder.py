"""The folder of a session: the paths of its files, its plan and its metadata."""

import os
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.config.files import cannot, replace_file, update_file
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.ids import timestamp
from trimtab.session.metadata import Metadata, parse, render

_SIZE_LIMIT = 1 << 20


def is_safe_name(name: str) -> bool:
    """Return True if a name can only mean a folder directly below `session-state`."""
    return bool(name) and name[0] != "." and not any(character in name for character in "/\\\0")


class SessionFolder(msgspec.Struct, frozen=True):
    """Paths below `session-state/<id>/`. Only the log and `workspace.yaml` exist from the start."""

    id: str
    path: str

    @property
    def events(self) -> str:
        return f"{self.path}/events.jsonl"

    @property
    def workspace_file(self) -> str:
        return f"{self.path}/workspace.yaml"

    @property
    def plan(self) -> str:
        return f"{self.path}/plan.md"

    @property
    def files(self) -> str:
        return f"{self.path}/files"

    @property
    def images(self) -> str:
        return os.path.join(self.files, "images")

    @property
    def checkpoints(self) -> str:
        return f"{self.path}/checkpoints"

    @property
    def client_skills(self) -> str:
        """The skills that clients provide, as they were last read."""
        return f"{self.path}/client-skills"

    @property
    def blobs(self) -> str:
        return f"{self.path}/blobs"

    @property
    def git_objects(self) -> str:
        return f"{self.path}/git-objects"

    @property
    def database(self) -> str:
        return f"{self.path}/session.db"

    def read_plan(self) -> str | None:
        """Return the plan of the session, if it has one."""
        try:
            with open(self.plan, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def read_metadata(self) -> Metadata:
        """Return the contents of `workspace.yaml`; empty if there is none."""
        try:
            # A pipe or a gigabyte in its place must not block a list of sessions.
            fd = os.open(self.workspace_file, os.O_RDONLY | os.O_NONBLOCK)
            try:
                return parse(os.read(fd, _SIZE_LIMIT))
            finally:
                os.close(fd)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise cannot("read", self.workspace_file, error) from error

    def update_metadata(self, **fields: Any) -> None:
        """Change these fields and `updated_at`; keep the fields of other writers."""

        def change(before: bytes | None) -> bytes:
            metadata = self._parse_or_set_aside(before) if before else {"id": self.id}
            return render({**metadata, "updated_at": timestamp(), **fields})

        update_file(self.workspace_file, change)

    def _parse_or_set_aside(self, data: bytes) -> Metadata:
        try:
            return parse(data)
        except TrimtabError:
            with suppress(TrimtabError):
                replace_file(self.workspace_file + ".damaged", data)
            return {"id": self.id}
