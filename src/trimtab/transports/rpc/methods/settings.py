"""Reads and changes the settings of the person."""

from typing import Any

import msgspec

from trimtab.config.edit import change_field, read_object
from trimtab.config.settings import known_settings
from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Settings(msgspec.Struct):
    settings: dict[str, Any]


@methods.on("user.settings.get")
async def get_settings(call: Call, params: Nothing) -> JsonObject:
    """Return every known setting, and what the person's file contains besides them.

    A default is not known here: the parts that read a setting have it.
    """
    given = read_object(_path(call))
    anywhere, own = known_settings()
    names = sorted({name.partition(".")[0] for name in (*anywhere, *own)} | given.keys())
    return {
        "settings": {
            name: {"value": given.get(name), "default": None, "isDefault": name not in given}
            for name in names
        }
    }


@methods.on("user.settings.set", Settings)
async def set_settings(call: Call, params: Settings) -> JsonObject:
    """Change settings, and leave comments and the rest of the file as they are; null removes."""
    for name, value in params.settings.items():
        change_field(_path(call), name, value)
    return {"shadowedKeys": []}


@methods.on("user.settings.reload")
async def reload(call: Call, params: Nothing) -> None:
    """Do nothing: every read reads the file."""


def _path(call: Call) -> str:
    return call.server.runtime.home.settings
