"""Collects the log of a session, and files that a client names, for a report of a problem."""

import asyncio
import io
import os
import tarfile
from collections.abc import Iterator
from typing import Literal

import msgspec

from trimtab.config.files import make_private_dir, read_regular, replace_file
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.secrets import Masker, find_secrets
from trimtab.transports.rpc.dispatch import Call, Methods

methods = Methods()
MAX_BYTES = 256 * 1024 * 1024
"""A file that is larger is left out."""
MAX_FILES = 1000


class Destination(msgspec.Struct, rename="camel"):
    kind: Literal["archive", "directory"]
    output_path: str = ""
    output_directory: str = ""
    no_overwrite: bool = False


class Include(msgspec.Struct, frozen=True):
    events: bool = True


class ExtraEntry(msgspec.Struct, rename="camel"):
    kind: Literal["file", "directory"]
    path: str
    bundle_path: str
    redaction: Literal["plain-text", "events-jsonl", "none"] = "plain-text"
    required: bool = False


class Collect(msgspec.Struct, rename="camel"):
    destination: Destination
    include: Include = Include()
    additional_entries: tuple[ExtraEntry, ...] = ()


class _File(msgspec.Struct, frozen=True):
    bundle_path: str
    source: str
    data: bytes

    def describe(self) -> JsonObject:
        size = len(self.data)
        return {"bundlePath": self.bundle_path, "source": self.source, "sizeBytes": size}


@methods.on("session.debug.collectLogs", Collect)
async def collect(call: Call, params: Collect) -> JsonObject:
    """Write a bundle. The log has no secrets in it; those of other files are masked."""
    live = call.session.live
    await live.synced()
    target = params.destination.output_path or params.destination.output_directory
    if not os.path.isabs(target):
        raise UsageError("The destination must be an absolute path; give the whole path.")
    options = live.controls.options
    known = (*options.secret_values, *call.server.secrets)
    masker = find_secrets(call.server.env, options.secrets, values=known)
    work = _Collection(params, live.folder.events, masker)
    return await asyncio.to_thread(work.write, target)


class _Collection:
    def __init__(self, params: Collect, log: str, masker: Masker) -> None:
        self._params = params
        self._log = log
        self._masker = masker
        self._skipped: list[JsonObject] = []

    def write(self, target: str) -> JsonObject:
        files = list(self._files())
        if self._params.destination.kind == "archive":
            self._write_archive(target, files)
        else:
            for file in files:
                path = os.path.join(target, file.bundle_path)
                make_private_dir(os.path.dirname(path))
                replace_file(path, file.data)
        result: JsonObject = {
            "kind": self._params.destination.kind,
            "path": target,
            "entries": [file.describe() for file in files],
        }
        return {**result, "skippedEntries": self._skipped} if self._skipped else result

    def _write_archive(self, target: str, files: list[_File]) -> None:
        if self._params.destination.no_overwrite and os.path.exists(target):
            raise UsageError(f"{target} exists already; choose another path.")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for file in files:
                entry = tarfile.TarInfo(file.bundle_path)
                entry.size, entry.mode = len(file.data), 0o600
                archive.addfile(entry, io.BytesIO(file.data))
        make_private_dir(os.path.dirname(target))
        replace_file(target, buffer.getvalue())

    def _files(self) -> Iterator[_File]:
        if self._params.include.events:
            yield _File("events.jsonl", "events", read_regular(self._log, MAX_BYTES))
        for entry in self._params.additional_entries:
            for path, name in _list(entry):
                try:
                    data = read_regular(path, MAX_BYTES)
                except OSError as error:
                    if entry.required:
                        raise
                    reason = {"reason": error.strerror or str(error)}
                    self._skipped.append({"bundlePath": name, "path": path, **reason})
                    continue
                yield _File(name, "additional", self._redact(entry, data))

    def _redact(self, entry: ExtraEntry, data: bytes) -> bytes:
        if entry.redaction == "none":
            return data
        return self._masker.mask_text(data.decode("utf-8", "replace")).encode("utf-8", "replace")


def _list(entry: ExtraEntry) -> Iterator[tuple[str, str]]:
    """Yield the files of an entry, each with its name in the bundle. Raises `UsageError`."""
    name = os.path.normpath(entry.bundle_path)
    if os.path.isabs(name) or name.split(os.sep)[0] in ("..", ".", "events.jsonl"):
        raise UsageError(f"The bundlePath {entry.bundle_path!r} is not a name in the bundle.")
    if entry.kind == "file":
        yield entry.path, name
        return
    count = 0
    for folder, _, names in os.walk(entry.path):
        for found in sorted(names):
            count += 1
            if count > MAX_FILES:
                return
            path = os.path.join(folder, found)
            yield path, os.path.join(name, os.path.relpath(path, entry.path))
