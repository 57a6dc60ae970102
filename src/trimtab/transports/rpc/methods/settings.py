"""Reads and changes the settings of the person."""

from typing import Any

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Settings(msgspec.Struct):
    settings: dict[str, Any]


@methods.on("user.settings.get")
async def get_settings(call: Call, params: Nothing) -> JsonObject:
    return {"settings": _read(_path(call))}


@methods.on("user.settings.set", Settings)
async def set_settings(call: Call, params: Settings) -> JsonObject:
    """Change settings; null removes one."""
    path = _path(call)
    changed = {**_read(path), **params.settings}
    kept = {name: value for name, value in changed.items() if value is not None}
    replace_file(path, msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    return {"shadowedKeys": []}


@methods.on("user.settings.reload")
async def reload(call: Call, params: Nothing) -> None:
    """Do nothing: every read reads the file."""


def _path(call: Call) -> str:
    return call.server.runtime.home.settings


def _read(path: str) -> JsonObject:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError:
        raise ConfigurationError(f"{path} is not a JSON object; correct it.") from None
