"""The usage of a session: tokens, money and time spent, by model."""

from typing import ClassVar

import msgspec

from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.own import ModelCall, RuntimeEnded
from trimtab.contracts.events.subagent import SubagentStarted


class ModelUsage(msgspec.Struct):
    """Sums for one model. A sum is None until a service has reported that number at least once."""

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    unpriced_requests: int = 0
    premium_requests: float = 0
    duration_ms: int = 0

    def add(self, call: ModelCall) -> None:
        self.requests += 1
        self.premium_requests += call.premium_requests or 0
        self.duration_ms += call.duration_ms or 0
        for field in _COUNTS:
            value = getattr(call, field)
            if value is not None:
                setattr(self, field, (getattr(self, field) or 0) + value)
        if call.cost_usd is None:
            self.unpriced_requests += 1
        else:
            self.cost_usd = (self.cost_usd or 0.0) + call.cost_usd
            self.unpriced_requests = max(0, self.unpriced_requests - (call.settles or 0))


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


SIDE_PURPOSES = frozenset(("compaction", "title", "branch", "commit", "pull_request"))
"""Purposes of calls that are not part of an agent's conversation."""


def name_caller(purpose: str, agent: str | None) -> str:
    """Return the name under which calls outside a conversation are counted."""
    return purpose if agent is None else f"{purpose}:{agent}"


class UsageLedger:
    """Everything spent so far, including sub-agents, retries and compaction."""

    reads: ClassVar[frozenset[str]] = frozenset(
        ("trimtab.model_call", "trimtab.runtime_ended", "subagent.started")
    )

    def __init__(self) -> None:
        self.total = ModelUsage()
        self.models: dict[str, ModelUsage] = {}
        self.unsettled = (0, 0.0)
        """Estimated tokens and USD of calls that were broken off; limits count them."""
        self.dearest = (0, 0.0)
        """Tokens of the largest call, and the price of the dearest call in USD."""
        self.premium_requests: float = 0
        """Premium requests of this session's calls, and those that a runtime told of."""
        self.api_duration_ms = 0
        self.last_model: str | None = None
        self.last_input_tokens: int | None = None
        self.last_output_tokens: int | None = None
        self.agents: dict[str, ModelUsage] = {}
        """Usage by sub-agent."""
        self._agent_models: dict[str, dict[str, ModelUsage]] = {}
        self._agent_names: dict[str, tuple[str, str]] = {}
        self.calls: dict[str | None, int] = {}
        """Number of calls by agent; calls outside a conversation by purpose."""

    def metrics(self) -> JsonObject:
        """Return requests and tokens by model, as the protocol reports them."""
        return _describe_models(self.models)

    def agent_metrics(self) -> JsonObject:
        """Return time, requests and tokens by sub-agent, as the protocol reports them."""
        metrics: JsonObject = {}
        for agent, usage in self.agents.items():
            metrics[agent] = {
                "modelMetrics": _describe_models(self._agent_models[agent]),
                "totalApiDurationMs": usage.duration_ms,
                "totalNanoAiu": 0,
            }
            if names := self._agent_names.get(agent):
                metrics[agent] |= {"agentName": names[0], "agentDisplayName": names[1]}
        return metrics

    def apply(self, event: Event) -> None:
        call = event.data
        if isinstance(call, RuntimeEnded):
            self.premium_requests += call.premium_requests or 0
        elif isinstance(call, SubagentStarted) and event.agent_id is not None:
            self._agent_names[event.agent_id] = (call.agent_name, call.agent_display_name)
        if not isinstance(call, ModelCall):
            return
        self.total.add(call)
        self.premium_requests += call.premium_requests or 0
        tokens = (call.input_tokens or 0) + (call.output_tokens or 0)
        if call.estimated_tokens is not None:
            before = self.unsettled
            usd = call.estimated_cost_usd or 0.0
            self.unsettled = (before[0] + call.estimated_tokens, before[1] + usd)
        self.dearest = (max(tokens, self.dearest[0]), max(call.cost_usd or 0.0, self.dearest[1]))
        self.models.setdefault(call.model, ModelUsage()).add(call)
        is_side_call, agent = call.purpose in SIDE_PURPOSES, event.agent_id
        if agent is not None:
            self.agents.setdefault(agent, ModelUsage()).add(call)
            models = self._agent_models.setdefault(agent, {})
            models.setdefault(call.model, ModelUsage()).add(call)
        caller = name_caller(call.purpose, agent) if is_side_call else agent
        self.calls[caller] = self.calls.get(caller, 0) + 1
        self.api_duration_ms += call.duration_ms or 0
        if is_side_call or agent is not None:
            return
        self.last_model = call.model
        if call.input_tokens is not None:
            self.last_input_tokens = call.input_tokens
            self.last_output_tokens = call.output_tokens


def _describe_models(models: dict[str, ModelUsage]) -> JsonObject:
    return {
        model: {
            "requests": {"count": usage.requests, "cost": usage.premium_requests},
            "usage": {
                "inputTokens": usage.input_tokens or 0,
                "outputTokens": usage.output_tokens or 0,
                "cacheReadTokens": usage.cache_read_tokens or 0,
                "cacheWriteTokens": usage.cache_write_tokens or 0,
            },
        }
        for model, usage in models.items()
    }
