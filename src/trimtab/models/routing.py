"""Switches to the model configured for planning (`planModel`) in plan mode, and back.

The switch happens when the first request of a prompt is prepared: by then hooks have seen the
prompt, and may have dropped it.
"""

from collections.abc import Callable
from typing import Protocol

from trimtab.config.settings import Settings
from trimtab.contracts.agent import ModelSettings
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Run


class ModelSwitch(Protocol):
    """Changes the model of a session."""

    async def switch_model(self, model: str, *, effort: str | None = None) -> str: ...

    def set_model(
        self, model: str, *, effort: str | None = None, provider: Provider | None = None
    ) -> None: ...

    def set_effort(self, effort: str | None) -> None: ...


class ModelRouting(Processor):
    """Uses one model in plan mode and another otherwise.

    A model that a command or a client chooses in the meantime is kept.
    """

    def __init__(self, model: str, effort: str | None, controls: Callable[[], ModelSwitch]) -> None:
        self._model = model
        self._effort = effort
        self._usual: ModelSettings | None = None
        self._planner = ""
        self._controls = controls

    async def before_request(self, run: Run) -> Stop | None:
        if run.turn or (run.agent.mode == "plan") == (self._usual is not None):
            return None
        controls = self._controls()
        if run.agent.mode == "plan":
            self._usual = run.agent.model
            self._planner = await controls.switch_model(self._model, effort=self._effort)
            return None
        usual, self._usual = self._usual, None
        if usual is not None and run.agent.model.name == self._planner:
            controls.set_effort(usual.effort)
            controls.set_model(usual.name, effort=usual.effort, provider=usual.provider)
        return None


def build_routing(settings: Settings, controls: Callable[[], ModelSwitch]) -> ModelRouting | None:
    """Build the routing if a model for planning is configured."""
    model = settings.get("planModel", str, "")
    effort = settings.get("planEffortLevel", str, "") or None
    return ModelRouting(model, effort, controls) if model else None
