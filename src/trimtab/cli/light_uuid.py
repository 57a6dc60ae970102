"""Imports `uuid`, which msgspec needs, without `platform`.

Before Python 3.13, `uuid` imports `platform` on Linux to ask for the name of the system, and that
module takes two milliseconds to compile its patterns: a fortieth of a start.
"""

import sys
from types import ModuleType


def import_uuid() -> None:
    """Import `uuid` with a stand-in for `platform`; later imports of that get the real one."""
    if sys.platform != "linux" or "uuid" in sys.modules or "platform" in sys.modules:
        return
    stand_in = ModuleType("platform")
    stand_in.system = lambda: "Linux"  # type: ignore[attr-defined]
    sys.modules["platform"] = stand_in
    try:
        import uuid  # noqa: F401
    finally:
        del sys.modules["platform"]
