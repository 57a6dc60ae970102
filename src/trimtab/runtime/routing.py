"""Which model answers a prompt, where settings make that depend on the mode.

It is decided when the first request of the prompt is prepared: hooks have seen the prompt by then,
and may have withdrawn it.
"""

from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Run

if TYPE_CHECKING:
    from trimtab.runtime.controls import Controls
    from trimtab.runtime.place import Place


class _Usual(msgspec.Struct, frozen=True):
    """What a run used before it was routed."""

    model: str
    effort: str | None
    provider: Provider


class ModelRouting(Processor):
    """Uses one model to plan and another for everything else: the setting `planModel`.

    Whoever chooses a model meanwhile, by a command or a client, keeps it.
    """

    def __init__(self, model: str, effort: str | None) -> None:
        self._model = model
        self._effort = effort
        self._usual: _Usual | None = None
        self._planner = ""
        self.controls: Controls | None = None
        """What can change the model; it is made after the processors are."""

    async def before_request(self, run: Run) -> Stop | None:
        if run.turn or self.controls is None or (run.mode == "plan") == bool(self._usual):
            return None
        if run.mode == "plan":
            options = run.options
            self._usual = _Usual(options.model, options.effort, run.provider)
            self._planner = await self.controls.switch_model(self._model, effort=self._effort)
            return None
        usual, self._usual = self._usual, None
        if usual is not None and run.options.model == self._planner:
            run.options = msgspec.structs.replace(run.options, effort=usual.effort)
            self.controls.set_model(usual.model, effort=usual.effort, provider=usual.provider)
        return None


def build_routing(place: "Place") -> list[ModelRouting]:
    """Only where a person chose a model for planning."""
    custom = place.customizations
    if custom is None or not custom.has_settings:
        return []
    model = custom.settings.get("planModel", str, "")
    effort = custom.settings.get("planEffortLevel", str, "") or None
    return [ModelRouting(model, effort)] if model else []
