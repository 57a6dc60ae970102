"""The `exit_plan_mode` tool: presents a plan, and lets the person decide how to continue."""

from collections.abc import Collection, Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.questions import AskApproval, PlanReady, PlanVerdict
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe

ACTIONS = ("interactive", "autopilot", "exit_only", "autopilot_fleet")
DEFAULT_ACTIONS = ("autopilot", "interactive", "exit_only", "autopilot_fleet")
FLEET = (
    " Do independent parts of it at once: start an agent for each with task in mode background, "
    "and put the results together."
)


BY_FLEET = (
    "A fleet of agents carries the plan out. You are asked for its todos next: end your turn now."
)


async def refuse(_: PlanReady) -> PlanVerdict:
    return PlanVerdict(approved=False, feedback="Nobody can approve a plan here.")


class ExitPlanMode:
    spec = ToolSpec(
        name="exit_plan_mode",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "summary": {"type": "string", "description": "The plan in short, as Markdown"},
                "actions": {
                    "type": "array",
                    "items": {"type": "string", "enum": list(ACTIONS)},
                    "description": "Ways to go on that make sense",
                },
                "recommendedAction": {"type": "string", "enum": list(ACTIONS)},
            },
            "required": ["summary"],
        },
    )

    def __init__(self, ask: AskApproval = refuse, refused: Collection[str] = ()) -> None:
        """`refused` names the actions that cannot be chosen here."""
        self._ask = ask
        self._refused = refused

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        wanted = args.get("actions") or DEFAULT_ACTIONS
        possible = [action for action in wanted if action not in self._refused]
        actions = tuple(possible) or ("interactive", "exit_only")
        recommended = args.get("recommendedAction")
        plan = PlanReady(
            summary=args["summary"],
            actions=actions,
            recommended=recommended if recommended in actions else actions[0],
            call_id=ctx.call_id,
        )
        verdict = await self._ask(plan)
        note = f" The user said: {verdict.feedback}" if verdict.feedback else ""
        if not verdict.approved:
            return ToolResult(text=f"The plan was not approved; stay in plan mode.{note}")
        action = verdict.action or plan.recommended
        if action == "exit_only":
            return ToolResult(text=f"Plan approved! Exited plan mode.\n\nStop here.{note}")
        if verdict.by_fleet:
            return ToolResult(text=f"Plan approved! Exited plan mode.\n\n{BY_FLEET}{note}")
        mode = "autopilot" if action.startswith("autopilot") else "interactive"
        fleet = FLEET if action == "autopilot_fleet" else ""
        if verdict.edited_plan is not None:
            note += (
                f" The user edited the plan; this is the one to carry out:\n\n{verdict.edited_plan}"
            )
        return ToolResult(
            text="Plan approved! Exited plan mode.\n\n"
            f"You are now in {mode} mode. Carry the plan out now.{fleet}{note}"
        )


TOOL = ExitPlanMode()
