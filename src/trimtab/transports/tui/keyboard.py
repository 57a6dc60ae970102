"""Keys of the terminal: prompt_toolkit reads them and edits text; its renderer is not used."""

import re
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_mode
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyPressEvent, _Flush
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.renderer import Renderer

from trimtab.transports.tui.keys import KEYS

ESCAPE_SECONDS = 0.025
"""Seconds that a lone Esc waits for the rest of a sequence. prompt_toolkit's own value is 1.5 s."""
_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1bO[!-~]|\x1b[\\]P^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"
)
_BROKEN = re.compile("[\ud800-\udfff]")
"""Bytes that are not UTF-8, as Python reads them; nothing can store or send such a text."""
_PASTE = "\x1b[200~"
PREFIX = "c-x"
_SEQUENCES = {
    "\x1b[13;2u": Keys.ControlJ,
    "\x1b[27;2;13~": Keys.ControlJ,
    "\x1b[13;5u": Keys.ControlQ,
    "\x1b[27;5;13~": Keys.ControlQ,
}
"""Shift-Enter and Ctrl-Enter where the terminal reports them, which prompt_toolkit lacks."""
FOCUS = {"\x1b[I": True, "\x1b[O": False}


class KnownSequences(Vt100Parser):
    """Drops sequences that mean nothing here; prompt_toolkit would insert their letters."""

    def __init__(
        self, callback: Callable[[Any], None], on_focus: Callable[[bool], None] = lambda _: None
    ) -> None:
        super().__init__(callback)
        self._on_focus = on_focus

    def feed(self, data: str) -> None:
        data = _BROKEN.sub("\ufffd", data)
        if self._in_bracketed_paste:
            super().feed(data)
            return
        keys, paste, rest = data.partition(_PASTE)
        super().feed(_SEQUENCE.sub(self._keep_known, keys) + paste + rest)

    def _keep_known(self, match: "re.Match[str]") -> str:
        if match[0] in FOCUS:
            self._on_focus(FOCUS[match[0]])
            return ""
        return match[0] if match[0] in ANSI_SEQUENCES else ""


class NoRenderer(Renderer):
    """Asks for a frame where prompt_toolkit would paint."""

    on_render: Callable[[], None] = staticmethod(lambda: None)

    def render(self, app: Any, layout: Any, is_done: bool = False) -> None:
        self.on_render()

    def erase(self, leave_alternate_screen: bool = True) -> None:
        pass

    def request_absolute_cursor_position(self) -> None:
        pass

    def clear(self) -> None:
        pass


def build_application(
    buffer: Buffer, actions: Any, input_: Vt100Input, *, vi: bool
) -> Application[int]:
    """Return an application that reads keys, edits the buffer and calls the actions."""
    ANSI_SEQUENCES.update(_SEQUENCES)

    def keep(press: KeyPress) -> None:
        input_._buffer.append(press)  # the input replaces this list with every read

    input_.vt100_parser = KnownSequences(keep, actions.on_focus)
    app: Application[int] = Application(
        layout=Layout(Window(BufferControl(buffer))),
        key_bindings=build_bindings(actions),
        input=input_,
        output=DummyOutput(),
        editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
        enable_page_navigation_bindings=False,
    )
    renderer = NoRenderer(app._merged_style, app.output)
    renderer.on_render = actions.request_frame
    app.renderer = renderer
    app.ttimeoutlen = app.timeoutlen = ESCAPE_SECONDS
    app.key_processor.before_key_press += lambda _: actions.on_key()
    app.key_processor.after_key_press += lambda _: actions.after_key()
    return app


def take_typed(app: Application[int]) -> str:
    """Return the text of the keys that have arrived and not acted; they will not."""
    queue = app.key_processor.input_queue
    presses = list(queue)
    queue.clear()
    texts = (Keys.ControlM, Keys.ControlJ, Keys.BracketedPaste)
    typed = (
        press.data
        for press in presses
        if press is not _Flush and (press.key in texts or not isinstance(press.key, Keys))
    )
    return "".join(typed).replace("\r\n", "\n").replace("\r", "\n")


def build_bindings(actions: Any) -> KeyBindings:
    """Return the bindings of the table of keys, and those that only questions and panels have."""
    bindings = KeyBindings()
    after_prefix: dict[str, Callable[..., Any]] = {}
    for key in (key for keys in KEYS.values() for key in keys):
        action = guard(actions, getattr(actions, key.action))
        for names in key.names:
            if names[0] == PREFIX:
                after_prefix[names[1]] = action
            else:
                bind(bindings, names, action, actions)
    bind_prefix(bindings, after_prefix, actions)
    captured = Condition(actions.captures_keys)

    press_key = guard(actions, actions.press_key)

    @bindings.add(Keys.Any, filter=captured)
    def take(event: KeyPressEvent) -> None:
        if not press_key(event.data):
            event.current_buffer.insert_text(event.data)

    empty = Condition(actions.is_empty)
    show_keys = guard(actions, actions.show_keys)

    bindings.add("?", filter=empty)(lambda _: show_keys())

    return bindings


def bind_prefix(bindings: KeyBindings, after: dict[str, Callable[..., Any]], actions: Any) -> None:
    """Bind the keys behind Ctrl-X.

    As sequences of prompt_toolkit they would have to arrive within `ESCAPE_SECONDS`.
    """
    bindings.add(PREFIX, eager=True)(lambda _: actions.begin_prefix())

    @bindings.add(Keys.Any, filter=Condition(actions.in_prefix), eager=True)
    def follow(event: KeyPressEvent) -> None:
        action = after.get(event.data)
        action() if action is not None else actions.refuse_prefix(event.data)


def guard(actions: Any, action: Callable[..., Any]) -> Callable[..., Any]:
    """Return the action with its failure told as a remark: a key must not end the program."""

    def guarded(*given: Any) -> Any:
        try:
            return action(*given)
        except Exception as error:
            actions.on_failure(error)
            return None

    return guarded


def bind(
    bindings: KeyBindings, names: tuple[str, ...], action: Callable[..., Any], actions: Any
) -> None:
    """Bind a sequence of keys to an action; a paste is given its text."""
    if names == ("?",):
        return
    if names == ("<bracketed-paste>",):
        bindings.add(Keys.BracketedPaste)(lambda event: action(event.data))
        return
    if names == ("escape",):
        # In vi mode Esc also leaves insert mode; the action is told so by `press_escape`.
        bindings.add("escape", filter=~vi_mode)(lambda _: action())
        closes = Condition(actions.closes_by_escape)
        bindings.add("escape", filter=vi_mode & ~closes)(lambda event: _escape_in_vi(event, action))
        bindings.add("escape", filter=vi_mode & closes)(lambda _: action())
        return
    bindings.add(*names)(lambda _: action())


def _escape_in_vi(event: KeyPressEvent, action: Callable[[], Any]) -> None:
    state = event.app.vi_state
    if state.input_mode != InputMode.NAVIGATION and event.current_buffer.text:
        state.input_mode = InputMode.NAVIGATION
        event.current_buffer.cursor_position += (
            event.current_buffer.document.get_cursor_left_position()
        )
    else:
        action()
