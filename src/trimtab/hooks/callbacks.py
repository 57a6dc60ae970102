"""Hooks as async Python functions, for programs that embed a session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import EVENTS, GUARDS, HookFailed
from trimtab.hooks.answers import combine

Callback = Callable[[JsonObject], Awaitable[JsonObject | None]]
"""Takes the input of an event, and returns the object that a hook program would print."""


class Callbacks:
    """The hooks of a client: `Client(hooks=Callbacks({"preToolUse": [first, second]}))`.

    The functions of an event are awaited in order, also after one has raised. If a guard raises,
    the answer is a denial.
    """

    wanted = True

    def __init__(self, callbacks: Mapping[str, Sequence[Callback]]) -> None:
        unknown = sorted(set(callbacks) - set(EVENTS))
        if unknown:
            raise ValueError(f"Unknown hook event {unknown[0]!r}; use one of {', '.join(EVENTS)}.")
        self._callbacks = callbacks

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        outputs: list[JsonObject] = []
        failures: list[str] = []
        for callback in self._callbacks.get(hook, ()):
            try:
                output = await callback(given)
            except Exception as error:  # other people's code may raise anything
                failures.append(f"{type(error).__name__}: {error}")
            else:
                outputs += [
                    {key: value for key, value in (output or {}).items() if value is not None}
                ]
        if failures and (hook in GUARDS or not any(outputs)):
            raise HookFailed("; ".join(failures))
        return combine(outputs) or None
