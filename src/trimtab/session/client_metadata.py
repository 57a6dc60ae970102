"""Texts that clients keep with a session: `client-metadata.json`, in the reference's form.

They are for clients alone: no model, event or export contains them.
"""

import os
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from trimtab.config.files import read_regular, update_file
from trimtab.contracts.errors import UsageError
from trimtab.session.folder import SessionFolder

VERSION = 1
MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 16 * 1024
MAX_ENTRIES = 128
MAX_FILE_BYTES = 64 * 1024


class Corrupt(Exception):
    """Raised for a file that is not what a client wrote."""


class UnknownVersion(Exception):
    """Raised for a file of another version."""


class Document(msgspec.Struct):
    version: int
    metadata: dict[str, str]


def read_client_metadata(folder: SessionFolder) -> dict[str, str]:
    """Return the texts by name. Raises `Corrupt`, `UnknownVersion` and `OSError`."""
    try:
        return _decode(read_regular(_path(folder), 4 * MAX_FILE_BYTES))
    except FileNotFoundError:
        return {}


def update_client_metadata(
    folder: SessionFolder,
    *,
    put: Mapping[str, str],
    remove: Collection[str] = (),
    clear: bool = False,
) -> dict[str, str]:
    """Clear, remove and set texts in one step; return what there is then.

    Raises `UsageError` for texts that are too many or too long, and whatever reading raises.
    """
    _check(put)
    after: dict[str, str] = {}

    def change(before: bytes | None) -> bytes:
        kept = {} if clear or before is None else _decode(before)
        after.update({name: text for name, text in kept.items() if name not in remove})
        after.update(put)
        data = msgspec.json.encode(Document(VERSION, after))
        if len(after) > MAX_ENTRIES or len(data) > MAX_FILE_BYTES:
            raise UsageError(
                f"client metadata is invalid: it exceeds {MAX_ENTRIES} entries or "
                f"{MAX_FILE_BYTES} bytes; remove some."
            )
        return data

    update_file(_path(folder), change)
    return after


def _check(put: Mapping[str, str]) -> None:
    problem = ""
    if len(put) > MAX_ENTRIES:
        problem = f"set exceeds {MAX_ENTRIES} entries"
    for name, text in put.items():
        if not name:
            problem = "keys must not be empty"
        elif not (_is_unicode(name) and _is_unicode(text)):
            problem = "keys and values must be valid Unicode, without lone surrogates"
        elif _size(name) > MAX_KEY_BYTES:
            problem = f"key exceeds {MAX_KEY_BYTES} bytes"
        elif _size(text) > MAX_VALUE_BYTES:
            problem = f"value for key {name!r} exceeds {MAX_VALUE_BYTES} bytes"
    if problem:
        raise UsageError(f"client metadata is invalid: {problem}; correct it.")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _size(text: str) -> int:
    return len(text.encode())


def _decode(data: bytes) -> dict[str, str]:
    try:
        head: Any = msgspec.json.decode(data)
        if isinstance(head, dict) and head.get("version") not in (None, VERSION):
            raise UnknownVersion(f"client metadata has the unknown version {head['version']!r}")
        return msgspec.convert(head, Document).metadata
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Corrupt(f"client metadata file is corrupt: {error}") from None


def _path(folder: SessionFolder) -> str:
    return os.path.join(folder.path, "client-metadata.json")
