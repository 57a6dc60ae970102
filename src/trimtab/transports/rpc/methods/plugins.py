"""Plugins of the person and of a session, and marketplaces."""

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.customize.plugin_install.installed import PluginStore
from trimtab.customize.plugin_install.marketplaces import Marketplaces
from trimtab.customize.plugins import Installed, read_plugin, read_registry
from trimtab.customize.skills import find_skills
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()
T = TypeVar("T")
DIRECT = "Direct plugin installs are deprecated; install NAME@MARKETPLACE where there is one."


class Source(msgspec.Struct, rename="camel"):
    source: str
    working_directory: str | None = None


class Name(msgspec.Struct):
    name: str


class MaybeName(msgspec.Struct):
    name: str | None = None


class Names(msgspec.Struct):
    names: tuple[str, ...]


class Remove(msgspec.Struct):
    name: str
    force: bool = False


@methods.on("session.plugins.list")
async def list_of_session(call: Call, params: Nothing) -> JsonObject:
    custom = call.session.live.controls.setup.customizations
    plugins = custom.all_plugins if custom else ()
    registry = read_registry(call.server.runtime.home)
    marketplaces = {installed.name: installed.marketplace for installed in registry}
    return {
        "plugins": [
            {
                "name": plugin.name,
                "marketplace": marketplaces.get(plugin.name, ""),
                "enabled": plugin.enabled and plugin.trusted,
                **({"version": plugin.version} if plugin.version else {}),
            }
            for plugin in plugins
        ]
    }


@methods.on("session.plugins.reload")
async def reload_of_session(call: Call, params: Nothing) -> JsonObject:
    call.session.live.controls.reload()
    return {}


class Paths(msgspec.Struct):
    paths: tuple[str, ...]


@methods.on("plugins.builtin.set", Paths)
async def set_builtin(call: Call, params: Paths) -> None:
    """Set the plugins that the client's program brings for the sessions of this server."""
    if call.server.sessions:
        raise UsageError(
            "Cannot set built-in plugins while sessions are active. Call plugins.builtin.set "
            "before creating any sessions."
        )
    for path in params.paths:
        if not os.path.isabs(path):
            raise UsageError(f"{path!r} must be an absolute path; give the whole path.")
    call.server.builtin_plugins = params.paths


@methods.on("plugins.list")
async def list_installed(call: Call, params: Nothing) -> JsonObject:
    installed = read_registry(call.server.runtime.home)
    return {"plugins": list(map(_describe, installed))}


@methods.on("plugins.install", Source)
@methods.on("session.plugins.install", Source)
async def install(call: Call, params: Source) -> JsonObject:
    store, before = _store(call), set(_store(call).names())
    await _in_thread(lambda: store.install(_resolve(params)))
    (name,) = set(store.names()) - before
    installed = _find(call, name)
    done = {"plugin": _describe(installed), "skillsInstalled": _count_skills(installed)}
    return done if installed.marketplace else {**done, "deprecationWarning": DIRECT}


@methods.on("plugins.update", Name)
@methods.on("session.plugins.update", Name)
async def update(call: Call, params: Name) -> JsonObject:
    return await _update(call, params.name.partition("@")[0])


@methods.on("plugins.updateAll")
async def update_all(call: Call, params: Nothing) -> JsonObject:
    """Update each plugin; a failure does not stop the others."""
    results: list[JsonObject] = []
    for plugin in read_registry(call.server.runtime.home):
        result: JsonObject = {"name": plugin.name, "marketplace": plugin.marketplace}
        try:
            result |= {"success": True, **await _update(call, plugin.name)}
        except TrimtabError as error:
            result |= {"success": False, "error": error.message}
        results.append(result)
    return {"results": results}


@methods.on("plugins.enable", Names)
@methods.on("session.plugins.enable", Names)
async def enable(call: Call, params: Names) -> None:
    _switch(call, params, enabled=True)


@methods.on("plugins.disable", Names)
@methods.on("session.plugins.disable", Names)
async def disable(call: Call, params: Names) -> None:
    _switch(call, params, enabled=False)


@methods.on("plugins.uninstall", Name)
@methods.on("session.plugins.uninstall", Name)
async def uninstall(call: Call, params: Name) -> None:
    store = _store(call)
    await _in_thread(lambda: store.uninstall(params.name.partition("@")[0]))


@methods.on("plugins.marketplaces.list")
@methods.on("session.plugins.marketplaces.list")
async def list_marketplaces(call: Call, params: Nothing) -> JsonObject:
    known = _marketplaces(call).sources()
    return {
        "marketplaces": [
            {"name": name, "source": source, "isDefault": False} for name, source in known
        ]
    }


@methods.on("plugins.marketplaces.add", Source)
@methods.on("session.plugins.marketplaces.add", Source)
async def add_marketplace(call: Call, params: Source) -> JsonObject:
    marketplaces = _marketplaces(call)
    return {"name": await _in_thread(lambda: marketplaces.add(params.source))}


@methods.on("plugins.marketplaces.browse", Name)
@methods.on("session.plugins.marketplaces.browse", Name)
async def browse(call: Call, params: Name) -> JsonObject:
    offers = _marketplaces(call).offers(params.name)
    return {"plugins": [{"name": offer.name, "description": offer.description} for offer in offers]}


@methods.on("plugins.marketplaces.refresh", MaybeName)
@methods.on("session.plugins.marketplaces.refresh", MaybeName)
async def refresh(call: Call, params: MaybeName) -> JsonObject:
    marketplaces = _marketplaces(call)
    names = [params.name] if params.name else [name for name, _ in marketplaces.sources()]
    results: list[JsonObject] = []
    for name in names:
        try:
            await _in_thread(lambda name=name: marketplaces.update(name))  # type: ignore[misc]
        except TrimtabError as error:
            results.append({"name": name, "success": False, "error": error.message})
        else:
            results.append({"name": name, "success": True})
    return {"results": results}


@methods.on("plugins.marketplaces.remove", Remove)
@methods.on("session.plugins.marketplaces.remove", Remove)
async def remove_marketplace(call: Call, params: Remove) -> JsonObject:
    installed = read_registry(call.server.runtime.home)
    dependent = [plugin.name for plugin in installed if plugin.marketplace == params.name]
    if dependent and not params.force:
        return {"removed": False, "dependentPlugins": dependent}
    marketplaces, store = _marketplaces(call), _store(call)
    await _in_thread(lambda: _remove(marketplaces, store, params.name, dependent))
    return {"removed": True}


def _remove(marketplaces: Marketplaces, store: PluginStore, name: str, plugins: list[str]) -> None:
    """Remove a marketplace and the plugins that came from it."""
    marketplaces.remove(name)
    for plugin in plugins:
        store.uninstall(plugin)


async def _update(call: Call, name: str) -> JsonObject:
    store, before = _store(call), _find(call, name)
    await _in_thread(lambda: store.update(name))
    after = _find(call, name)
    result: JsonObject = {
        "previousVersion": before.version or None,
        "newVersion": after.version or None,
        "skillsInstalled": _count_skills(after),
    }
    return {field: value for field, value in result.items() if value is not None}


def _resolve(params: Source) -> str:
    """Resolve a path against the client's folder, not the server's."""
    base = params.working_directory or os.getcwd()
    folder = os.path.join(base, os.path.expanduser(params.source))
    return folder if os.path.isdir(folder) else params.source


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking work, such as git, while other clients are served."""
    return await asyncio.to_thread(work)


def _switch(call: Call, params: Names, *, enabled: bool) -> None:
    store = _store(call)
    wanted = {name.partition("@")[0] for name in params.names}
    for name in store.names():
        if name in wanted:
            store.set_enabled(name, enabled=enabled)


def _store(call: Call) -> PluginStore:
    return PluginStore(call.server.runtime.env)


def _marketplaces(call: Call) -> Marketplaces:
    return Marketplaces(call.server.runtime.env)


def _find(call: Call, name: str) -> Installed:
    for plugin in read_registry(call.server.runtime.home):
        if plugin.name == name:
            return plugin
    raise UsageError(f'Plugin "{name}" is not installed; see plugins.list.')


def _count_skills(installed: Installed) -> int:
    plugin = read_plugin(installed.cache_path, installed.name)
    return len(find_skills(plugin.skill_folders).skills)


def _describe(plugin: Installed) -> JsonObject:
    described: JsonObject = {
        "name": plugin.name,
        "marketplace": plugin.marketplace,
        "enabled": plugin.enabled,
        "version": plugin.version or None,
    }
    return {field: value for field, value in described.items() if value is not None}
