"""Hooks written in Python: lists of async functions by event, for programs that embed a session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.hooks import EVENTS, GUARDS, HookFailed
from trimtab.hooks.answers import combine

Callback = Callable[[JsonObject], Awaitable[JsonObject | None]]
"""Given the input of an event; what it returns is what a hook's program would print."""


class Callbacks:
    """Give it as `Client(hooks=Callbacks({"preToolUse": [first, second]}))`.

    The functions of an event are awaited in order. One that raises does not keep the others from
    being asked; of a guard it makes the answer a refusal.
    """

    wanted = True

    def __init__(self, callbacks: Mapping[str, Sequence[Callback]]) -> None:
        unknown = sorted(set(callbacks) - set(EVENTS))
        if unknown:
            raise ValueError(f"No hook is called at {unknown[0]!r}; name one of {EVENTS}.")
        self._callbacks = callbacks

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        outputs: list[JsonObject] = []
        failures: list[str] = []
        for callback in self._callbacks.get(hook, ()):
            try:
                output = await callback(given)
            except Exception as error:  # other people's code, like a hook's program
                failures.append(f"{type(error).__name__}: {error}")
            else:
                outputs += [
                    {key: value for key, value in (output or {}).items() if value is not None}
                ]
        if failures and (hook in GUARDS or not any(outputs)):
            raise HookFailed("; ".join(failures))
        return combine(outputs) or None
