"""`trimtab attach`: follows, prompts, steers, answers and stops a session hosted elsewhere."""

import asyncio
import os

from trimtab.cli.command_parser import Arguments, CommandParser
from trimtab.cli.event_loop import run_async
from trimtab.cli.opening import build_text
from trimtab.cli.streams import say
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.question import ExitPlanModeRequested, UserInputRequested
from trimtab.contracts.questions import PlanReady, Question
from trimtab.host.standard_input import read_stdin
from trimtab.session.store import SessionStore
from trimtab.transports.headless.output import open_outputs
from trimtab.transports.headless.questions import (
    describe_plan,
    describe_question,
    describe_request,
    name_answers,
    plan_choices,
    read_answer,
)
from trimtab.transports.rpc.visitor import Visitor

HELP = "Type a prompt; /stop ends the run, /quit leaves the session as it is."
MAX_LINE = 1 << 20


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="the session's id, the start of one, or its name")
    parser.add_json()


def run(args: Arguments) -> int:
    return run_async(_run(args))


async def _run(args: Arguments) -> int:
    store = SessionStore(find_home(os.environ))
    session_id = store.find(args.id)
    try:
        visitor = await Visitor.reach(session_id, store.folder(session_id).path)
    except OSError:
        raise UsageError(
            f"No process has the session {session_id} open; continue it with "
            f"`trimtab --resume {session_id}`."
        ) from None
    try:
        return await Attachment(visitor, as_json=args.json).run()
    finally:
        visitor.close()


class Attachment:
    """A person or program at a session that another process hosts."""

    def __init__(self, visitor: Visitor, *, as_json: bool) -> None:
        self._visitor = visitor
        self._answer, self._notes = open_outputs(1, 2)
        self._as_json = as_json
        self._face = build_text({}, self._answer, self._notes)
        self._questions: dict[str, PermissionRequested | UserInputRequested | ExitPlanModeRequested]
        self._questions = {}
        self._busy = False
        self._idle = asyncio.Event()
        visitor.on_event = self._on_event

    async def run(self) -> int:
        """Follow the session until it ends, the person leaves, or piped prompts are answered."""
        await self._visitor.join()
        reply = await self._visitor.call("trimtab.tasks.list")
        self._set_busy(reply["tasks"][0]["status"] == "running")
        for data in (await self._visitor.call("session.permissions.pendingRequests"))["items"]:
            request = data["request"]
            asked = PermissionRequested(request_id=data["requestId"], permission_request=request)
            self._ask(asked, describe_request(request))
        if os.isatty(0):
            say(HELP)
        gone = asyncio.ensure_future(self._visitor.gone.wait())
        reading = asyncio.ensure_future(self._read_lines())
        await asyncio.wait((gone, reading), return_when=asyncio.FIRST_COMPLETED)
        stays = not reading.done() or reading.result()
        if stays and not gone.done():
            await gone
        for task in (gone, reading):
            task.cancel()
        await self._answer.drain(5)
        await self._notes.drain(1)
        return 0

    async def _read_lines(self) -> bool:
        """Handle the lines of standard input; return True to go on following at their end."""
        reader = asyncio.StreamReader(limit=MAX_LINE)
        await read_stdin(asyncio.StreamReaderProtocol(reader))
        sent = False
        while line := await reader.readline():
            text = line.decode("utf-8", "replace").strip()
            if text == "/quit":
                return False
            try:
                sent = await self._handle(text) or sent
            except UsageError as error:
                say(error.message)
        if sent:
            await self._idle.wait()
        return not sent

    async def _handle(self, text: str) -> bool:
        """Answer a question, stop the run or send a prompt; return True if it starts work."""
        if not text:
            return False
        if text == "/stop":
            await self._visitor.call("session.abort")
            return False
        if self._questions:
            request_id, question = next(iter(self._questions.items()))
            del self._questions[request_id]
            await self._give_answer(request_id, question, text)
            return True
        mode = "immediate" if self._busy else "enqueue"
        self._set_busy(True)
        await self._visitor.call("session.send", prompt=text, mode=mode)
        return True

    async def _give_answer(
        self,
        request_id: str,
        question: PermissionRequested | UserInputRequested | ExitPlanModeRequested,
        text: str,
    ) -> None:
        match question:
            case PermissionRequested():
                given = read_answer(text, question.permission_request, None)
                if given is None:
                    self._questions[request_id] = question
                    known = name_answers(question.permission_request)
                    raise UsageError(f"Type {known}, or what to do instead.")
                verdict: JsonObject = {"kind": given.kind}
                if given.feedback:
                    verdict["feedback"] = given.feedback
                method = "session.permissions.handlePendingPermissionRequest"
                reply = await self._visitor.call(method, requestId=request_id, result=verdict)
            case UserInputRequested(choices=choices):
                chosen = _pick(choices or [], text)
                answer = {"answer": chosen or text, "wasFreeform": chosen is None}
                method = "session.ui.handlePendingUserInput"
                reply = await self._visitor.call(method, requestId=request_id, response=answer)
            case ExitPlanModeRequested():
                action = _pick(plan_choices(_plan(question)), text)
                verdict = {"approved": action is not None, "selectedAction": action}
                if action is None and not text.isdecimal():
                    verdict["feedback"] = text
                method = "session.ui.handlePendingExitPlanMode"
                reply = await self._visitor.call(method, requestId=request_id, response=verdict)
        if not reply.get("success"):
            say("Somebody else has answered.")

    def _on_event(self, event: Event, line: bytes) -> None:
        if self._as_json:
            self._answer.write(line.rstrip(b"\n") + b"\n")
        else:
            self._face.on_event(event, line)
        if event.agent_id is None and event.type in ("assistant.turn_start", "assistant.idle"):
            self._set_busy(event.type == "assistant.turn_start")
        match event.data:
            case PermissionRequested(permission_request=request) as asked:
                self._ask(asked, describe_request(request))
            case UserInputRequested(question=text, choices=choices) as asked:
                question = Question(text=text, choices=tuple(choices or ()))
                self._ask(asked, describe_question(question))
            case ExitPlanModeRequested(plan_content=content, summary=summary) as asked:
                self._ask(asked, describe_plan(_plan(asked), content or summary))
            case data:
                self._questions.pop(getattr(data, "request_id", ""), None)

    def _ask(
        self, asked: PermissionRequested | UserInputRequested | ExitPlanModeRequested, text: str
    ) -> None:
        self._questions[asked.request_id] = asked
        if not self._as_json:
            self._notes.write(text.encode("utf-8", "replace"))

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if busy:
            self._idle.clear()
        else:
            self._idle.set()


def _plan(asked: ExitPlanModeRequested) -> PlanReady:
    return PlanReady(
        summary=asked.summary,
        actions=tuple(asked.actions),
        recommended=asked.recommended_action,
    )


def _pick(choices: "list[str] | list[str | None]", text: str) -> str | None:
    """Return the choice with a number, or None."""
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return text if text in choices else None
