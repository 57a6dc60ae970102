"""Files of other agents that hold settings: which fields are used here, and why the rest is not."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.contracts.customization import Customization, Kind, Problem, Source
from trimtab.customize.parsing import field_names, find_line, parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import Listing, read_text

UNKNOWN = "it is not known"
MOST_FIELDS = 500
"""Fields of one file that are named."""


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are known and have no effect. A path may have a `*` in one folder's place."""

    kind: Kind
    paths: tuple[str, ...]
    why: str
    secret: bool = False
    """Whether even the names in it are nobody's business."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the files of one vendor. `ignored` has fields by the reason."""

    user: tuple[str, ...]
    project: tuple[str, ...]
    used: tuple[str, ...]
    ignored: dict[str, tuple[str, ...]]
    unused: tuple[Unused, ...] = ()

    def reason(self, field: str) -> str:
        """Why a field has no effect; empty if it has one. A field in an object goes by that."""
        if any(field == one or field.startswith(one + ".") for one in self.used):
            return ""
        first = field.partition(".")[0]
        return next((why for why, fields in self.ignored.items() if first in fields), UNKNOWN)


def find_vendor_settings(places: Places) -> tuple[list[Customization], list[Problem]]:
    """Every field of every such file, and files that cannot be read."""
    entries: list[Customization] = []
    problems: list[Problem] = []
    for source, vendor in _vendors().items():
        for path in _settings_files(places, vendor):
            content, text, wrong = _read(path)
            problems += wrong
            entries += _view_settings(content, text, path, source, vendor)
        for unused in vendor.unused:
            for path in _unused_files(places, unused):
                fields, wrong = _fields_of(path, unused)
                problems += wrong
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
        return {}, text, [*problems, Problem(message="it holds no object", file=path, line=1)]
    return content, text, list(problems)


def _view_settings(
    content: dict[str, Any], text: str, path: str, source: Source, vendor: Vendor
) -> Iterator[Customization]:
    for field, value in content.items():
        inner = [f"{field}.{name}" for name in dict.fromkeys(field_names(value))][:MOST_FIELDS]
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
    """The files a path means; `*` stands for any name, or for its beginning, in one place."""
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
    """The fields of a file that has some: JSON, TOML, or Markdown with a head."""
    if unused.secret:
        return [], []
    if path.endswith((".json", ".toml")):
        content, _, problems = _read(path)
        return list(dict.fromkeys(field_names(content)))[:MOST_FIELDS], problems
    if not path.endswith(".md"):
        return [], []
    from trimtab.customize.front_matter import split_document

    text, wrong = read_text(path)
    document = split_document(text, path)
    return list(document.fields), [*wrong, *document.problems]


def _vendors() -> dict[Source, Vendor]:
    path = os.path.join(os.path.dirname(__file__), "vendor_settings.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[Source, Vendor])
