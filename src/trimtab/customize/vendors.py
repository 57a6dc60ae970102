"""Lists the settings files of other agents: the fields used here, and why others are not."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.contracts.customization import Customization, Kind, Problem, Source
from trimtab.customize.front_matter import split_document
from trimtab.customize.parsing import field_names, find_line, parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import Listing, read_text

UNKNOWN = "it is not known"
MAX_FIELDS = 500
"""Fields that are listed of a file."""


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """Known files that have no effect. A path may contain one `*`."""

    kind: Kind
    paths: tuple[str, ...]
    why: str
    secret: bool = False
    """True if even the names of its fields must not be shown."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a vendor, and their fields. `ignored` maps reasons to fields."""

    user: tuple[str, ...]
    project: tuple[str, ...]
    used: tuple[str, ...]
    ignored: dict[str, tuple[str, ...]]
    unused: tuple[Unused, ...] = ()

    def reason(self, field: str) -> str:
        """Return why a field has no effect; "" if it has one. Nested fields share the reason."""
        if any(field == used or field.startswith(used + ".") for used in self.used):
            return ""
        first = field.partition(".")[0]
        return next((why for why, fields in self.ignored.items() if first in fields), UNKNOWN)


def find_vendor_settings(places: Places) -> tuple[list[Customization], list[Problem]]:
    """Return an entry for every field of every settings file, and the problems of the files."""
    entries: list[Customization] = []
    problems: list[Problem] = []
    for source, vendor in _vendors().items():
        for path in _settings_files(places, vendor):
            content, text, file_problems = _read(path)
            problems += file_problems
            entries += _view_settings(content, text, path, source, vendor)
        for unused in vendor.unused:
            for path in _unused_files(places, unused):
                fields, file_problems = _fields_of(path, unused)
                problems += file_problems
                entries.append(
                    Customization(
                        name=places.shorten(path),
                        kind=unused.kind,
                        source=source,
                        file=path,
                        enabled=False,
                        why=unused.why,
                        fields=dict.fromkeys(fields, f"no effect: {unused.why}"),
                    )
                )
    return entries, problems


def _read(path: str) -> tuple[dict[str, Any], str, list[Problem]]:
    text, problems = read_text(path)
    if not text.strip():
        return {}, text, list(problems)
    try:
        content = parse_config(path, text)
    except ValueError as error:
        line = getattr(error, "line", 0)
        return {}, text, [*problems, Problem(message=str(error), file=path, line=line)]
    if not isinstance(content, dict):
        return (
            {},
            text,
            [*problems, Problem(message="it does not contain an object", file=path, line=1)],
        )
    return content, text, list(problems)


def _view_settings(
    content: dict[str, Any], text: str, path: str, source: Source, vendor: Vendor
) -> Iterator[Customization]:
    for field, value in content.items():
        inner = [f"{field}.{name}" for name in dict.fromkeys(field_names(value))][:MAX_FIELDS]
        if not vendor.reason(field):
            inner = []  # servers and hooks are entries of their own, with their own fields
        reasons = {name: vendor.reason(name) for name in (field, *inner)}
        used = not all(reasons.values())
        yield Customization(
            name=field,
            kind="setting",
            source=source,
            file=path,
            line=find_line(text, field),
            enabled=used,
            why="" if used else reasons[field],
            description="used" if used else "",
            fields={name: f"no effect: {why}" if why else "used" for name, why in reasons.items()},
        )


def _settings_files(places: Places, vendor: Vendor) -> list[str]:
    paths = [os.path.join(places.user, name) for name in vendor.user]
    if places.trusted:
        paths += [os.path.join(places.root, name) for name in vendor.project]
    return [path for path in dict.fromkeys(paths) if os.path.lexists(path)]


def _unused_files(places: Places, unused: Unused) -> Iterable[str]:
    folders = (places.user, places.root) if places.trusted else (places.user,)
    found: dict[str, None] = {}
    for folder in folders:
        for path in unused.paths:
            found.update(dict.fromkeys(_expand(folder, path)))
    return found


def _expand(folder: str, path: str) -> Iterator[str]:
    """Yield the existing files that a path names; `*` matches a name, or the start of a name."""
    before, star, after = path.partition("*")
    if not star:
        if os.path.lexists(os.path.join(folder, path)):
            yield os.path.join(folder, path)
        return
    parent = os.path.join(folder, before)
    for name in Listing(parent).names:
        if after.startswith("/"):
            inner = os.path.join(parent, name + after)
            if os.path.lexists(inner):
                yield inner
        elif name.endswith(after):
            yield os.path.join(parent, name)


def _fields_of(path: str, unused: Unused) -> tuple[list[str], list[Problem]]:
    """Return the fields of a JSON or TOML file, or of the front matter of a Markdown file."""
    if unused.secret:
        return [], []
    if path.endswith((".json", ".toml")):
        content, _, problems = _read(path)
        return list(dict.fromkeys(field_names(content)))[:MAX_FIELDS], problems
    if not path.endswith(".md"):
        return [], []
    text, problems_of_text = read_text(path)
    document = split_document(text, path)
    return list(document.fields), [*problems_of_text, *document.problems]


def _vendors() -> dict[Source, Vendor]:
    path = os.path.join(os.path.dirname(__file__), "vendor_settings.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[Source, Vendor])
