"""The plain conversation in a terminal: lines in, answers out, without redrawing."""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trimtab.commands.session_copies import fork_session
from trimtab.commands.table import ALIASES, COMMANDS
from trimtab.config.paths import Home
from trimtab.contracts.cancellation import end_cancellation
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import (
    PlanReady,
    PlanVerdict,
    Question,
    Response,
    TrustAnswer,
    TrustQuestion,
)
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import count, neutralise
from trimtab.host.person_questions import present_question
from trimtab.host.plan_approval import present_plan
from trimtab.host.recorded_commands import read_command
from trimtab.host.requests import handle_request
from trimtab.host.resumed_schedules import restore_schedules
from trimtab.permissions.approvals import offer_rules
from trimtab.runtime.live import LiveSession
from trimtab.transports.headless.keyboard import Keyboard
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.own_shell import OwnShell, RunProgram, find_shell
from trimtab.transports.headless.past import tell_past
from trimtab.transports.headless.plain_commands import PLAIN, describe_sessions, find_session
from trimtab.transports.headless.questions import (
    describe_plan,
    describe_question,
    describe_request,
    describe_trust,
    may_edit_rules,
    name_answers,
    plan_choices,
    read_answer,
)
from trimtab.transports.headless.text import TextOutput
from trimtab.transports.headless.work_lines import WorkLines

MAX_DIGITS = 4
CLOSING = 4.0
"""Seconds that a session has to close."""
PROMPT, QUESTION = "> ", "? "
HINT = "Enter sends, Ctrl-C stops the agent, /help lists commands, Ctrl-D leaves."
_LIKE_AN_ANSWER = re.compile(r"(?:y|yes|n|no|s|a|e|o|once|\d{1,3})", re.IGNORECASE)
_MAX_SHOWN = 70


class Opening(msgspec.Struct, frozen=True):
    """Opens sessions: the one that the flags ask for, a new one, and an earlier one by its id."""

    wanted: Callable[[], Awaitable[LiveSession]]
    new: Callable[[], Awaitable[LiveSession]]
    resume: Callable[[str], Awaitable[LiveSession]]
    home: Home


QUEUED = ("compact", "queue")
"""Commands that go through the queue: Ctrl-C stops them, or they wake the session."""


class Dialog:
    """Prompts from a terminal, one after another, in one session.

    `prepare` turns text into a prompt; it may raise a `TrimtabError`. Text typed while the agent
    works is put into the session's queue. It never answers a question.
    """

    def __init__(
        self,
        face: TextOutput,
        screen: Output,
        prepare: Callable[[str], Prompt | str],
        run_program: RunProgram,
    ) -> None:
        self._face = face
        self._screen = screen
        self._prepare = prepare
        self._run_program = run_program
        self._keyboard = Keyboard(0, screen, tidy=face.tidy)
        self._keyboard.on_ahead = self._take_ahead
        face.before_output = self._keyboard.give_way
        self._work = WorkLines(self._say)
        self._own_shell = OwnShell(self._write, self._say)
        self._live: LiveSession | None = None
        self._later: deque[str] = deque()
        """Lines typed ahead that the dialog handles itself, and all lines after them."""
        self._suspected_answers: deque[str] = deque()
        """Lines typed ahead that look like an answer: sent only after the person confirms."""
        self._queued: set[str] = set()
        self._asking = asyncio.Lock()
        self._at_command = False
        self._leaving = False
        self._code = 0

    async def run(self, opening: Opening, first: str | None) -> int:
        """Talk until the person leaves; return the exit code."""
        main = asyncio.current_task()
        assert main is not None
        self._keyboard.start()
        self._watch_signals(main)
        try:
            self._live = await opening.wanted()
            self._take_up(self._live)
            self._say(HINT)
            await self._talk(opening, first)
        except asyncio.CancelledError:
            end_cancellation()
            self._say("")
        finally:
            await self._close()
        return self._code

    async def _close(self) -> None:
        self._leaving = True
        try:
            async with asyncio.timeout(CLOSING):
                if self._live is not None:
                    await self._live.close()
        except TimeoutError:
            pass  # processes that are left are killed with this one
        finally:
            self._keyboard.stop()

    def on_event(self, event: Event) -> None:
        """Show a queued prompt when the agent begins to answer it, and work that takes long."""
        self._work.on_event(event)
        if isinstance(event.data, UserMessage) and event.data.message_id in self._queued:
            self._queued.discard(str(event.data.message_id))
            self._say(f"{PROMPT}{neutralise(event.data.content)}")

    def _watch_signals(self, main: "asyncio.Task[object]") -> None:
        loop = asyncio.get_running_loop()

        def leave(number: signal.Signals) -> None:
            if self._leaving:
                self._keyboard.stop()
                os._exit(128 + number)
            self._leaving = True
            self._code = 128 + number
            main.cancel()

        def interrupt() -> None:
            if self._at_command:
                return  # the program was interrupted
            if self._own_shell.running:
                self._own_shell.interrupt()
            elif self._leaving:
                leave(signal.SIGINT)
            elif self._live is not None and self._live.busy:
                self._live.stop()
            elif self._keyboard.line:
                self._keyboard.clear()
            else:
                main.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, leave, number)

    def _suspend(self) -> None:
        """Stop the process as Ctrl-Z does, with the terminal as it was before; then go on."""
        self._keyboard.give_way()
        self._keyboard.stop()
        signal.raise_signal(signal.SIGSTOP)
        self._keyboard.start()

    async def _talk(self, opening: Opening, first: str | None) -> None:
        text = first
        while text is not None or (text := await self._next()) is not None:
            words = text.strip()
            if words in ("/exit", "/quit"):
                return
            if words in ("/clear", "/new"):
                await self._clear(opening)
            elif (name := find_name(words)) == "resume":
                await self._resume(opening, words)
            elif name == "fork" and not self._open.busy:
                await self._fork(opening, words)
            elif name in PLAIN:
                await self._answer(PLAIN[name](self._open, words.partition(" ")[2].strip()))
            elif self._runs_directly(name):
                await self._answer(self._open.run_command(words))
            elif (own := read_command(words)) is not None:
                await self._run_own(*own)
            elif words:
                await self._send(text)
            text = None

    @property
    def _open(self) -> LiveSession:
        assert self._live is not None
        return self._live

    def _runs_directly(self, name: str) -> bool:
        """Return True for a command that runs now; others go through the queue."""
        command = COMMANDS.get(name)
        queued = name in QUEUED or command is None or command.handler is None
        return not queued and not self._open.busy

    async def _answer(self, work: Awaitable[str | None]) -> None:
        """Say what a command answers, or why it cannot run."""
        try:
            answer = await work
        except TrimtabError as error:
            answer = f"Error: {error.message}"
        self._say(neutralise(answer or ""))
        live = self._open
        if live.busy:  # the command has sent a prompt
            await self._finish(live)

    async def _resume(self, opening: Opening, words: str) -> None:
        """Continue an earlier session, or list those there are."""
        old, wanted = self._open, words.partition(" ")[2].strip()
        if not wanted:
            self._say(describe_sessions(opening.home, old.id))
            return
        try:
            found = find_session(opening.home, old.controls.options.cwd, old.id, wanted)
            self._live = await opening.resume(found)
        except TrimtabError as error:
            self._say(error.message)
            return
        await old.close()
        self._take_up(self._live)
        name = neutralise(self._live.projections.title.text or self._live.id)
        self._say(f"This is {name} again. The other one is kept: trimtab --resume={old.id}")

    async def _fork(self, opening: Opening, words: str) -> None:
        """Go on in a copy of the session."""
        old = self._open
        try:
            copy = await fork_session(old, words.partition(" ")[2].strip() or None)
            self._live = await opening.resume(copy)
        except TrimtabError as error:
            self._say(error.message)
            return
        await old.close()
        self._say(f"This is a copy. The original is kept: trimtab --resume={old.id}")

    def _take_up(self, live: LiveSession) -> None:
        """Print what was said before, and go on with schedules, if the session is resumed."""
        if not live.controls.setup.resumed:
            return
        restore_schedules(live)
        past, told = tell_past(live, self._face.style)
        self._own_shell.resume(told)
        if past:
            self._say(f"{past}\n")

    async def _next(self) -> str | None:
        if self._later:
            self._say(f"{PROMPT}{neutralise(self._later[0])}")
            return self._later.popleft()
        if self._suspected_answers and not self._keyboard.line:
            self._keyboard.line = self._suspected_answers.popleft()
        return await self._keyboard.read(PROMPT)

    async def _send(self, text: str) -> None:
        live = self._live
        assert live is not None
        try:
            live.check_command(text)
            prompt = self._own_shell.attach(self._prepare(text))
        except TrimtabError as error:
            self._say(error.message)
            return
        handle_request(live, prompt, mode="enqueue")
        await self._finish(live)

    async def _finish(self, live: LiveSession) -> None:
        """Wait for the end of the run, and say why it ended if that is not known yet."""
        stop = await live.finished()
        if stop.reason == "aborted":
            self._say("Stopped.")
        elif stop.exit_code and not self._face.has_told(stop.message):
            self._say(stop.message)
        if live.inbox.pending and (unsent := live.inbox.hold()):
            self._say(f"{count(unsent, 'prompt')} not sent: see /queue, /queue send, /queue drop.")

    def _take_ahead(self, text: str | None) -> None:
        """Keep a line that was typed while the dialog was not reading."""
        words = "/exit" if text is None else text.strip()
        live = self._live
        if not words:
            return
        local = read_command(words) is not None or words in ("/exit", "/quit", "/clear", "/new")
        if _LIKE_AN_ANSWER.fullmatch(words):
            self._suspected_answers.append(words)
        elif local or self._later or live is None or not live.busy:
            self._later.append(text or words)
        else:
            self._queue(live, text or words)

    def _queue(self, live: LiveSession, text: str) -> None:
        try:
            live.check_command(text)
            prompt = self._own_shell.attach(self._prepare(text))
        except TrimtabError as error:
            self._say(error.message)
            return
        self._queued.add(handle_request(live, prompt, mode="enqueue").id)
        words = neutralise(" ".join(text.split()))
        shown = words if len(words) <= _MAX_SHOWN else f"{words[: _MAX_SHOWN - 1]}…"
        self._say(f"  queued: {shown}")

    async def _clear(self, opening: Opening) -> None:
        old = self._live
        assert old is not None
        try:
            self._live = await opening.new()
        except TrimtabError as error:
            self._say(error.message)
            return
        await old.close()
        self._say(f"This is a new session. The old one is kept: trimtab --resume={old.id}")

    async def _run_own(self, command: str, shared: bool) -> None:
        if command:
            await self._own_shell.run(self._open, command, shared=shared)
            return
        self._keyboard.stop()
        self._at_command = True
        try:
            await self._run_program(find_shell(), self._open)
        except OSError as error:
            self._say(f"The shell cannot be run: {error.strerror or error}.")
        finally:
            self._at_command = False
            self._keyboard.start()

    async def ask(self, request_id: str, request: JsonObject) -> Answer:
        """Ask for a permission; return the answer of the person, or of another client."""
        live = self._live
        if live is None:
            return await self._ask_permission(request)
        asked = PermissionRequested(request_id=request_id, permission_request=request)
        here = _Answered(lambda: self._ask_permission(request))
        answer: Answer = await live.questions.first_answer(asked, here)
        self._tell_unless(here)
        return answer

    async def _ask_permission(self, request: JsonObject) -> Answer:
        question, approval = describe_request(request, edits=True), None
        while True:
            reply = await self._ask_line(question) or "n"
            if reply.lower() == "e" and may_edit_rules(request):
                try:
                    request, approval = await self._edit_rules(request)
                    question = describe_request(request, edits=True)
                except UsageError as error:
                    question = f"{error.message}\n"
            elif (answer := read_answer(reply, request, approval)) is not None:
                return answer
            else:
                question = f"Type {name_answers(request, edits=True)}, or what to do instead.\n"

    async def _edit_rules(self, request: JsonObject) -> tuple[JsonObject, JsonObject]:
        named = ", ".join(str(rule) for rule in request["suggestedRules"])
        text = await self._ask_line("Change the rule, then press Enter.\n", "rule: ", named)
        return offer_rules(request, text or named)

    async def ask_trust(self, question: TrustQuestion) -> TrustAnswer:
        """Ask whether the session's folder may configure the agent."""
        reply = (await self._ask_line(describe_trust(question)) or "n").lower()
        if reply in ("1", "y", "yes"):
            return "always"
        return "once" if reply in ("2", "o", "once") else "no"

    async def ask_person(self, question: "Question") -> "Response | None":
        """Put a question of the agent; return None for Ctrl-D."""
        assert self._live is not None
        here = _Answered(lambda: self._ask_choice(question))
        response = await present_question(self._live, question, here)
        self._tell_unless(here)
        return response

    async def _ask_choice(self, question: "Question") -> "Response | None":
        while (reply := await self._ask_line(describe_question(question))) is not None:
            if (number := _read_number(reply, len(question.choices))) is not None:
                return Response(text=question.choices[number], freeform=False)
            if question.allow_freeform or not question.choices:
                return Response(text=reply, freeform=reply not in question.choices)
        return None

    async def ask_approval(self, plan: "PlanReady") -> "PlanVerdict":
        """Show a finished plan: the person accepts it, refuses it or says what to change."""

        async def choose(content: str) -> PlanVerdict:
            choices = plan_choices(plan)
            reply = await self._ask_line(describe_plan(plan, content))
            if reply is None:
                return PlanVerdict(approved=False)
            if (number := _read_number(reply, len(choices))) is None:
                return PlanVerdict(approved=False, feedback=reply)
            action = choices[number]
            return PlanVerdict(approved=action is not None, action=action)

        assert self._live is not None
        here = _Answered(choose)
        verdict = await present_plan(self._live, plan, here)
        self._tell_unless(here)
        return verdict

    def _tell_unless(self, here: "_Answered") -> None:
        if not here.answered:
            self._say("Another client has answered.")

    async def _ask_line(self, question: str, mark: str = QUESTION, text: str = "") -> str | None:
        """Ask one question at a time; return the line typed after it is shown, stripped.

        `text` is there already, to be changed.
        """
        async with self._asking:
            reply = await self._keyboard.answer(f"\n{question}", mark, text)
            return None if reply is None else reply.strip()

    def _write(self, text: str) -> None:
        """Write the output of a command as it arrives."""
        self._keyboard.give_way()
        self._face.tidy()
        self._screen.write(text.encode("utf-8", "replace"))

    def _say(self, text: str) -> None:
        self._keyboard.give_way()
        progress = self._face.tidy()
        self._screen.write(f"{text}\n".encode("utf-8", "replace"))
        self._face.show_progress(progress)


class _Answered:
    """Asks the person at this terminal; `answered` is True once they have answered."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        self._ask = ask
        self.answered = False

    async def __call__(self, *args: str) -> Any:
        answer = await self._ask(*args)
        self.answered = True
        return answer


def _read_number(text: str, most: int) -> int | None:
    """Return the index of the choice with this number; None if there is no such choice."""
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        return None
    return int(text) - 1 if 1 <= int(text) <= most else None


def find_name(words: str) -> str:
    """Return the name of the command that a line begins with; empty if it is none."""
    match = re.match(r"/([a-z-]+)(?=\s|$)", words)
    return ALIASES.get(match[1], match[1]) if match else ""
