"""The conversation in a terminal: hosts the session, takes its events, paints frames."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from prompt_toolkit.application import Application
from prompt_toolkit.input.vt100 import Vt100Input

from trimtab.config.paths import Home
from trimtab.contracts.errors import AuthenticationError, TrimtabError
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.session import SessionIdle
from trimtab.contracts.options import Client
from trimtab.contracts.questions import TrustAnswer, TrustQuestion
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import count
from trimtab.host.hosted import HostedSession
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Part, Question
from trimtab.host.resumed_schedules import restore_schedules
from trimtab.runtime.live import LiveSession
from trimtab.transports.tui.actions import Actions
from trimtab.transports.tui.asking import Asking
from trimtab.transports.tui.cells import Line
from trimtab.transports.tui.completion import Completer
from trimtab.transports.tui.editor import Editor
from trimtab.transports.tui.files import FileIndex
from trimtab.transports.tui.history import History
from trimtab.transports.tui.keyboard import build_application
from trimtab.transports.tui.local_client import CAPABILITIES, SILENT, LocalClient
from trimtab.transports.tui.local_commands import list_commands
from trimtab.transports.tui.own_shell import OwnShell
from trimtab.transports.tui.painter import Painter
from trimtab.transports.tui.panels import Panel
from trimtab.transports.tui.questions import build_question, build_trust
from trimtab.transports.tui.scene import build_scene, write_long_question
from trimtab.transports.tui.screen import Screen
from trimtab.transports.tui.status import StatusLine, choose_tip, describe_start
from trimtab.transports.tui.theme import Theme, encode, without_diff_colours, without_links
from trimtab.transports.tui.transcript import Transcript, new_stream
from trimtab.transports.tui.view import lay_out

if TYPE_CHECKING:
    from trimtab.host.model_list import ModelList
    from trimtab.mcp.session_servers import SessionServers

FRAME = 1 / 30
"""Seconds between frames, at least."""
CLOSING = 4.0
"""Seconds that a session has to close."""
LONG_WORK = 10.0
"""Seconds of work after which its end rings the bell."""
REMARK_SECONDS = 2.0


class Opening(msgspec.Struct, frozen=True):
    """Opens sessions: the one the flags ask for, a new one, and an earlier one by its id."""

    wanted: Callable[[Client], Awaitable[LiveSession]]
    new: Callable[[Client], Awaitable[LiveSession]]
    resume: Callable[[Client, str], Awaitable[LiveSession]]
    isolated: Callable[[Client, str], Awaitable[LiveSession]]
    """Opens a new session in a git worktree of this name; an empty name lets us choose."""
    try_model: Callable[[str], Awaitable[None]]
    """Calls a model once and uses it from then on. Raises a `TrimtabError` if it fails."""
    choose_first: bool = False
    """True if the person chooses the first session among the earlier ones."""


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the interface."""

    theme: Theme
    vi: bool = False
    enter_queues: bool = False
    notify: str = "bell"
    status_command: str = ""
    may_ask: bool = True
    title: bool = True
    plain_diff: bool = False
    """True shows diffs without colours."""
    links: bool = True
    """True makes addresses and paths links of the terminal."""
    problems: tuple[str, ...] = ()
    """Settings that are not used, and why."""

    def adapt(self, theme: Theme) -> Theme:
        """Return a theme without the colours of diffs, or without links, as the person wants."""
        theme = without_diff_colours(theme) if self.plain_diff else theme
        return theme if self.links else without_links(theme)


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    """The device and what the program was given."""

    screen: Screen
    input: Vt100Input
    env: Mapping[str, str]
    home: Home
    cwd: str
    mask: Callable[[str], str]
    """Hides the secrets in a text."""


class Tui:
    """One conversation after another in one terminal.

    `prepare` turns text, the paths of images and the folder that names refer to into a prompt; it
    may raise a `TrimtabError`.
    """

    def __init__(
        self,
        terminal: Terminal,
        opening: Opening,
        preferences: Preferences,
        prepare: Callable[[str, Sequence[str], str], Prompt | str],
        log: Callable[[Event, bytes], None],
    ) -> None:
        self.terminal = terminal
        self.screen = terminal.screen
        self.opening = opening
        self.preferences = preferences
        self.prepare = prepare
        self._log = log
        self._first: str | None = None
        self.painter = Painter(preferences.adapt(preferences.theme))
        self.transcript = Transcript()
        self.history = History(
            os.path.join(terminal.home.state, "prompt-history.jsonl"), terminal.cwd, terminal.mask
        )
        self.files = FileIndex(terminal.cwd)
        self.editor = Editor(self.history, self._on_edit)
        self.completer = Completer(lambda: list_commands(self), self.files)
        self.asking = Asking(lambda text: self.transcript.say(f"  {text}", "dim"))
        self.panel: Panel | None = None
        self._models: ModelList | None = None
        self.status = StatusLine(self)
        self.hosted: HostedSession | None = None
        self.live: LiveSession | None = None
        self._fold = PartFold()
        self.focused = True
        self.paused = False
        """True while another program has the terminal."""
        self.remark = ""
        self.unsent: list[tuple[str, str, list[str]]] = []
        """Prompts that were sent before the session was open, with how they go in."""
        self.own_output: list[str] = []
        """Commands of the person and their output, for the model to read with the next prompt."""
        self._remark_timer: asyncio.TimerHandle | None = None
        self._completing: asyncio.Task[None] | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._last_frame = 0.0
        self.working_since: float | None = None
        """When the agent began to work; None while it is idle."""
        self.tokens_before = 0
        """The tokens that the session had used by then."""
        self._questions_seen: set[str] = set()
        self._title = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.own_shell = OwnShell(self)
        self.actions = Actions(self)
        self.app: Application[int] = build_application(
            self.editor.buffer, self.actions, terminal.input, vi=preferences.vi
        )
        self._connect()
        for problem in preferences.problems:
            self.transcript.say(f"! {problem}", "warning")

    def _connect(self) -> None:
        """Let the parts call what reacts to them."""
        self.screen.drained = self.request_frame
        self.asking.on_edit = self.actions.edit_plan
        self.asking.on_words_end = self.actions.end_words
        self.asking.on_explain = self.actions.explain
        self.files.on_ready = self._on_edit

    async def run(self, first: str | None) -> int:
        """Talk until the person leaves; return the exit code."""
        self._watch_signals()
        self.screen.begin()
        self._first = first
        self.spawn(self.open_first())
        try:
            code = await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self._stop_painting()
            await self._close()
        return code

    async def open_first(self) -> None:
        """Open the session that the flags ask for, and send what was typed before it was open."""
        if self.opening.choose_first and self.live is None:
            from trimtab.transports.tui.session_panels import sessions_panel

            self.panel = sessions_panel(self)
            self.panel.on_close = lambda: self.leave(0)
            self.request_frame()
            return
        await self.open(self.opening.wanted)
        if self.live is None:
            return
        self.files.start()
        self.spawn(asyncio.to_thread(new_stream))  # load the Markdown library behind the prompt
        if self._first is not None:
            self.actions.send(self._first)
        for text, mode, images in self.unsent:
            self.actions.send(text, mode, images)
        self.unsent = []

    async def open(
        self, opener: Callable[[Client], Awaitable[LiveSession]], *, past: bool = True
    ) -> bool:
        """Open a session in place of the present one; say why if it fails.

        `past` is False if its past is on the screen already.
        """
        hosted = HostedSession("", lambda _: None)
        hosted.join(
            LocalClient(self._on_event), CAPABILITIES if self.preferences.may_ask else SILENT
        )
        client = hosted.as_client(always_ask=False, attended=True, ask_trust=self._ask_trust)
        if not self.preferences.may_ask:
            client = msgspec.structs.replace(
                client, ask=None, ask_person=None, ask_approval=None, ask_trust=None
            )
        old, fold = self.live, self._fold
        self._fold = PartFold()
        try:
            live = await opener(client)
        except AuthenticationError as error:
            self._fold = fold
            if old is None and self.preferences.may_ask:
                from trimtab.transports.tui.first_model import offer_models

                await offer_models(self, error.message)
                return False
            return self._fail(error, old)
        except TrimtabError as error:
            self._fold = fold
            return self._fail(error, old)
        if old is not None:
            await self._end_session(old)
        branch = await self.status.mark_branch(live)
        hosted.id = live.id
        hosted.attach(live)
        self.hosted, self.live = hosted, live
        restore_schedules(live)
        self.transcript.model, self.transcript.mode = live.model, live.mode
        self.follow_folder()
        if live.controls.setup.resumed and past:
            self._show_past(live)
        self.status.refresh()
        home = self.terminal.env.get("HOME", "")
        tip = choose_tip(self.terminal.home.session_state)
        columns, _ = self.screen.size
        self.transcript.add_lines(describe_start(live, home, branch, tip, columns))
        self.request_frame()
        return True

    def _fail(self, error: TrimtabError, old: LiveSession | None) -> bool:
        """Say why a session could not be opened; leave if there is no other."""
        self.transcript.say(error.message, "error")
        self.request_frame()
        if old is None:
            self.leave(error.exit_code)
        return False

    def _show_past(self, live: LiveSession) -> None:
        """Write the past of a resumed session as it was shown, by the same fold."""
        from trimtab.transports.tui.past import replay

        past = replay(live, *self.screen.size)
        if past.cut:
            shown = f"{len(past.lines):,}"
            self.transcript.say(
                f"The last {shown} lines; all of it: trimtab sessions show {live.id}", "dim"
            )
        self.transcript.add_lines(past.lines)
        self.transcript.waiting.update(past.waiting)
        self.own_output = past.told
        self.transcript.blank()

    async def _end_session(self, live: LiveSession) -> None:
        if self.hosted is not None:
            await self.hosted.aclose()
        await live.close()

    async def _close(self) -> None:
        for task in (*self._tasks, *filter(None, (self._completing,))):
            task.cancel()
        live = self.live
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                if live is not None:
                    await self._end_session(live)
        self.screen.write(self._end_text(live))
        self.screen.close()

    def _end_text(self, live: LiveSession | None) -> str:
        """Return what is left on the screen: finished lines, and how to come back."""
        columns, _ = self.screen.size
        if live is not None and live.projections.title.text:
            self.transcript.blank()
            self.transcript.say(f"Resume with: trimtab --resume={live.id}", "dim")
        if self.actions.keep_drafts():
            self.transcript.say("Your draft is in the history: Up brings it back.", "dim")
        self.transcript.settle()
        lines = self._finish_lines(columns)
        text = "".join(f"{encode(line, self.painter.theme)}\r\n" for line in lines)
        title = "\x1b[23;2t" if self._title else ""
        return f"{self.painter.erase()}{text}{title}"

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        """Run a coroutine beside the interface; its failure is a remark, never a crash."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                self.say_failure(error)
            self.request_frame()

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def say_failure(self, error: Exception) -> None:
        """Tell what went wrong, and go on; anything but an error for people is a bug."""
        message = f"Internal error ({type(error).__name__}: {error}); please report it."
        if isinstance(error, TrimtabError):
            message = error.message
        self.transcript.say(message, "error")
        self.request_frame()

    def leave(self, code: int = 0) -> None:
        """End the conversation."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit(result=code)

    @property
    def models(self) -> "ModelList":
        """The models to choose from."""
        if self._models is None:
            from trimtab.host.model_list import ModelList

            self._models = ModelList(self.terminal.env, self.terminal.home)
        return self._models

    @property
    def busy(self) -> bool:
        """True while the agent works."""
        return self.live is not None and self.live.busy

    @property
    def tokens(self) -> int:
        """The tokens that the session has used, sub-agents included."""
        used = self.live.projections.usage.total if self.live is not None else None
        return (used.input_tokens or 0) + (used.output_tokens or 0) if used is not None else 0

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()

        def end(number: signal.Signals) -> None:
            if self.app.is_done:
                self.screen.restore()
                os._exit(128 + number)
            self.leave(128 + number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end, number)
        loop.add_signal_handler(signal.SIGINT, self.actions.interrupt)

    def _on_event(self, event: Event, line: bytes) -> None:
        self._log(event, line)
        now = time.monotonic()
        for part in self._fold.apply(event):
            self.transcript.apply(part, now)
            self._notice_part(part)
        if isinstance(event.data, SessionIdle):
            self._on_idle(now)
        elif self.working_since is None and self.busy:
            self.working_since, self.tokens_before = now, self.tokens
        self.request_frame()

    def _notice_part(self, part: Part) -> None:
        if not isinstance(part, Question):
            return
        if part.done:
            answered = "" if part.request_id in self._questions_seen else part.answer
            self.asking.withdraw(part.request_id, answered)
            return
        columns, _ = self.screen.size
        agent = self.transcript.agents.get(part.agent_id or "")
        asked = build_question(part, columns, agent.name if agent else "")
        request_id = part.request_id

        def answer(value: Any) -> bool:
            self._questions_seen.add(request_id)
            return self.hosted is not None and self.hosted.questions.answer(request_id, value)

        self.asking.put(asked, answer)
        self.notify()

    async def _ask_trust(self, question: TrustQuestion) -> TrustAnswer:
        future: asyncio.Future[TrustAnswer] = asyncio.get_running_loop().create_future()

        def answer(value: TrustAnswer) -> bool:
            if not future.done():
                future.set_result(value)
            return True

        self.asking.put(build_trust(question), answer)
        self.request_frame()
        return await future

    def follow_folder(self) -> None:
        """Complete files of the folder that the session works in now."""
        if self.live is not None:
            self.files.use(self.live.controls.options.cwd)

    def _on_idle(self, now: float) -> None:
        self.transcript.settle()
        self.files.stale = True
        if self.hosted is not None:
            self.asking.withdraw_unless(self.hosted.questions.is_open)
        if self.working_since is not None and now - self.working_since >= LONG_WORK:
            self.notify()
        self.working_since = None
        live = self.live
        if live is not None and live.inbox.pending:
            asyncio.get_running_loop().call_soon(self._hold_unsent)
        self.status.refresh()
        asyncio.get_running_loop().call_later(FRAME, self.request_frame)

    def _hold_unsent(self) -> None:
        """Keep prompts that a stopped run left behind until the person decides about them."""
        live = self.live
        if live is not None and not live.busy and live.inbox.pending:
            held = live.inbox.hold()
            waits = "waits" if held == 1 else "wait"
            self.transcript.say(
                f"{count(held, 'prompt')} {waits}: Up takes the last one back, /queue send sends.",
                "dim",
            )
            self.request_frame()

    def notify(self) -> None:
        """Ring the bell or notify, if the person looks elsewhere."""
        if self.focused and self.actions.reports_focus:
            return
        if self.preferences.notify == "bell":
            self.screen.write("\a")
        elif self.preferences.notify == "notification":
            self.screen.write("\x1b]9;trimtab needs you\x07")

    def say_briefly(self, text: str) -> None:
        """Show a remark in place of the status for two seconds."""
        self.remark = text
        if self._remark_timer is not None:
            self._remark_timer.cancel()
        loop = asyncio.get_running_loop()
        self._remark_timer = loop.call_later(REMARK_SECONDS, self._end_remark)
        self.request_frame()

    def _end_remark(self) -> None:
        self.remark = ""
        self.request_frame()

    def _on_edit(self) -> None:
        before = self.editor.text[: self.editor.caret]
        if self.asking.typing_words:
            self.completer.close()
        else:
            self.completer.update(before, busy=self.busy)
            self._ask_servers(before)
        self.request_frame()

    def _ask_servers(self, before: str) -> None:
        """Have a server complete one of its prompts; what it says comes later, or not at all."""
        if self._completing is not None:
            self._completing.cancel()
            self._completing = None
        if self.live is not None and before.startswith("/") and ":" in before:
            work = self._complete(self.live.controls.servers, before)
            self._completing = asyncio.get_running_loop().create_task(work)

    async def _complete(self, servers: "SessionServers", before: str) -> None:
        word, values = await servers.complete(before)
        if values and self.editor.text[: self.editor.caret] == before:
            self.completer.offer(word, values)
            self.request_frame()

    def request_frame(self) -> None:
        """Have a frame painted soon, at most `1 / FRAME` times a second."""
        if self._frame is not None or self.paused:
            return
        loop = asyncio.get_running_loop()
        delay = max(0.0, self._last_frame + FRAME - time.monotonic())
        self._frame = loop.call_later(delay, self._paint)

    def _stop_painting(self) -> None:
        self.paused = True
        for timer in (self._frame, self._ticker, self._remark_timer):
            if timer is not None:
                timer.cancel()

    def paint_now(self) -> None:
        """Paint before another program takes the terminal."""
        if self._frame is not None:
            self._frame.cancel()
        self._paint()

    def _paint(self) -> None:
        self._frame = None
        if self.paused or self.screen.busy:
            return  # a slow terminal: `drained` asks for the next frame
        now = self._last_frame = time.monotonic()
        columns, rows = self.screen.size
        write_long_question(self, columns, rows)
        finished = self._finish_lines(columns)
        frame = lay_out(self.transcript, build_scene(self, now, columns, rows))
        if text := self.painter.paint(finished, frame, columns, rows):
            self.screen.write(text)
        if self.asking.current is not None:
            self.asking.on_shown(now)
            if left := self.asking.waits(now):
                asyncio.get_running_loop().call_later(left + 0.01, self.request_frame)
        self._update_title()
        changes = self.panel is not None and self.panel.changes
        if (self.working_since is not None or changes) and self._ticker is None:
            self._ticker = asyncio.get_running_loop().call_later(1.0, self._tick)

    def _finish_lines(self, columns: int) -> list[Line]:
        """Return the finished lines, with links in them if the person wants some."""
        lines = self.transcript.take(columns)
        if not lines or not self.preferences.links:
            return lines
        from trimtab.transports.tui.links import Links

        cwd = self.live.controls.options.cwd if self.live is not None else self.terminal.cwd
        links = Links(cwd, self.terminal.env.get("HOME", ""))
        return [links.mark(line) for line in lines]

    def _tick(self) -> None:
        self._ticker = None
        self.request_frame()

    def _update_title(self) -> None:
        if not self.preferences.title:
            return
        state = "working" if self.working_since is not None else "idle"
        if self.asking.current is not None:
            state = "waiting"
        name = self.transcript.title or os.path.basename(self.terminal.cwd)
        title = f"trimtab: {name} ({state})"
        if title != self._title:
            save = "" if self._title else "\x1b[22;2t"
            self._title = title
            safe = "".join(character for character in title if character.isprintable())
            self.screen.write(f"{save}\x1b]2;{safe}\x07")
