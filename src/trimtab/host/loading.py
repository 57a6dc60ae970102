"""Loads the runtime behind a front end, when its first session is opened."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession
    from trimtab.runtime.runtime import Runtime


class LoadRuntime(Protocol):
    """Returns the runtime for an environment; tests and embedding programs bring their own.

    `on_open` is called with each session that the runtime has opened.
    """

    def __call__(
        self, env: Mapping[str, str], on_open: "Callable[[LiveSession], None] | None" = None
    ) -> "Runtime": ...


def load_runtime(
    env: Mapping[str, str], on_open: "Callable[[LiveSession], None] | None" = None
) -> "Runtime":
    """Import the runtime, which takes most of a start, and return it."""
    from trimtab.runtime.runtime import Runtime

    return Runtime(env=env, on_open=on_open)
