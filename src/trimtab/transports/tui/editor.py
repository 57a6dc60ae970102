"""The editor of prompts: text, folded pastes, earlier prompts, a stash. Keys come from outside."""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from trimtab.contracts.text import count
from trimtab.transports.tui.history import Entry, History

FOLDED_LINES = 10
FOLDED_CHARACTERS = 1000
"""Pastes with more lines or characters are shown as a placeholder."""
MAX_FOLDED = 20
"""Drafts with pastes that come back folded from the history."""
_NUMBER = re.compile(r"\d+")
_PLACEHOLDER = re.compile(r"\[(?:paste|image) \d+(?:: [^\]\n]*)?\]")


class Draft(msgspec.Struct, frozen=True):
    """A text that was being edited, with what its placeholders stand for."""

    text: str = ""
    pastes: dict[str, str] = {}
    images: dict[str, str] = {}

    @property
    def expanded(self) -> str:
        """The text with pastes in full."""
        return _PLACEHOLDER.sub(lambda match: self.pastes.get(match[0], match[0]), self.text)

    @property
    def attached(self) -> list[str]:
        """The paths of the images whose placeholders are in the text, in their order."""
        names = dict.fromkeys(_PLACEHOLDER.findall(self.text))
        return [self.images[name] for name in names if name in self.images]


class Editor:
    """Edits one prompt. `take` returns it with its pastes in full."""

    def __init__(self, history: History, on_change: Callable[[], None]) -> None:
        self.buffer = Buffer(multiline=True)
        self.buffer.on_text_changed += lambda _: self._changed()
        self._on_change = on_change
        self._history = history
        self._pastes: dict[str, str] = {}
        self._images: dict[str, str] = {}
        self._stash = Draft()
        self._recalled: list[Entry] | None = None
        """Earlier prompts that begin like the draft, newest first, while one of them is shown."""
        self._position = -1
        self._draft = Draft()
        self._recalling = False
        self._folded: dict[str, Draft] = {}
        """Drafts with pastes that were sent or cleared, by their whole text."""

    @property
    def text(self) -> str:
        return self.buffer.text

    @property
    def caret(self) -> int:
        return self.buffer.cursor_position

    @property
    def expanded(self) -> str:
        """The text with pastes in full."""
        return self.save().expanded

    @property
    def images(self) -> list[str]:
        """The paths of the images whose placeholders are in the text, in their order."""
        return self.save().attached

    def set(self, text: str, caret: int | None = None) -> None:
        """Replace the text; the change can be undone."""
        self.buffer.save_to_undo_stack()
        self.buffer.set_document(Document(text, len(text) if caret is None else caret))

    def save(self) -> Draft:
        """Return the draft for `restore`; the editor keeps it."""
        return Draft(self.text, dict(self._pastes), dict(self._images))

    def restore(self, draft: Draft) -> None:
        """Edit a draft that was saved, with its pastes and images."""
        self._pastes, self._images = dict(draft.pastes), dict(draft.images)
        self.set(draft.text)

    def load(self, text: str, images: Sequence[str] = ()) -> None:
        """Edit a prompt again: its placeholders of images stand for these paths, in order."""
        names = dict.fromkeys(_PLACEHOLDER.findall(text))
        named = [name for name in names if name.startswith("[image ")]
        self._images |= dict(zip(named, images, strict=False))
        self.set(text)

    def remember(self, draft: Draft | None = None) -> None:
        """Put a draft into the history, the present one if none is given."""
        draft = self.save() if draft is None else draft
        self._history.add(draft.expanded, draft.attached)

    def recall(self, entry: Entry) -> None:
        """Edit an earlier prompt again, with its images and with its pastes folded."""
        folded = self._folded.get(entry.text)
        if folded is None:
            self.load(entry.text, entry.images)
        else:
            self.restore(folded)

    def take(self) -> str:
        """Return the whole text and clear the editor."""
        text = self.expanded
        self.clear()
        return text

    def clear(self) -> None:
        """Remove the text without a trace in the undo list."""
        if self._pastes:
            folded = {**self._folded, self.expanded: self.save()}
            self._folded = dict(list(folded.items())[-MAX_FOLDED:])
        self.buffer.reset()
        self._pastes.clear()
        self._images.clear()
        self._changed()

    def paste(self, text: str) -> None:
        """Insert pasted text; a long one as a placeholder."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.removesuffix("\n").count("\n") + 1
        if lines <= FOLDED_LINES and len(text) <= FOLDED_CHARACTERS:
            self.buffer.insert_text(text)
            return
        size = count(lines, "line") if lines > 1 else count(len(text), "character")
        name = f"[paste {_following(self._pastes)}: {size}]"
        self._pastes[name] = text
        self.buffer.insert_text(name)

    def attach_image(self, path: str, size: str) -> None:
        """Insert a placeholder for an image."""
        name = f"[image {_following(self._images)}{f': {size}' if size else ''}]"
        self._images[name] = path
        self.buffer.insert_text(name)

    def erase(self) -> None:
        """Delete the character before the caret, or the whole placeholder that ends there."""
        before = self.text[: self.caret]
        known = {**self._pastes, **self._images}
        for match in _PLACEHOLDER.finditer(before):
            if match.end() == len(before) and match[0] in known:
                self.buffer.save_to_undo_stack()
                self.buffer.delete_before_cursor(len(match[0]))
                return
        self.buffer.save_to_undo_stack()
        self.buffer.delete_before_cursor(1)

    def expand_paste(self) -> bool:
        """Replace the placeholder at the caret by its text; return False if there is none."""
        for match in _PLACEHOLDER.finditer(self.text):
            if match.start() <= self.caret <= match.end() and match[0] in self._pastes:
                text = self.text[: match.start()] + self._pastes[match[0]]
                self.set(text + self.text[match.end() :], len(text))
                return True
        return False

    def stash(self) -> str:
        """Put the draft aside, or bring back what was; return a remark."""
        if self.text:
            self._stash = self.save()
            self.remember()
            self.clear()
            return "The draft is put aside; Ctrl-S brings it back."
        if not self._stash.text:
            return "Nothing is put aside."
        draft, self._stash = self._stash, Draft()
        self.restore(draft)
        return ""

    def go_up(self) -> None:
        """Move up a row, or to the earlier prompt that begins like the text before the caret."""
        if self.buffer.document.cursor_position_row > 0 and not self._recalling:
            self.buffer.cursor_up()
            return
        self._recall(1)

    def go_down(self) -> None:
        """Move down a row, or to the later prompt."""
        document = self.buffer.document
        if document.cursor_position_row < document.line_count - 1 and not self._recalling:
            self.buffer.cursor_down()
        elif self._recalled is not None:
            self._recall(-1)

    def _recall(self, step: int) -> None:
        if self._recalled is None:
            prefix = self.text[: self.caret]
            self._draft = self.save()
            entries = reversed(self._history.entries)
            self._recalled = [
                entry
                for entry in entries
                if entry.text.startswith(prefix) and entry.text != self.text
            ]
            self._position = -1
        position = self._position + step
        if not -1 <= position < len(self._recalled):
            return
        self._position = position
        recalled, draft = self._recalled, self._draft
        self._recalling = False
        if position < 0:
            self.restore(draft)
        else:
            self.recall(recalled[position])
        if position >= 0:
            self._recalled, self._recalling, self._draft = recalled, True, draft

    def _changed(self) -> None:
        if self._recalling and self._draft.text:  # the recalled prompt replaces it: keep it
            self.remember(self._draft)
        self._recalled, self._recalling, self._draft = None, False, Draft()
        self._on_change()


def _following(placeholders: Iterable[str]) -> int:
    """Return the number after the highest of these placeholders."""
    return 1 + max((int(_NUMBER.findall(name)[0]) for name in placeholders), default=0)
