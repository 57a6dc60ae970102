"""Marketplaces: repositories with a `marketplace.json` that lists plugins and their sources."""

import os
import shutil
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.config.edit import change_field, read_object
from trimtab.config.files import make_private_dir
from trimtab.config.paths import find_home
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.customize.plugin_install.fetch import Origin, fetch, read_origin
from trimtab.customize.plugins import is_plugin_name

FILES = (
    ".plugin/marketplace.json",
    "marketplace.json",
    ".github/plugin/marketplace.json",
    ".claude-plugin/marketplace.json",
)
NOT_IN_MANIFEST = ("source", "strict", "category", "tags")
"""Fields of a marketplace's entry that say where a plugin is, not what it is."""
FIELD = "marketplaces"
"""The field of `config.json` that lists marketplaces and their sources."""


class Offer(msgspec.Struct, frozen=True):
    """A plugin in a marketplace. `source` is a path in it, or an object with an address."""

    name: str
    source: str | dict[str, Any] = ""
    description: str = ""


class Marketplaces:
    """The marketplaces that the person has added."""

    def __init__(self, env: Mapping[str, str]) -> None:
        home = find_home(env)
        self._env = env
        self._config = os.path.join(home.config, "config.json")
        self._folder = os.path.join(home.state, "marketplaces")

    def sources(self) -> list[tuple[str, str]]:
        return list(self._known().items())

    def add(self, source: str) -> str:
        """Fetch a marketplace and add it; return its name."""
        origin = read_origin(source)
        source = origin.address if origin.is_folder else source
        fresh = self._fetch(origin)
        try:
            name = str(_read(fresh).get("name") or "")
            if not is_plugin_name(name) or name.startswith("_"):
                raise ConfigurationError(
                    f"{source} has a marketplace without a usable name; tell its author."
                )
            known = self._known()
            if known.get(name, source) != source:
                raise UsageError(f"The marketplace {name!r} already exists; remove it first.")
            self._replace(fresh, name)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        change_field(self._config, FIELD, {**known, name: source})
        return name

    def update(self, name: str) -> None:
        fresh = self._fetch(read_origin(self._source(name)))
        try:
            _read(fresh)
            self._replace(fresh, name)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def remove(self, name: str) -> None:
        self._source(name)
        known = {key: value for key, value in self._known().items() if key != name}
        change_field(self._config, FIELD, known)
        shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)

    def offers(self, name: str) -> list[Offer]:
        self._source(name)
        entries = _read(os.path.join(self._folder, name)).get("plugins")
        try:
            return msgspec.convert(entries or [], list[Offer])
        except msgspec.ValidationError as error:
            raise ConfigurationError(
                f"The marketplace {name} cannot be read ({error}); tell its author."
            ) from None

    def origin(self, plugin: str, marketplace: str) -> Origin:
        """Return the source of a plugin in a marketplace."""
        offer = next((offer for offer in self.offers(marketplace) if offer.name == plugin), None)
        if offer is None:
            raise UsageError(
                f"The marketplace {marketplace} has no plugin {plugin!r}; browse it to see them."
            )
        folder = os.path.join(self._folder, marketplace)
        if isinstance(offer.source, str):
            root = _read(folder).get("metadata")
            base = root.get("pluginRoot", "") if isinstance(root, dict) else ""
            return Origin(
                address=folder, path=os.path.join(base, offer.source or plugin), is_folder=True
            )
        return _remote(offer.source)

    def manifest(self, plugin: str, marketplace: str) -> dict[str, Any]:
        """Return what a marketplace says of a plugin, for a plugin without a file of its own."""
        entries = _read(os.path.join(self._folder, marketplace)).get("plugins") or []
        entry = next(entry for entry in entries if entry.get("name") == plugin)
        return {name: value for name, value in entry.items() if name not in NOT_IN_MANIFEST}

    def _known(self) -> dict[str, str]:
        known = read_object(self._config).get(FIELD)
        if not isinstance(known, dict):
            return {}
        return {name: source for name, source in known.items() if isinstance(source, str)}

    def _source(self, name: str) -> str:
        known = self._known()
        if name not in known:
            raise UsageError(f'Marketplace "{name}" not found; add it first.')
        return known[name]

    def _fetch(self, origin: Origin) -> str:
        make_private_dir(self._folder)
        fresh = os.path.join(self._folder, f".new-{os.getpid()}-{os.urandom(4).hex()}")
        fetch(origin, fresh, self._env)
        return fresh

    def _replace(self, fresh: str, name: str) -> None:
        target = os.path.join(self._folder, name)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(fresh, target)


def _remote(source: dict[str, Any]) -> Origin:
    """Parse `{source: github, repo}` or `{source: url, url}`, with `sha` or `ref`."""
    address = source.get("repo") or source.get("url")
    if not isinstance(address, str):
        raise ConfigurationError("The marketplace has no address for this plugin; tell its author.")
    ref = source.get("sha") or source.get("ref") or ""
    origin = read_origin(f"{address}#{ref}" if ref else address)
    path = source.get("path")
    return msgspec.structs.replace(origin, path=path if isinstance(path, str) else "")


def _read(folder: str) -> dict[str, Any]:
    for name in FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return read_object(path)
    raise UsageError(f"There is no marketplace.json in {folder}; name a marketplace.")
