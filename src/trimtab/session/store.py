"""The sessions on this machine: creates, opens, finds and lists them."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trimtab.config.files import cannot, make_private_dir, write_new_file
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError, SessionNotFound, TrimtabError, UsageError
from trimtab.contracts.ids import is_uuid, new_id, timestamp
from trimtab.session.folder import SessionFolder, is_safe_name
from trimtab.session.log import EventLog
from trimtab.session.metadata import render

if TYPE_CHECKING:
    from trimtab.session.summary import SessionSummary

CLIENT = "trimtab"


class SessionStore:
    """The session folders below a home folder."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def folder(self, session_id: str) -> SessionFolder:
        """Return the folder of a session with this id, whether it exists or not."""
        if not is_safe_name(session_id):
            raise UsageError(f"{session_id!r} is not a session id: see `trimtab sessions list`.")
        return SessionFolder(session_id, os.path.join(self.home.session_state, session_id))

    def exists(self, session_id: str) -> bool:
        return is_safe_name(session_id) and os.path.lexists(self.folder(session_id).path)

    def create(
        self,
        session_id: str | None = None,
        *,
        cwd: str,
        name: str | None = None,
        git: Mapping[str, Any] | None = None,
    ) -> tuple[SessionFolder, EventLog]:
        """Create a session with an empty log, whose lease this process holds."""
        if session_id is not None and not _is_id(session_id):
            raise UsageError(
                f"{session_id!r} is not a valid session id: use letters, digits, '-', '_' and '.', "
                "or leave it out."
            )
        chosen = session_id or new_id()
        folder = self.folder(chosen.lower() if is_uuid(chosen) else chosen)
        self._make_folder(folder)
        now = timestamp()
        metadata = {
            "id": folder.id,
            "cwd": cwd,
            **(git or {}),
            "name": name,
            "user_named": name is not None,
            "client_name": CLIENT,
            "summary_count": 0,
            "created_at": now,
            "updated_at": now,
        }
        known = {key: value for key, value in metadata.items() if value is not None}
        try:
            write_new_file(folder.workspace_file, render(known), durable=False)
            return folder, EventLog.create(folder.events)
        except OSError as error:
            _remove_new_folder(folder)
            raise cannot("write", folder.workspace_file, error) from error
        except TrimtabError:
            _remove_new_folder(folder)
            raise

    def open(self, session_id: str) -> tuple[SessionFolder, EventLog]:
        """Open and repair an existing session, and take its lease. Never creates a session."""
        folder = self.folder(session_id)
        if not os.path.isdir(folder.path):
            raise self._not_found(session_id)
        if not os.path.lexists(folder.events):
            raise SessionNotFound(
                f"Session {session_id} has no event log ({folder.events}): restore that file from "
                "a backup, or start a new session."
            )
        return folder, EventLog.open(folder.events)

    def find(self, text: str, *, cwd: str | None = None) -> str:
        """Return the session id for an id, a prefix of at least 7 characters, or a name."""
        for wanted in (text, text.lower()):
            if self.exists(wanted):
                return wanted
        matches = self._by_prefix(text.lower()) or self._by_name(text)
        if cwd is not None and len(matches) > 1:
            here = [match for match in matches if _cwd_of(self.folder(match)) == cwd]
            matches = here if len(here) == 1 else matches
        if not matches:
            raise self._not_found(text)
        if len(matches) > 1:
            raise SessionNotFound(
                f"{text!r} could be any of {', '.join(sorted(matches))}: give the whole id."
            )
        return matches[0]

    def latest(self, cwd: str | None = None) -> str | None:
        """Return the session used last, preferring sessions of this working directory."""
        from trimtab.session.summary import last_used

        latest: tuple[bool, str, str] | None = None
        for folder in self.folders():
            if os.path.isfile(folder.events):
                metadata = _metadata_of(folder)
                here = cwd is not None and metadata.get("cwd") == cwd
                used = (here, last_used(folder, metadata), folder.id)
                latest = max(latest, used) if latest else used
        return latest[2] if latest else None

    def list(self) -> "list[SessionSummary]":
        """Return all sessions, the one used last first. A bad folder is listed with its problem."""
        from trimtab.session.summary import summarize

        summaries = [summarize(folder) for folder in self.folders()]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)

    def folders(self) -> Sequence[SessionFolder]:
        """Return the folders of all sessions, in no particular order."""
        return [self.folder(name) for name in self._names()]

    def _names(self) -> Sequence[str]:
        base = self.home.session_state
        try:
            names = os.listdir(base)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("read", base, error) from error
        return [
            name for name in names if is_safe_name(name) and os.path.isdir(os.path.join(base, name))
        ]

    def _make_folder(self, folder: SessionFolder) -> None:
        make_private_dir(self.home.session_state)
        try:
            os.mkdir(folder.path, 0o700)
        except FileExistsError:
            raise ConfigurationError(
                f"Session {folder.id} exists already: continue it with --resume={folder.id}, "
                "or choose another id."
            ) from None
        except OSError as error:
            raise cannot("create the folder", folder.path, error) from error
        os.chmod(folder.path, 0o700)  # the umask may have removed even the owner's bits

    def _by_prefix(self, text: str) -> Sequence[str]:
        digits = text.replace("-", "")
        if len(digits) < 7 or not all(digit in "0123456789abcdef" for digit in digits):
            return []
        return [name for name in self._names() if name.lower().startswith(text)]

    def _by_name(self, text: str) -> Sequence[str]:
        names = {folder_id: _name_of(self.folder(folder_id)) for folder_id in self._names()}
        exact = [folder_id for folder_id, name in names.items() if name == text]
        wanted = text.casefold()
        return exact or [
            folder_id for folder_id, name in names.items() if name and name.casefold() == wanted
        ]

    def _not_found(self, text: str) -> SessionNotFound:
        import difflib

        names = self._names()
        known = {name: name for name in names}
        known |= {title: name for name in names if (title := _name_of(self.folder(name)))}
        close = difflib.get_close_matches(text, known, n=3, cutoff=0.5)
        close += [name for name in names if len(text) >= 3 and name.startswith(text)][:3]
        hint = f" Did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""
        return SessionNotFound(
            f"No such session: {text!r}.{hint} See `trimtab sessions list` for all of them."
        )


def _is_id(text: str) -> bool:
    """Return True if a program may choose this id. (The SDKs generate UUIDs.)"""
    plain = text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return plain and text[0].isalnum() and len(text) <= 128


def _remove_new_folder(folder: SessionFolder) -> None:
    """Remove the folder of a session that could not be created."""
    with suppress(OSError):
        for name in os.listdir(folder.path):
            os.unlink(os.path.join(folder.path, name))
        os.rmdir(folder.path)


def _name_of(folder: SessionFolder) -> str | None:
    name = _metadata_of(folder).get("name")
    return None if name is None else str(name)


def _cwd_of(folder: SessionFolder) -> str | None:
    cwd = _metadata_of(folder).get("cwd")
    return cwd if isinstance(cwd, str) else None


def _metadata_of(folder: SessionFolder) -> Mapping[str, Any]:
    try:
        return folder.read_metadata()
    except TrimtabError:
        return {}
