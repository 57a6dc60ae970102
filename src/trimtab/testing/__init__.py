"""The public test kit: a model that answers from a script, in process or over HTTP."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.providers.script import Script as Script
    from trimtab.providers.scripted import ScriptedProvider as ScriptedProvider
    from trimtab.testing.model_server import ModelServer as ModelServer
    from trimtab.testing.playing import Played as Played
    from trimtab.testing.playing import play as play
    from trimtab.testing.recording import recorded_script as recorded_script

_MODULES = {
    "ModelServer": "trimtab.testing.model_server",
    "Played": "trimtab.testing.playing",
    "play": "trimtab.testing.playing",
    "recorded_script": "trimtab.testing.recording",
    "Script": "trimtab.providers.script",
    "ScriptedProvider": "trimtab.providers.scripted",
}

__all__ = ["ModelServer", "Played", "Script", "ScriptedProvider", "play", "recorded_script"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
