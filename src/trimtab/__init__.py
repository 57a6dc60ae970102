"""Trimtab: the open agent runtime.

Inside a coroutine:

    live = await trimtab.Runtime().create(trimtab.SessionOptions(cwd="."))
    stop = await live.ask("What does this repository do?")
    print(live.answer)
    await live.close()
"""

TYPE_CHECKING = False  # type checkers take it for typing's, which would cost 10 ms to import
if TYPE_CHECKING:
    from trimtab.contracts import errors as errors
    from trimtab.contracts.events.envelope import Event as Event
    from trimtab.contracts.options import SessionOptions as SessionOptions
    from trimtab.contracts.processor import Processor as Processor
    from trimtab.contracts.processor import Stop as Stop
    from trimtab.contracts.provider import Provider as Provider
    from trimtab.contracts.run import Prompt as Prompt
    from trimtab.contracts.tool import Tool as Tool
    from trimtab.runtime.live import LiveSession as LiveSession
    from trimtab.runtime.runtime import Runtime as Runtime
    from trimtab.tools.function import tool as tool
    from trimtab.version import __version__ as __version__

_PUBLIC = {
    "Event": "contracts.events.envelope",
    "LiveSession": "runtime.live",
    "Processor": "contracts.processor",
    "Prompt": "contracts.run",
    "Provider": "contracts.provider",
    "Runtime": "runtime.runtime",
    "SessionOptions": "contracts.options",
    "Stop": "contracts.processor",
    "Tool": "contracts.tool",
    "__version__": "version",
    "errors": "contracts.errors",
    "tool": "tools.function",
}
"""Public name → module. Nothing is imported before it is used."""

__all__ = [  # noqa: PLE0604 - the names are the keys of the table above
    *_PUBLIC
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
    loaded = import_module(f"trimtab.{module}")
    return loaded if name == "errors" else getattr(loaded, name)
