"""The `exit_plan_mode` tool: presents a plan, and lets the person decide how to continue."""

from collections.abc import Collection, Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.questions import AskApproval, PlanReady, PlanVerdict
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe

ACTIONS = ("exit_only", "interactive", "autopilot", "autopilot_fleet")
DEFAULT_ACTIONS = ("autopilot", "interactive", "exit_only")
FLEET_ACTION = "autopilot_fleet"
FLEET = (
    " Do independent parts of it at once: start an agent for each with task in mode background, "
    "and put the results together."
)


BY_FLEET = (
    "A fleet of agents carries the plan out. You are asked for its todos next: end your turn now."
)


def list_wanted(args: Args) -> Sequence[str]:
    """Return the actions to offer. Models that know an older form of the tool list them."""
    if listed := [action for action in args.get("actions") or () if action in ACTIONS]:
        return listed
    if args.get("showFleet") or args.get("recommendedAction") == FLEET_ACTION:
        first, *others = DEFAULT_ACTIONS
        return (first, FLEET_ACTION, *others)
    return DEFAULT_ACTIONS


def refuse_plan(feedback: str | None) -> ToolResult:
    """Return a rejection, which ends the turn, unless the user says what to change."""
    if not feedback:
        return ToolResult(text="The user did not approve the plan.", kind="rejected")
    return ToolResult(
        text=f"Plan not approved. User feedback:\n\n{feedback}\n\nChange the plan and present it "
        "again."
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
                "showFleet": {
                    "type": "boolean",
                    "description": "Also offer a fleet: the plan has parts that agents can do at "
                    "the same time",
                },
                "recommendedAction": {
                    "type": "string",
                    "enum": list(ACTIONS),
                    "description": "The way to go on that is shown first",
                },
            },
            "required": ["summary"],
            "additionalProperties": True,  # keeps `actions` of models that know an older form
        },
    )

    def __init__(self, ask: AskApproval = refuse, refused: Collection[str] = ()) -> None:
        """`refused` names the actions that cannot be chosen here."""
        self._ask = ask
        self._refused = refused

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        recommended = args.get("recommendedAction")
        possible = [action for action in list_wanted(args) if action not in self._refused]
        actions = tuple(possible) or ("interactive", "exit_only")
        plan = PlanReady(
            summary=args["summary"],
            actions=actions,
            recommended=recommended if recommended in actions else actions[0],
            call_id=ctx.call_id,
        )
        verdict = await self._ask(plan)
        if not verdict.approved:
            return refuse_plan(verdict.feedback)
        note = f" The user said: {verdict.feedback}" if verdict.feedback else ""
        action = verdict.action or "interactive"
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
