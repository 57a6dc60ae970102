"""The `ask_user` tool: asks the person a question."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.questions import AskPerson, Question, Response
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


async def ask_nobody(_: Question) -> Response | None:
    return None


class AskUser:
    spec = ToolSpec(
        name="ask_user",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "The question"},
                "choices": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Answers to choose from",
                },
                "allow_freeform": {
                    "type": "boolean",
                    "description": "Allow another answer; default true",
                },
            },
            "required": ["question"],
        },
    )

    def __init__(self, ask: AskPerson = ask_nobody) -> None:
        self._ask = ask

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        question = Question(
            text=args["question"],
            choices=tuple(args.get("choices") or ()),
            allow_freeform=args.get("allow_freeform", True),
            call_id=ctx.call_id,
        )
        response = await self._ask(question)
        if response is None:
            text = "The user cannot be asked. Decide yourself and say what you assumed."
            return ToolResult(text=text, kind="failure")
        verb = "responded" if response.freeform else "selected"
        return ToolResult(text=f"User {verb}: {response.text}")


TOOL = AskUser()
