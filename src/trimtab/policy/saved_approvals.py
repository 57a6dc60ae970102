"""Stores approvals by location in `permissions-config.json`, as Copilot CLI does."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from trimtab.config.files import format_json, make_private_dir, update_file
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Rule
from trimtab.permissions.approvals import to_rules

_NOT_APPROVALS = ("permissions", "allow", "ask", "deny", "deniedUrls", "contentExclusion")
"""Settings that somebody may look for in this file."""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The approvals of a location."""

    rules: tuple[Rule, ...] = ()
    directories: tuple[str, ...] = ()


class SavedApprovals:
    """The approvals of one location. Unknown fields of the file are kept."""

    def __init__(self, path: str, location: str, project: str = "") -> None:
        """`project` is the folder there whose checks are offered; empty if it is not trusted."""
        self._path = path
        self._location = location
        self._project = project

    @property
    def location(self) -> str:
        return self._location

    def find_checks(self) -> Sequence[str] | None:
        """Return the commands that build, check or start the project; None without trust."""
        if not self._project:
            return None
        from trimtab.checkout.project_commands import find_checks

        return find_checks(self._project)

    def find_hosts(self) -> Sequence[str]:
        """Return the hosts from which a trusted project is fetched and built, as addresses."""
        if not self._project:
            return ()
        from trimtab.checkout.project_hosts import find_hosts

        return find_hosts(self._project)

    def load(self) -> Granted:
        """Return the approvals for this location and for always; none if there is no file."""
        try:
            with open(self._path, "rb") as file:
                content = _decode(self._path, file.read())
        except OSError:
            return Granted()
        here = _entry(content.get("locations"), self._location)
        rules = [
            *(rule for item in _items(here) for rule in to_rules(item, "location")),
            *(rule for item in _items(content.get("always")) for rule in to_rules(item, "always")),
        ]
        folders = here.get("allowed_directories")
        listed = folders if isinstance(folders, list) else []
        directories = tuple(folder for folder in listed if isinstance(folder, str))
        return Granted(rules=tuple(rules), directories=directories)

    def keep(self, approval: JsonObject, *, always: bool) -> None:
        """Add an approval, and drop the entries of folders that no longer exist."""
        make_private_dir(os.path.dirname(self._path))
        update_file(self._path, lambda before: self._add(before, approval, always=always))

    def drop(self, covered: Callable[[JsonObject], bool]) -> None:
        """Remove approvals for this location."""

        def change(before: bytes | None) -> bytes:
            content = _decode(self._path, before) if before else {}
            here = _entry(content.get("locations"), self._location)
            if here:
                here["tool_approvals"] = [item for item in _items(here) if not covered(item)]
            return format_json(content) + b"\n" if content else before or b""

        if os.path.exists(self._path):
            update_file(self._path, change)

    def _add(self, before: bytes | None, approval: JsonObject, *, always: bool) -> bytes:
        content = _decode(self._path, before) if before else {}
        existing = content.get("locations")
        locations = {
            key: value
            for key, value in (existing if isinstance(existing, dict) else {}).items()
            if os.path.isdir(key)
        }
        entry = content.get("always") if always else locations.get(self._location)
        entry = dict(entry) if isinstance(entry, dict) else {}
        items = _items(entry)
        entry["tool_approvals"] = [*items, approval] if approval not in items else items
        if always:
            content["always"] = entry
        else:
            locations[self._location] = entry
        content["locations"] = locations
        return format_json(content) + b"\n"


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            f"{path} is not valid JSON ({error}): correct it, or move it away to start over."
        ) from error
    if problem := _find_problem(content):
        raise ConfigurationError(
            f"{path} is not valid ({problem}): correct it, or move it away to start over."
        )
    approvals: dict[str, Any] = content
    return approvals


def _find_problem(content: Any) -> str:
    """Return why a file does not hold approvals, or an empty text: a typo must not open a door."""
    if not isinstance(content, dict):
        return "it is not a JSON object"
    if key := next((key for key in content if key in _NOT_APPROVALS), ""):
        return f"{key} has no effect here, but in settings.json"
    locations = content.get("locations", {})
    if not isinstance(locations, dict):
        return "locations is not an object"
    for name, entry in (*locations.items(), ("always", content.get("always") or {})):
        if not isinstance(entry, dict):
            return f"{name} is not an object"
        if not isinstance(entry.get("tool_approvals", []), list):
            return f"tool_approvals of {name} is not a list"
    return ""


def _entry(locations: Any, key: str) -> dict[str, Any]:
    entry = locations.get(key) if isinstance(locations, dict) else None
    return entry if isinstance(entry, dict) else {}


def _items(entry: Any) -> list[Any]:
    items = entry.get("tool_approvals") if isinstance(entry, dict) else None
    return items if isinstance(items, list) else []
