"""The questions that wait for the person, one shown at a time, guarded against stray keys."""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.transports.tui.cells import Line, clip, plain, wrap
from trimtab.transports.tui.questions import (
    GUARD,
    Asked,
    Choice,
    describe_answer,
    describe_position,
    edit_rules,
)
from trimtab.transports.tui.view import Menu, MenuItem

TOLD = ("permission", "input", "plan")
"""Kinds whose answers the transcript tells from the events of the session, resumed or live."""


MARGIN = 2
"""Cells before the keys of a choice."""


class Waiting(msgspec.Struct):
    """A question in line. `answer` delivers the answer and returns False if it came too late."""

    asked: Asked
    answer: Callable[[Any], bool]
    shown_at: float | None = None
    body_written: bool = False
    """True if its body is in the scrollback, so that only the choices are live."""


class Asking:
    """The line of questions. A key answers only what has stood for `GUARD` seconds unread-over.

    `say` receives the remark that stays in the transcript.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._line: list[Waiting] = []
        self._marked: int | None = None
        self.words_for: Choice | None = None
        """The choice whose words are being typed."""
        self._typing_words = False
        self._typed_at = 0.0
        self._typed_before = 0.0
        """When a key was pressed before the last one."""
        self._aimed_at: Waiting | None = None
        """The question that the last key may answer: it could be read when the key arrived."""
        self.on_edit: Callable[[], None] = lambda: None
        """Opens what is asked about in the person's editor."""
        self.on_explain: Callable[[Asked], None] = lambda _: None
        """Tells more about what is asked."""
        self.on_words_end: Callable[[], None] = lambda: None
        """Called when words are not typed any more, whatever the reason."""

    @property
    def current(self) -> Waiting | None:
        return self._line[0] if self._line else None

    @property
    def typing_words(self) -> bool:
        return self._typing_words and bool(self._line)

    def put(self, asked: Asked, answer: Callable[[Any], bool]) -> None:
        """Add a question to the line."""
        self._line.append(Waiting(asked, answer))

    def withdraw(self, request_id: str, answered: str = "") -> None:
        """Remove a question that somebody else has answered."""
        first = self.current
        for waiting in list(self._line):
            if waiting.asked.id == request_id:
                self._line.remove(waiting)
                if answered:
                    answer = "" if waiting.asked.kind in TOLD else f": {answered}"
                    self._say(f"{waiting.asked.title} — answered elsewhere{answer}")
                if waiting is first:
                    self._reset()

    def withdraw_unless(self, is_open: Callable[[str], bool]) -> None:
        """Remove the questions for which nobody waits any more: their turn was stopped."""
        for waiting in list(self._line):
            if waiting.asked.kind != "trust" and not is_open(waiting.asked.id):
                self.withdraw(waiting.asked.id)

    def on_shown(self, now: float) -> None:
        """Note that the question at the front is on the screen."""
        if self._line and self._line[0].shown_at is None:
            self._line[0].shown_at = now

    def on_key(self, now: float) -> None:
        """Note that a key arrives, before its action runs.

        A lone Esc acts later than it arrives, so whether it answers is decided here.
        """
        self._aimed_at = self.current if self.is_ready(now) else None
        self._typed_before, self._typed_at = self._typed_at, now

    @property
    def may_answer(self) -> bool:
        """True if the key that arrived last may answer the question."""
        return self._aimed_at is not None and self._aimed_at is self.current

    def is_ready(self, now: float) -> bool:
        """Return True if a key that arrives now may answer."""
        if not self._line or self._typing_words:
            return False
        shown = self._line[0].shown_at
        return shown is not None and now - max(shown, self._typed_at) >= GUARD

    def press(self, key: str) -> bool:
        """Take a key while ready; return False if it means nothing to the question."""
        asked = self._line[0].asked
        if asked.words_only:
            return self.begin_words(None)
        choice = asked.find(key)
        if choice is None and key == "?" and asked.kind == "permission":
            self._keep_ready()
            self.on_explain(asked)
            return True
        if choice is None:
            return False
        self._choose(choice)
        return True

    def _keep_ready(self) -> None:
        """Let the next key answer at once: the last one was meant for the question."""
        self._typed_at = self._typed_before

    def begin_words(self, choice: Choice | None) -> bool:
        """Let the person type words as the answer."""
        self._typing_words, self.words_for = True, choice
        return False

    def move(self, step: int) -> None:
        """Move the mark; it starts on no choice."""
        choices = self._line[0].asked.choices
        self._keep_ready()
        if choices:
            first = 0 if step > 0 else len(choices) - 1
            self._marked = first if self._marked is None else (self._marked + step) % len(choices)

    def confirm(self) -> None:
        """Take the marked choice, if any is marked."""
        choices = self._line[0].asked.choices
        if self._marked is not None and self._marked < len(choices):
            self._choose(choices[self._marked])

    def escape(self) -> None:
        """Answer with no, or go back from typing words."""
        if self._typing_words and not self._line[0].asked.words_only:
            self._end_words()
            return
        self._deliver(self._line[0].asked.on_escape, None, "")

    def send_words(self, text: str) -> None:
        """Answer with the person's words, or have the question offer the rule they wrote.

        Raises `UsageError` for a rule that cannot be read.
        """
        asked = self._line[0].asked
        if self.words_for is not None and self.words_for.rule:
            self._line[0].asked = edit_rules(asked, text)
            self._reset()
            return
        self._deliver(asked.with_words(self.words_for, text), self.words_for, text)

    def _choose(self, choice: Choice) -> None:
        if choice.edits:
            self.on_edit()
        elif choice.words:
            self.begin_words(choice)
        else:
            self._deliver(choice.value, choice, "")

    def _deliver(self, value: Any, choice: Choice | None, words: str) -> None:
        waiting = self._line.pop(0)
        self._reset()
        remark = describe_answer(waiting.asked, choice, words)
        if not waiting.answer(value):
            self._say(f"{remark} (it was answered before)")
        elif waiting.asked.kind not in TOLD:
            self._say(remark)

    def _reset(self) -> None:
        self._marked = None
        self._end_words()

    def _end_words(self) -> None:
        if self._typing_words:
            self.on_words_end()
        self.words_for, self._typing_words = None, False

    def heading(self, columns: int, limit: int) -> tuple[Line, ...]:
        """Return the title of the question and its body.

        Of a body that is in the scrollback, only the first row of a command is repeated: in a low
        window the command would be out of sight.
        """
        waiting = self.current
        if waiting is None:
            return ()
        asked = waiting.asked
        who = f"{asked.agent}: " if asked.agent else ""
        position = describe_position(1, len(self._line))
        title: Line = (("warning bold", f"{who}{asked.title}"), ("dim", position))
        body = asked.render_body(columns)
        if waiting.body_written:
            is_command = asked.body and plain(asked.body[0]).lstrip().startswith("$ ")
            body = [clip(asked.body[0], columns)] if is_command else []
        return (*wrap(title, columns), *body)[: max(1, limit)]

    def menu(self, now: float, columns: int) -> Menu | None:
        """Return the choices, with the keys that choose them."""
        waiting = self.current
        if waiting is None or not waiting.asked.choices or self._typing_words:
            return None
        keys = [f"{'/'.join(choice.keys[:2]):<3}  " for choice in waiting.asked.choices]
        items = tuple(
            MenuItem(choice.fit(columns - MARGIN - len(key)), key=key)
            for choice, key in zip(waiting.asked.choices, keys, strict=True)
        )
        return Menu(items, self._marked, self.is_ready(now))

    def waits(self, now: float) -> float:
        """Return the seconds until keys answer; 0 if they do, or if nothing is asked."""
        if not self._line or self._typing_words or self._line[0].shown_at is None:
            return 0.0
        return max(0.0, GUARD - (now - max(self._line[0].shown_at, self._typed_at)))
