"""Installs, updates and removes the person's plugins: folders, and a list in `config.json`."""

import os
import shutil
from collections.abc import Callable, Mapping

import msgspec

from trimtab.config.edit import change_field
from trimtab.config.files import cannot, format_json, make_private_dir, replace_file
from trimtab.config.paths import find_home
from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.customize.plugin_install.fetch import Origin, fetch, read_origin
from trimtab.customize.plugin_install.marketplaces import Marketplaces
from trimtab.customize.plugins import (
    REGISTRY,
    Installed,
    find_manifest,
    is_plugin_name,
    read_plugin,
    read_registry,
    trust_plugins,
    trust_unseen,
)

MANIFEST = "plugin.json"
WITHOUT_MARKETPLACE = "_direct"
"""The folder of plugins that come from no marketplace."""


class PluginStore:
    """The installed plugins of the person."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._home = find_home(env)
        self._folder = os.path.join(self._home.config, "installed-plugins")

    def names(self) -> list[str]:
        return [installed.name for installed in read_registry(self._home)]

    def install(self, source: str) -> str:
        """Install a plugin from a source that `read_origin` accepts, or NAME@MARKETPLACE.

        Returns its name, version and commit, for people.
        """
        name, at, marketplace = source.rpartition("@")
        if at and is_plugin_name(name) and is_plugin_name(marketplace):
            origin = Marketplaces(self._env).origin(name, marketplace)
        else:
            origin, marketplace = read_origin(source), ""
        return self._install(origin, source, marketplace)

    def update(self, name: str) -> str:
        """Fetch a plugin again, unless it is pinned to a commit; return a sentence for people."""
        installed = self._find(name)
        if installed.pinned:
            return f"{name} is pinned to {installed.commit[:12]}."
        described = self._install(
            self._origin_of(installed), installed.source, installed.marketplace, replace=installed
        )
        return f"Updated {described}."

    def set_enabled(self, name: str, *, enabled: bool) -> None:
        installed = self._find(name)
        self._save(name, msgspec.structs.replace(installed, enabled=enabled))

    def trust(self, name: str) -> None:
        """Trust a plugin as it is now."""
        installed = self._find(name)
        known = [read_plugin(other.cache_path, other.name) for other in read_registry(self._home)]
        trust_unseen(self._home, known)
        trust_plugins(self._home, [read_plugin(installed.cache_path, installed.name)])

    def uninstall(self, name: str) -> None:
        installed = self._find(name)
        if self._is_inside(installed.cache_path):
            self._attempt("delete", installed.cache_path, shutil.rmtree)
        self._save(name, None)

    def _origin_of(self, installed: Installed) -> Origin:
        if not installed.marketplace:
            return read_origin(installed.source)
        marketplaces = Marketplaces(self._env)
        marketplaces.update(installed.marketplace)
        return marketplaces.origin(installed.name, installed.marketplace)

    def _install(
        self, origin: Origin, source: str, marketplace: str, replace: Installed | None = None
    ) -> str:
        make_private_dir(self._folder)
        fresh = os.path.join(self._folder, f".new-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            commit = fetch(origin, fresh, self._env)
            root = _find_inside(fresh, origin.path)
            if find_manifest(root) is None:
                self._add_manifest(root, source, marketplace)
            plugin = read_plugin(root)
            if replace is None and plugin.name in self.names():
                raise UsageError(f"The plugin {plugin.name} is installed; use update instead.")
            target = os.path.join(self._folder, marketplace or WITHOUT_MARKETPLACE, plugin.name)
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

    def _add_manifest(self, root: str, source: str, marketplace: str) -> None:
        """Write the manifest of a plugin that only its marketplace describes."""
        if not marketplace:
            raise UsageError(f"{source} has no plugin.json; name a plugin's folder.")
        name = source.rpartition("@")[0]
        manifest = Marketplaces(self._env).manifest(name, marketplace)
        replace_file(os.path.join(root, MANIFEST), format_json(manifest))

    def _swap(self, fresh: str, target: str) -> None:
        """Replace a folder by a new one."""
        old = f"{target}.old-{os.urandom(4).hex()}"
        if os.path.lexists(target):
            self._attempt("move", target, lambda path: os.rename(path, old))
        self._attempt("move", fresh, lambda path: os.rename(path, target))
        shutil.rmtree(old, ignore_errors=True)

    def _find(self, name: str) -> Installed:
        for installed in read_registry(self._home):
            if installed.name == name:
                return installed
        raise UsageError(f'Plugin "{name}" is not installed; see `trimtab plugins`.')

    def _save(self, name: str, entry: Installed | None) -> None:
        entries = [other for other in read_registry(self._home) if other.name != name]
        if entry is not None:
            entries.append(entry)
        path = os.path.join(self._home.config, "config.json")
        change_field(path, REGISTRY, msgspec.to_builtins(entries))

    def _is_inside(self, path: str) -> bool:
        """Return True if a folder is below the one for plugins: nothing else is ever deleted."""
        folder = os.path.realpath(self._folder) + os.sep
        return os.path.realpath(path).startswith(folder) and os.path.isdir(path)

    def _attempt(self, action: str, path: str, work: Callable[[str], None]) -> None:
        try:
            work(path)
        except OSError as error:
            raise cannot(action, path, error) from error


def _find_inside(folder: str, path: str) -> str:
    """Return the path of a folder below another. Raises for a path that leads out of it."""
    root = os.path.realpath(os.path.join(folder, path))
    base = os.path.realpath(folder)
    if root != base and not root.startswith(base + os.sep):
        raise ConfigurationError(f"{path} is outside the fetched folder; do not use this plugin.")
    if not os.path.isdir(root):
        raise ConfigurationError(
            f"{path} is not in the fetched folder; tell the author of the plugin."
        )
    return root
