"""The modes and options of a session that a client can change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Mode
from trimtab.runtime.live import LiveSession
from trimtab.transports.acp.protocol import INVALID_PARAMS, AcpError

if TYPE_CHECKING:
    from trimtab.models.sources import Offer

MODES = (
    ("interactive", "Interactive", "Works on the task and asks before changes."),
    ("plan", "Plan", "Investigates and writes a plan; changes nothing."),
    ("autopilot", "Autopilot", "Works until the task is complete, without stopping to talk."),
)
NO_AGENT = "default"
NO_EFFORT = "default"


class Settings:
    """The modes and config options of one session, which show the same state."""

    def __init__(self, live: LiveSession, *, booleans: bool) -> None:
        self._live = live
        self._booleans = booleans
        self.offers: Sequence[Offer] = ()
        """The models that the configured services offer, once they have answered."""

    def describe_modes(self) -> JsonObject:
        return {
            "currentModeId": self._live.mode,
            "availableModes": [
                {"id": mode, "name": name, "description": description}
                for mode, name, description in MODES
            ],
        }

    def describe_options(self) -> list[JsonObject]:
        """Return all config options with their values."""
        live = self._live
        modes = [(mode, name, description) for mode, name, description in MODES]
        options = [select("mode", "Mode", "mode", live.mode, modes)]
        options.append(select("model", "Model", "model", live.model, self._models()))
        if efforts := self._efforts():
            current = live.controls.effort or NO_EFFORT
            values = [(NO_EFFORT, "Default", ""), *((level, level, "") for level in efforts)]
            name = "Reasoning effort"
            options.append(select("reasoning_effort", name, "thought_level", current, values))
        if agents := self._agents():
            current = live.controls.options.customize.agent or NO_AGENT
            values = [(NO_AGENT, "Default", ""), *agents]
            options.append(select("agent", "Agent", None, current, values))
        return [*options, self._describe_allow_all()]

    def _describe_allow_all(self) -> JsonObject:
        on = self._live.controls.options.permissions.allow_all_tools
        description = "Never ask for permission; rules that deny still hold."
        if self._booleans:
            return {
                "id": "allow_all",
                "name": "Allow all",
                "description": description,
                "type": "boolean",
                "currentValue": on,
            }
        values = [("off", "Off", "Ask before changes."), ("on", "On", description)]
        return select("allow_all", "Allow all", None, "on" if on else "off", values)

    def _models(self) -> list[tuple[str, str, str]]:
        current = self._live.model
        found = {
            offer.choice: (offer.choice, offer.name, offer.describe()) for offer in self.offers
        }
        found.setdefault(current, (current, current or "No model", ""))
        return list(found.values())

    def _efforts(self) -> Sequence[str]:
        if not self._live.controls.is_enabled("thinkingEffort.enabled"):
            return ()
        model = self._live.model
        for offer in self.offers:
            if model in (offer.choice, offer.choice.partition("/")[2]):
                return offer.efforts
        effort = self._live.controls.effort
        return (effort,) if effort else ()

    def _agents(self) -> list[tuple[str, str, str]]:
        custom = self._live.controls.setup.customizations
        if custom is None:
            return []
        return [
            (agent.name, agent.display_name or agent.name, agent.description)
            for agent in custom.agents.agents.values()
        ]

    async def change(self, option: str, value: str | bool) -> None:
        """Set a config option. Raises `AcpError` for an unknown option or value."""
        described = next(
            (known for known in self.describe_options() if known["id"] == option), None
        )
        if described is None:
            raise AcpError(INVALID_PARAMS, f"Unknown config option {option!r}.")
        check_value(described, value)
        try:
            await self._apply(option, value)
        except TrimtabError as error:
            raise AcpError(INVALID_PARAMS, error.message) from None

    async def _apply(self, option: str, value: str | bool) -> None:
        controls = self._live.controls
        match option:
            case "mode":
                self.set_mode(str(value))
            case "model" if value != self._live.model:
                await controls.switch_model(str(value))
            case "reasoning_effort":
                controls.set_effort(None if value == NO_EFFORT else str(value))
            case "agent":
                controls.set_agent(None if value == NO_AGENT else str(value))
            case "allow_all":
                on = value in (True, "on")
                permissions = msgspec.structs.replace(
                    controls.options.permissions,
                    allow_all_tools=on,
                    allow_all_paths=on,
                    allow_all_urls=on,
                )
                controls.set_permissions(permissions)

    def set_mode(self, mode: str) -> None:
        if mode not in {known for known, _, _ in MODES}:
            names = ", ".join(known for known, _, _ in MODES)
            raise AcpError(INVALID_PARAMS, f"Unknown mode {mode!r}; use one of {names}.")
        self._live.controls.set_mode(cast(Mode, mode))


def select(
    option: str,
    name: str,
    category: str | None,
    current: str,
    values: Sequence[tuple[str, str, str]],
) -> JsonObject:
    """Return an option with a list of values: value, name and description of each."""
    described: JsonObject = {
        "id": option,
        "name": name,
        "type": "select",
        "currentValue": current,
        "options": [
            {"value": value, "name": label, **({"description": text} if text else {})}
            for value, label, text in values
        ],
    }
    return described if category is None else {**described, "category": category}


def check_value(described: JsonObject, value: Any) -> None:
    """Raise `AcpError` if a value is not one of the option's."""
    option = described["id"]
    if described["type"] == "boolean":
        if not isinstance(value, bool):
            raise AcpError(INVALID_PARAMS, f"The option {option} is true or false, not {value!r}.")
        return
    known = [str(entry["value"]) for entry in described["options"]]
    if value not in known:
        raise AcpError(
            INVALID_PARAMS, f"{option} cannot be {value!r}; use one of {', '.join(known)}."
        )
