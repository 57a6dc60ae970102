"""Settings files of other agents: which of their fields are used here, and why the rest is not."""

import os
from collections.abc import Iterable

import msgspec

from trimtab.contracts.customization import Customization, Problem, Source
from trimtab.customize.mcp_servers import parse_config
from trimtab.customize.places import Places
from trimtab.customize.reading import read_text

UNKNOWN = "it is not known"


class Vendor(msgspec.Struct, frozen=True):
    """What is known about the settings of one vendor. `ignored` has fields by the reason."""

    user: tuple[str, ...]
    project: tuple[str, ...]
    used: tuple[str, ...]
    ignored: dict[str, tuple[str, ...]]

    def reason(self, field: str) -> str:
        """Why a field has no effect; empty if it has one."""
        if field in self.used:
            return ""
        return next((why for why, fields in self.ignored.items() if field in fields), UNKNOWN)


def find_vendor_settings(places: Places) -> tuple[list[Customization], list[Problem]]:
    """Every field of every such file, and files that cannot be read."""
    entries: list[Customization] = []
    problems: list[Problem] = []
    for source, vendor in _vendors().items():
        for path in _files(places, vendor):
            text, wrong = read_text(path)
            problems += wrong
            if not text.strip():
                continue
            try:
                content = parse_config(path, text)
            except ValueError as error:
                line = getattr(error, "line", 0)
                problems.append(Problem(message=str(error), file=path, line=line))
                continue
            if isinstance(content, dict):
                entries += _view(content, path, source, vendor)
    return entries, problems


def _view(
    content: dict[str, object], path: str, source: Source, vendor: Vendor
) -> Iterable[Customization]:
    for field in content:
        why = vendor.reason(field)
        yield Customization(
            name=field,
            kind="setting",
            source=source,
            file=path,
            enabled=not why,
            why=why,
            description="" if why else "used",
        )


def _files(places: Places, vendor: Vendor) -> list[str]:
    folders = [places.root] if places.trusted else []
    paths = [os.path.join(places.user, name) for name in vendor.user]
    paths += [os.path.join(folder, name) for folder in folders for name in vendor.project]
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]


def _vendors() -> dict[Source, Vendor]:
    path = os.path.join(os.path.dirname(__file__), "vendor_settings.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[Source, Vendor])
