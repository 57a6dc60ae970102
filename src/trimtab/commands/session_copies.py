"""Copies of an open session: a document, or another session that goes on from here."""

import asyncio
from typing import TYPE_CHECKING

from trimtab.session.archive import Archive

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


async def export_session(live: "LiveSession", form: str) -> str:
    """Return the session so far as a document: `md`, `html` or `json`."""
    archive = await _open_archive(live)
    return await asyncio.to_thread(lambda: "".join(archive.export(live.id, form)))


async def fork_session(live: "LiveSession", name: str | None = None) -> str:
    """Copy the session as it is now, even while it works; return the id of the copy."""
    archive = await _open_archive(live)
    return (await asyncio.to_thread(archive.fork, live.id, name=name)).id


async def _open_archive(live: "LiveSession") -> Archive:
    """Return the stored sessions, among them this one with everything that happened."""
    await live.synced()
    return Archive(live.controls.setup.env)
