"""Folds the parts of a session into finished lines and the state that the live rows show."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trimtab.contracts.text import count, neutralise
from trimtab.host.answers import describe_exchange, describe_permission
from trimtab.host.calls import describe_edits, describe_end
from trimtab.host.parts import (
    Compaction,
    ContextUsage,
    EditsByOthers,
    HookRun,
    Markdown,
    ModeInUse,
    ModelInUse,
    Notice,
    Part,
    Question,
    QueuedPrompt,
    Reasoning,
    Subagent,
    Title,
    ToolInvocation,
    UserPrompt,
)
from trimtab.transports.tui.cells import Line, Span, clip, plain, width, wrap
from trimtab.transports.tui.diff import count_lines, render_diff

if TYPE_CHECKING:
    from trimtab.transports.tui.markdown import MarkdownStream

FAILURE_LINES = 8
"""Lines of output that stay visible when a command fails."""
DIFF_LINES = 40
FOLDED_KEPT = 50
"""Folded things that Ctrl-O can still open."""
_QUIET = {"view": "read", "read": "read", "grep": "searched", "rg": "searched", "glob": "searched"}
"""Tools whose successful calls are counted together in one line."""
_MARKS = {"completed": ("success", "●"), "interrupted": ("warning", "◌")}

Render = Callable[[int], list[Line]]


class Folded(tuple[str, str]):
    """A title and the whole text of something that is shown folded."""

    __slots__ = ()


class Transcript:
    """The conversation so far, and the work in progress.

    `take` returns each finished line once. Everything else is public state for the live rows.
    """

    def __init__(self) -> None:
        self.calls: dict[str, ToolInvocation] = {}
        self.agents: dict[str, Subagent] = {}
        self.hooks: dict[str, tuple[HookRun, float]] = {}
        """The hooks that run, with the time each began."""
        self.agent_activity: dict[str, str] = {}
        self.agent_seen: dict[str, float] = {}
        """When each sub-agent did something last."""
        self.waiting: dict[str, QueuedPrompt] = {}
        self.questions: dict[str, Question] = {}
        self.reasoning = ""
        self.model = ""
        self.mode = "interactive"
        self.effort = ""
        self.title = ""
        self.context = (0, 0)
        self.compacting = False
        self.folded: list[Folded] = []
        """The folded texts that Ctrl-O opens, the newest last."""
        self.call_started: dict[str, float] = {}
        self._reasoning_began = self._reasoning_key = self._ended_reasoning = ""
        self._ready: list[Render] = []
        self._quiet: list[ToolInvocation] = []
        self._stream: MarkdownStream | None = None
        self._stream_key = ""
        self._ended_streams: set[str] = set()
        self._last_blank = True
        self._written_diffs: set[str] = set()

    def apply(self, part: Part, now: float = 0.0) -> None:
        """Take a part; `now` is the time it arrived, for elapsed times."""
        if part.agent_id is not None and not isinstance(part, Question | Subagent):
            self._note_activity(part, now)
            return
        if isinstance(part, ToolInvocation):
            self._call(part, now)
            return
        if isinstance(part, HookRun):
            self._hook(part, now)
            return
        take = _CASES.get(type(part))
        if take is not None:
            take(self, part)

    @property
    def writing(self) -> bool:
        """True while an answer arrives."""
        return self._stream is not None

    @property
    def ended_blank(self) -> bool:
        """True if the last finished line was empty."""
        return self._last_blank

    def take(self, columns: int) -> list[Line]:
        """Return the finished lines that were not returned before, for this many columns."""
        lines = [line for render in self._ready for line in render(columns)]
        self._ready = []
        if self._stream is not None:
            lines += self._stream.take(columns)
        shown = []
        for line in lines:
            blank = not plain(line).strip()
            if not (blank and self._last_blank):
                shown.append(line)
            self._last_blank = blank
        return shown

    def tail(self, columns: int) -> list[Line]:
        """Return the rows of the message that are not finished."""
        return self._stream.tail(columns) if self._stream is not None else []

    def say(self, text: str, style: str = "") -> None:
        """Add lines of our own: the answer of a command, a remark."""
        self._settle()
        shown = neutralise(text).split("\n")
        self._ready.append(
            lambda columns: [
                row for line in shown for row in wrap(((style, line),), max(8, columns - 1), "  ")
            ]
        )

    def say_pairs(self, pairs: list[tuple[str, str]]) -> None:
        """Add a table of two columns; in a narrow window the second stands below the first."""
        self._settle()
        left = max((width(name) for name, _ in pairs), default=0) + 4

        def render(columns: int) -> list[Line]:
            rows: list[Line] = []
            for name, text in pairs:
                if columns < 2 * left:
                    rows += wrap((("bold", f"  {name}"),), columns - 1, "  ")
                    rows += wrap((("", f"    {text}"),), columns - 1, "    ")
                else:
                    lead = f"  {name}".ljust(left)
                    rows += wrap((("bold", lead), ("", text)), columns - 1, " " * left)
            return rows

        self._ready.append(render)

    def add_lines(self, lines: list[Line]) -> None:
        """Add lines as they are; the terminal wraps long ones."""
        self._settle()
        self._ready.append(lambda _: lines)

    def add_markdown(self, text: str) -> None:
        """Add a text with its Markdown rendered."""
        self._settle()
        stream = new_stream()
        stream.feed(neutralise(text))
        stream.end()
        self._ready.append(stream.take)

    def blank(self) -> None:
        """Separate what follows by an empty line."""
        self._settle()
        self._ready.append(lambda _: [()])

    def settle(self) -> None:
        """Finish what waits for more of its kind: the session is idle."""
        self._end_stream()
        self._settle()
        self.calls = {key: call for key, call in self.calls.items() if not call.ended}
        self.hooks = {}

    def _prompt(self, part: UserPrompt) -> None:
        self.waiting.pop(f"queue {part.key}", None)
        text = neutralise(part.text)
        if not text.strip() and part.source not in ("", "user"):
            return  # a remark of ours to the model
        self.blank()
        style, mark = (
            ("person", "> ") if part.source in ("", "user") else ("dim", f"{part.source}> ")
        )
        first, *rest = text.split("\n")
        self._ready.append(
            lambda columns: [
                *wrap(((style, mark), ("bold", first)), columns - 1, "  "),
                *(
                    row
                    for line in rest
                    for row in wrap((("", "  "), ("bold", line)), columns - 1, "  ")
                ),
            ]
        )
        for attachment in part.attachments:
            name = attachment.get("displayName") or attachment.get("path") or attachment.get("type")
            self.say(f"  attached {name}", "dim")
        self.blank()

    def _queue(self, part: QueuedPrompt) -> None:
        if part.done:
            self.waiting.pop(part.key, None)
        else:
            self.waiting[part.key] = part

    def _markdown(self, part: Markdown) -> None:
        if part.key in self._ended_streams and part.delta in ("", part.text):
            return  # all of it is written
        if self._stream is None or self._stream_key != part.key:
            self._end_reasoning(part.timestamp)
            self._end_stream()
            self._settle()
            self._ready.append(lambda _: [()])
            self._stream, self._stream_key = new_stream(), part.key
        self._stream.feed(neutralise(part.delta))
        if part.done:
            self._end_stream()

    def _end_stream(self) -> None:
        if self._stream is None:
            return
        stream = self._stream
        stream.end()
        self._ready.append(stream.take)
        self._ready.append(lambda _: [()])
        self._ended_streams = {self._stream_key}
        self._stream = None

    def _reason(self, part: Reasoning) -> None:
        if part.key == self._ended_reasoning:  # the answer began before the reasoning was closed
            return
        if not self.reasoning:
            self._reasoning_began, self._reasoning_key = part.timestamp, part.key
        self.reasoning = neutralise(part.text)
        if part.done:
            self._end_reasoning(part.timestamp, part.seconds)

    def _end_reasoning(self, ended: str, seconds: float | None = None) -> None:
        """Fold the reasoning; a replayed log knows only the `seconds` that it took."""
        if not self.reasoning:
            return
        text, self.reasoning = self.reasoning, ""
        self._ended_reasoning = self._reasoning_key
        took = elapsed(self._reasoning_began, ended)
        if seconds is not None:
            took = describe_seconds(seconds)
        title = f"thought for {took}" if took not in ("", "0 s") else "thought"
        self.fold(title, text)
        self.say(f"∴ {title}", "dim italic")

    def _call(self, part: ToolInvocation, now: float) -> None:
        if part.state == "pending":  # held back: the question about it is shown instead
            self.calls.pop(part.key, None)
            return
        if not part.ended:
            if part.category == "interaction":  # its question is shown instead
                return
            if part.key not in self.calls:
                self.call_started[part.key] = now
            self.calls[part.key] = part
            return
        self.calls.pop(part.key, None)
        self.call_started.pop(part.key, None)
        self._end_reasoning("")
        if part.state == "completed" and part.name in _QUIET and not part.server:
            self.fold(part.title, part.output)
            self._quiet.append(part)
            return
        self._settle()
        if part.by_person:
            self._show_own(part)
        else:
            self._show_call(part)

    def _show_own(self, part: ToolInvocation) -> None:
        """Write a command of the person and all that it printed."""
        command = part.arguments.get("command") if isinstance(part.arguments, dict) else ""
        self.say(f"! {command}", "bold")
        if output := neutralise(part.output).rstrip("\n"):
            self.add_lines([(("", line),) for line in output.split("\n")])
        if part.exit_code:
            self.say(describe_end(part.exit_code), "dim")
        elif part.exit_code is None and part.error:
            self.say(f"The command cannot be run: {part.error}.", "error")

    def _hook(self, part: HookRun, now: float) -> None:
        if not part.done:
            self.hooks[part.key] = part, now
            return
        self.hooks.pop(part.key, None)
        if part.state == "failed":
            why = f": {part.error}" if part.error else ""
            self.say(f"! The hook {part.name} failed{why}", "warning")

    def _edits_by_others(self, part: EditsByOthers) -> None:
        self.say(f"· {describe_edits(part)}", "dim")

    def _show_call(self, part: ToolInvocation) -> None:
        if exchange := describe_exchange(part):
            self.say(f"  {exchange}", "dim")
            return
        diff = part.detail if "\n@@ " in part.detail else ""
        head = describe_call(part, diff)
        self.fold(neutralise(part.title), diff or part.output or part.error)
        self._ready.append(lambda columns: [fit_call(head, columns - 1)])
        if diff and find_hunks(diff) in self._written_diffs:
            self._written_diffs.discard(find_hunks(diff))
        elif diff:
            lines = render_diff(diff, DIFF_LINES)
            self._ready.append(lambda _: lines)
        elif part.state != "rejected" and (part.state != "completed" or part.exit_code):
            stopped = part.state in ("completed", "interrupted")  # else the error says it all
            output = part.output if stopped else part.error
            rows = [row for row in printed_rows(neutralise(output)) if row.strip()]
            shown = rows[-FAILURE_LINES:] if stopped else rows[:FAILURE_LINES]
            self._ready.append(
                lambda columns: [
                    line
                    for row in shown
                    for line in wrap((("dim", f"  │ {row}"),), columns - 1, "  │ ", "dim")
                ]
            )

    def note_diff(self, diff: str) -> None:
        """Note that a question has written a diff; its call does not write it again."""
        if hunks := find_hunks(diff):
            self._written_diffs.add(hunks)

    def _settle(self) -> None:
        """Write what was counted together, and the certain rows of a message that goes on below."""
        if self._stream is not None:
            self._ready.append(self._stream.take)
            self._ready.append(lambda _: [()])
        quiet, self._quiet = self._quiet, []
        if len(quiet) == 1:
            head = describe_call(quiet[0], "")
            self._ready.append(lambda columns: [fit_call(head, columns - 1)])
        elif quiet:
            read = sum(_QUIET[call.name] == "read" for call in quiet)
            searched = len(quiet) - read
            texts = [f"read {count(read, 'file')}"] if read else []
            texts += [f"searched {count(searched, 'time')}"] if searched else []
            line: Line = (("success", "● "), ("", ", ".join(texts)))
            self._ready.append(lambda _: [line])

    def fold(self, title: str, text: str) -> None:
        """Keep a text that Ctrl-O opens."""
        if text:
            self.folded = [*self.folded[-FOLDED_KEPT:], Folded((title, neutralise(text)))]

    def _question(self, part: Question) -> None:
        if not part.done:
            self.questions[part.request_id] = part
            return
        self.questions.pop(part.request_id, None)
        if told := describe_permission(part):
            self.say(f"  {told}", "dim")

    def _agent(self, part: Subagent) -> None:
        key = part.agent_id or part.key
        if not part.done:
            self.agents[key] = part
            return
        self.agents.pop(key, None)
        self.agent_activity.pop(key, None)
        self._settle()
        facts: list[str] = [part.state]
        if part.tool_calls is not None:
            facts.append(count(part.tool_calls, "tool call"))
        if part.duration_ms is not None:
            facts.append(describe_seconds(part.duration_ms / 1000))
        style = "success" if part.state == "completed" else "error"
        head: Line = (
            (style, "◆ "),
            ("", neutralise(part.name)),
            ("dim", f" · {' · '.join(facts)}"),
        )
        self._ready.append(lambda columns: wrap(head, columns - 1, "  "))
        if part.error:
            self.say(f"  {part.error}", "dim")

    def _note_activity(self, part: Part, now: float) -> None:
        """Remember what a sub-agent does for its row."""
        if part.agent_id is None:
            return
        self.agent_seen[part.agent_id] = now
        if isinstance(part, ToolInvocation) and not part.ended:
            self.agent_activity[part.agent_id] = neutralise(part.title)
        elif isinstance(part, Markdown | Reasoning) and part.text.strip():
            last = neutralise(part.text).strip().rsplit("\n", 1)[-1]
            self.agent_activity[part.agent_id] = last[-200:]

    def _notice(self, part: Notice) -> None:
        if not part.text:
            return
        if part.kind == "agent_completed":  # for the model; the row of the agent tells people
            self.fold("the last message of an agent", part.text)
            return
        if part.kind == "abort":
            self._end_reasoning("")
        if part.kind in ("abort", "retry") or part.level == "error":
            self._end_stream()  # no more of the message arrives
        if part.level == "answer":
            self.blank()
            self.say(part.text)
            self.blank()
            return
        mark = {"warning": "! ", "error": "Error: ", "info": "· "}[part.level]
        style = {"warning": "warning", "error": "error", "info": "dim"}[part.level]
        self.say(f"{mark}{part.text}", style)

    def _compaction(self, part: Compaction) -> None:
        self.compacting = not part.done
        if part.done and part.success and part.tokens_before and part.tokens_after:
            self.say(
                f"· The conversation was summarised: {part.tokens_before:,} → "
                f"{part.tokens_after:,} tokens.",
                "dim",
            )
        elif part.done and part.error:
            self.say(f"! The conversation was not summarised: {part.error}", "warning")

    def _state(self, part: Part) -> None:
        match part:
            case ModelInUse():
                self.model, self.effort = part.name, part.effort
            case ModeInUse():
                self.mode = part.mode
            case ContextUsage():
                self.context = part.used, part.limit
            case Title():
                self.title = neutralise(part.text)


_CASES: dict[type[Part], Callable[[Transcript, Any], None]] = {
    UserPrompt: Transcript._prompt,
    QueuedPrompt: Transcript._queue,
    Markdown: Transcript._markdown,
    Reasoning: Transcript._reason,
    Question: Transcript._question,
    Subagent: Transcript._agent,
    EditsByOthers: Transcript._edits_by_others,
    Notice: Transcript._notice,
    Compaction: Transcript._compaction,
    ModelInUse: Transcript._state,
    ModeInUse: Transcript._state,
    ContextUsage: Transcript._state,
    Title: Transcript._state,
}


def find_hunks(diff: str) -> str:
    """Return a diff without its head; empty if it has no hunks."""
    return diff[max(diff.find("@@ "), 0) :].rstrip("\n") if "@@ " in diff else ""


def describe_call(part: ToolInvocation, diff: str) -> Line:
    """Return the line of a finished call: its title and its outcome."""
    style, mark = _MARKS.get(part.state, ("error", "●"))
    if part.exit_code:
        style = "error"
    name, _, rest = neutralise(part.title).replace("\n", " ").partition(" ")
    facts = []
    took = elapsed(part.started, part.completed)
    if took not in ("", "0 s") and part.state not in ("rejected", "denied"):  # a person took it
        facts.append(took)
    if part.state != "completed":
        facts.append(part.state)
    if part.exit_code:
        facts.append(f"exit {part.exit_code}")
    if diff:
        added, removed = count_lines(diff)
        facts.append(f"+{added} -{removed}")
    elif part.state == "completed" and (lines := len(printed_rows(part.output))) > 1:
        facts.append(count(lines, "line"))
    spans: list[Span] = [(style, f"{mark} "), ("bold", name), ("", f" {rest}" if rest else "")]
    spans.append(("dim", "".join(f" · {fact}" for fact in facts)))
    return tuple(spans)


def fit_call(head: Line, limit: int) -> Line:
    """Return the line of a finished call as one row: a long title is cut, the outcome is not."""
    *title, facts = head
    return (*clip(title, max(8, limit - width(facts[1]))), facts)


def printed_rows(output: str) -> list[str]:
    """Return the rows that a call printed, without the one that tells the model its exit code."""
    rows = output.strip().split("\n")
    return rows[:-1] if rows[-1].startswith("<exited with exit code") else rows


def new_stream() -> "MarkdownStream":
    """Return a stream. `Tui.open_first` loads the Markdown library behind the first frame."""
    from trimtab.transports.tui.markdown import MarkdownStream

    return MarkdownStream()


def elapsed(began: str, ended: str) -> str:
    """Return the time between two timestamps; empty if one is missing."""
    try:
        start, end = datetime.fromisoformat(began), datetime.fromisoformat(ended)
    except ValueError:
        return ""
    return describe_seconds((end - start).total_seconds())


def describe_seconds(seconds: float) -> str:
    """Return a duration for people: `4 s`, `2 min 5 s`."""
    whole = max(0, int(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
