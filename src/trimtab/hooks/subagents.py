"""The hooks of an agent that works for another one: its start, and the gate it passes to stop."""

from collections.abc import Awaitable, Callable

from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Run
from trimtab.hooks.caller import HookCaller
from trimtab.hooks.processor import last_words, remark, tell_model

SENT_BACK = "A subagentStop hook sent you back to work."


def describe(agent: AgentDefinition, agent_id: str) -> JsonObject:
    return {
        "agentId": agent_id,
        "agentName": agent.name,
        "agentDisplayName": agent.display_name,
        "agentDescription": agent.description,
    }


async def tell_start(caller: HookCaller, run: Run, about: JsonObject) -> None:
    """Tells `subagentStart`, which may have something to say to the agent before its task."""
    output = await caller.call("subagentStart", **about)
    remark(run, output)
    tell_model(run, output)


def stop_hook(
    caller: HookCaller, transcript: str, about: JsonObject
) -> Callable[[Run, bool], Awaitable[str | None]]:
    """Asks `subagentStop`; a block's reason sends the agent back to work."""

    async def ask(run: Run, active: bool) -> str | None:
        output = await caller.call(
            "subagentStop",
            **about,
            transcriptPath=transcript,
            stopReason="end_turn",
            stop_hook_active=active,
            response=last_words(run),
        )
        remark(run, output)
        if output.get("decision") != "block":
            return None
        return str(output.get("reason") or SENT_BACK)

    return ask
