"""The plugins of a person: folders below `installed-plugins`, and a list in `config.json`."""

import os
import shutil
from collections.abc import Callable

import msgspec

from trimtab.config.edit import change_field
from trimtab.config.files import cannot, make_private_dir
from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.customize.plugin_install.fetch import Origin, fetch, read_origin
from trimtab.customize.plugins import (
    REGISTRY,
    Installed,
    find_manifest,
    is_plugin_name,
    read_plugin,
    read_registry,
    trust_first,
    trust_plugins,
)

DIRECT = "_direct"


class PluginStore:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = os.path.join(home.config, "installed-plugins")

    @classmethod
    def here(cls) -> "PluginStore":
        return cls(find_home(os.environ))

    def names(self) -> list[str]:
        return [one.name for one in read_registry(self._home)]

    def install(self, source: str) -> str:
        """Install from what a person named; returns what was installed, in words."""
        name, at, marketplace = source.rpartition("@")
        if at and is_plugin_name(name) and is_plugin_name(marketplace):
            from trimtab.customize.plugin_install.marketplaces import Marketplaces

            origin = Marketplaces(self._home).origin(name, marketplace)
        else:
            origin, marketplace = read_origin(source), ""
        return self._install(origin, source, marketplace)

    def update(self, name: str) -> str:
        """Fetch a plugin again; one that names a commit stays as it is."""
        one = self._find(name)
        if one.pinned:
            return f"{name} is pinned to {one.commit[:12]}."
        described = self._install(self._origin_of(one), one.source, one.marketplace, replace=one)
        return f"Updated {described}."

    def set_enabled(self, name: str, *, enabled: bool) -> None:
        one = self._find(name)
        self._save(name, msgspec.structs.replace(one, enabled=enabled))

    def trust(self, name: str) -> None:
        """Trust a plugin as it is now."""
        one = self._find(name)
        known = [read_plugin(other.cache_path, other.name) for other in read_registry(self._home)]
        trust_first(self._home, known)
        trust_plugins(self._home, [read_plugin(one.cache_path, one.name)])

    def uninstall(self, name: str) -> None:
        one = self._find(name)
        if self._is_mine(one.cache_path):
            self._attempt("delete", one.cache_path, shutil.rmtree)
        self._save(name, None)

    def _origin_of(self, one: Installed) -> Origin:
        if not one.marketplace:
            return read_origin(one.source)
        from trimtab.customize.plugin_install.marketplaces import Marketplaces

        places = Marketplaces(self._home)
        places.update(one.marketplace)
        return places.origin(one.name, one.marketplace)

    def _install(
        self, origin: Origin, source: str, marketplace: str, replace: Installed | None = None
    ) -> str:
        make_private_dir(self._folder)
        fresh = os.path.join(self._folder, f".new-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            commit = fetch(origin, fresh)
            root = _inside(fresh, origin.path)
            if find_manifest(root) is None:
                raise UsageError(f"{source} has no plugin.json; name a plugin's folder.")
            plugin = read_plugin(root)
            if replace is None and plugin.name in self.names():
                raise UsageError(f"The plugin {plugin.name} is installed; use update instead.")
            target = os.path.join(self._folder, marketplace or DIRECT, plugin.name)
            make_private_dir(os.path.dirname(target))
            self._swap(root, target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        entry = Installed(
            name=plugin.name,
            cache_path=target,
            marketplace=marketplace,
            version=plugin.version,
            enabled=replace.enabled if replace else True,
            source=origin.address if origin.is_folder and not marketplace else source,
            ref=origin.ref,
            commit=commit,
            pinned=origin.pinned,
        )
        self._save(plugin.name, entry)
        self.trust(plugin.name)
        at = f" at {commit[:12]}" if commit else ""
        return f"{plugin.name} {plugin.version}".rstrip() + at

    def _swap(self, fresh: str, target: str) -> None:
        """Put a new folder in the place of an old one; a failure leaves the old one."""
        old = f"{target}.old-{os.urandom(4).hex()}"
        if os.path.lexists(target):
            self._attempt("move", target, lambda path: os.rename(path, old))
        self._attempt("move", fresh, lambda path: os.rename(path, target))
        shutil.rmtree(old, ignore_errors=True)

    def _find(self, name: str) -> Installed:
        for one in read_registry(self._home):
            if one.name == name:
                return one
        raise UsageError(f"There is no installed plugin {name!r}; see `trimtab plugins`.")

    def _save(self, name: str, entry: Installed | None) -> None:
        entries = [one for one in read_registry(self._home) if one.name != name]
        if entry is not None:
            entries.append(entry)
        path = os.path.join(self._home.config, "config.json")
        change_field(path, REGISTRY, msgspec.to_builtins(entries))

    def _is_mine(self, path: str) -> bool:
        """Whether a folder lies where plugins are installed; nothing else is ever deleted."""
        folder = os.path.realpath(self._folder) + os.sep
        return os.path.realpath(path).startswith(folder) and os.path.isdir(path)

    def _attempt(self, action: str, path: str, work: Callable[[str], None]) -> None:
        try:
            work(path)
        except OSError as error:
            raise cannot(action, path, error) from error


def _inside(folder: str, path: str) -> str:
    """A folder below another; a path out of it is refused."""
    root = os.path.realpath(os.path.join(folder, path))
    base = os.path.realpath(folder)
    if root != base and not root.startswith(base + os.sep):
        raise ConfigurationError(f"{path} lies outside of what was fetched; do not use it.")
    if not os.path.isdir(root):
        raise ConfigurationError(f"{path} is not in what was fetched; tell its author.")
    return root
