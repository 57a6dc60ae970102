"""What settings say where no flag, program or agent said it: model, effort, limits."""

from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import LimitOptions, SessionOptions, smallest_budget

if TYPE_CHECKING:
    from trimtab.config.settings import Settings


class LimitSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `limits`. `deadline` is in seconds."""

    max_tokens: int | None = None
    max_budget_usd: float | None = None
    max_ai_credits: float | None = None
    max_turns: int | None = None
    max_autopilot_continues: int | None = None
    max_repeats: int | None = None
    deadline: float | None = None


def apply_settings(options: SessionOptions, settings: "Settings") -> SessionOptions:
    """The same choices, completed. A flag wins over a setting, whatever the setting is."""
    values = settings.values
    if not values:
        return options
    changes: dict[str, Any] = {}
    model, effort = settings.get("model", str, ""), settings.get("effortLevel", str, "")
    if model and not options.model and options.provider is None:
        changes["model"] = model
    if effort and not options.effort:
        changes["effort"] = effort
    if "limits" in values:
        changes["limits"] = complete_limits(options.limits, values["limits"])
    if "sandbox" in values:
        from trimtab.agents.sandbox import read_settings

        changes["sandbox_settings"] = read_settings(values["sandbox"])
    return msgspec.structs.replace(options, **changes)


def complete_limits(limits: LimitOptions, value: Any) -> LimitOptions:
    try:
        set_ones = msgspec.convert(value, LimitSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `limits` is not valid: {error}; correct it."
        ) from None
    wanted = {
        "max_tokens": set_ones.max_tokens,
        "max_turns": set_ones.max_turns,
        "deadline": set_ones.deadline,
        "max_usd": smallest_budget(set_ones.max_budget_usd, set_ones.max_ai_credits),
        "max_continues": set_ones.max_autopilot_continues,
        "max_repeats": set_ones.max_repeats,
    }
    changes: dict[str, Any] = {
        name: number
        for name, number in wanted.items()
        if number is not None and getattr(limits, name) is None
    }
    return msgspec.structs.replace(limits, **changes)
