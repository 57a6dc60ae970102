"""Reads and writes files through an editor, whose buffers may differ from what is on disk."""

import os

from trimtab.contracts.workspace import EditorBuffers, FileContent, StaleFile, Stamp
from trimtab.workspace import files


async def read_buffer(editor: EditorBuffers, path: str, disk: FileContent) -> FileContent:
    """Return a file as the editor has it. Files that are not UTF-8 are taken from the disk.

    Editors may report other line endings than a file has; such a text counts as unchanged.
    """
    saved = as_text(disk.data)
    if saved is None:
        return disk
    text = await editor.read(path)
    if text is None or unify_lines(text) == unify_lines(saved):
        return disk
    try:
        return FileContent(data=text.encode(), stamp=disk.stamp)
    except UnicodeEncodeError:  # half of a surrogate pair
        return disk


async def save_buffer(editor: EditorBuffers, path: str, stamp: Stamp | None) -> Stamp | None:
    """Save what a person has not saved yet, so that undo can return to it.

    Returns the stamp that the file has now, if it had `stamp` before.
    """
    disk = load_existing(path)
    if disk is None:
        return stamp
    unsaved = await read_buffer(editor, path, disk)
    if unsaved is disk:
        return stamp
    await write_buffer(editor, path, unsaved.data, new=False, stamp=disk.stamp)
    return files.load(path).stamp if stamp == disk.stamp else stamp


async def write_buffer(
    editor: EditorBuffers, path: str, data: bytes, *, new: bool, stamp: Stamp | None
) -> None:
    """Write a file through the editor, and to the disk if the editor leaves that to us."""
    text = as_text(data)
    before = load_existing(path)
    if before is not None and new:
        raise FileExistsError(path)
    if before is not None and stamp is not None and before.stamp != stamp:
        raise StaleFile(path)
    if text is None or not await editor.write(path, text):
        files.write(path, data, new=new, stamp=stamp)
        return
    after = load_existing(path)
    if after is None or (before is not None and after.data == before.data != data):
        files.write(path, data, new=False, stamp=None)  # the editor has not saved its buffer


def load_existing(path: str) -> FileContent | None:
    return files.load(path) if os.path.isfile(path) else None


def as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def unify_lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
