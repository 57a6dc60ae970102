"""The actions of the keys: sending, steering, stopping, completing, answering."""

import asyncio
import os
import re
import signal
import time
from typing import TYPE_CHECKING

from prompt_toolkit.key_binding.vi_state import InputMode

from trimtab.commands.absent import ABSENT
from trimtab.commands.table import find_command
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import count
from trimtab.host.recorded_commands import tell_model
from trimtab.host.requests import handle_request
from trimtab.transports.tui import local_commands, other_programs, own_shell
from trimtab.transports.tui.editor import Draft
from trimtab.transports.tui.keyboard import take_typed
from trimtab.transports.tui.keys import KEYS
from trimtab.transports.tui.panels import rewind_panel, search_panel
from trimtab.transports.tui.questions import Asked, explain
from trimtab.transports.tui.work_panels import edit_again, list_background

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

TWICE = 2.0
"""Seconds within which a second Ctrl-C leaves."""
ESCAPE_TWICE = 0.6
MODES = ("interactive", "plan", "autopilot")


class Actions:
    """The actions of the table of keys, on one conversation."""

    def __init__(self, tui: "Tui") -> None:
        self._tui = tui
        self._interrupted_at = 0.0
        self._escaped_at = 0.0
        self._keys = 0
        self._prefixed = -1
        self._ended_at = 0.0
        self._saved_draft = Draft()
        self._aside: Draft | None = None
        """The draft that comes back after a command typed beside it."""
        self.reports_focus = False

    def on_key(self) -> None:
        """Note that a key arrives: a question must not be answered by what follows it."""
        self._tui.asking.on_key(time.monotonic())

    def after_key(self) -> None:
        """Count the keys, after the action of each has run."""
        self._keys += 1

    def begin_prefix(self) -> None:
        """Let the next key stand for something else."""
        self._prefixed = self._keys + 1  # this key is counted after its action
        self._tui.say_briefly("Ctrl-X: e editor, / command, b background, o link, g plan, x leave")

    def in_prefix(self) -> bool:
        return self._prefixed == self._keys

    def refuse_prefix(self, key: str) -> None:
        self._tui.say_briefly(f"Ctrl-X {key} does nothing; see ? for the keys.")

    def on_failure(self, error: Exception) -> None:
        """Tell that the action of a key failed; the conversation goes on."""
        self._tui.say_failure(error)

    def on_focus(self, focused: bool) -> None:
        self.reports_focus = True
        self._tui.focused = focused

    def request_frame(self) -> None:
        self._tui.request_frame()

    def is_empty(self) -> bool:
        """Return True if nothing is typed and nothing asks for a key."""
        tui = self._tui
        return not tui.editor.text and tui.panel is None and not self.captures_keys()

    def captures_keys(self) -> bool:
        """Return True if a panel or a question takes printable keys."""
        return self._tui.panel is not None or self._tui.asking.may_answer

    def press_key(self, key: str) -> bool:
        """Give a printable key to the panel or question; return False if it is for the editor."""
        tui = self._tui
        if tui.panel is not None:
            tui.panel.type(key)
            return True
        if not tui.asking.may_answer:
            return False
        taken = tui.asking.press(key)
        self._begin_words()
        return taken

    def _begin_words(self) -> None:
        """Clear the editor for the words of an answer; the draft comes back afterwards."""
        tui = self._tui
        if not tui.asking.typing_words:
            return
        choice = tui.asking.words_for
        rule = choice.rule if choice is not None else ""
        if tui.editor.text:
            self._saved_draft = tui.editor.save()
        if tui.editor.text or rule:
            tui.editor.set(rule)

    def _send_words(self, words: str) -> None:
        tui = self._tui
        if not words:
            return
        typed = tui.editor.save()
        tui.editor.clear()
        try:
            tui.asking.send_words(words)
        except UsageError as error:
            tui.editor.restore(typed)
            tui.say_briefly(error.message)

    def end_words(self) -> None:
        """Bring the draft back after the words of an answer; words nobody reads go to history."""
        tui = self._tui
        choice = tui.asking.words_for
        words = tui.editor.expanded
        if choice is None or words != choice.rule:
            tui.history.add(words)
        draft, self._saved_draft = self._saved_draft, Draft()
        tui.editor.restore(draft)

    def press_enter(self) -> None:
        """Send, choose or confirm, whichever is open."""
        tui = self._tui
        if tui.panel is not None:
            tui.panel.choose()
        elif tui.asking.typing_words:
            self._send_words(tui.editor.expanded.strip())
        elif not tui.editor.text and tui.asking.may_answer:
            tui.asking.confirm()
            self._begin_words()
        elif self._completes():
            self.press_tab()
        elif tui.editor.text[: tui.editor.caret].endswith("\\"):
            tui.editor.buffer.delete_before_cursor(1)
            tui.editor.buffer.insert_text("\n")
        else:
            self._submit("enqueue" if tui.preferences.enter_queues else "immediate")

    def _completes(self) -> bool:
        """Return True if Enter takes a completion: the command or file is not typed in full."""
        tui = self._tui
        chosen = tui.completer.chosen
        if chosen is None or tui.editor.caret < len(tui.editor.text):
            return False
        if tui.completer.moved:
            return True
        typed = tui.editor.text[-chosen.replaced :] if chosen.replaced else ""
        if typed.startswith("/"):
            rows = local_commands.list_commands(tui)
            return typed[1:] not in {name for row in rows for name in (row.name, *row.aliases)}
        return typed.startswith("@") and chosen.text.strip() != typed

    def queue_prompt(self) -> None:
        """Queue the prompt, or steer if Enter queues."""
        self._submit("immediate" if self._tui.preferences.enter_queues else "enqueue")

    def _submit(self, mode: str) -> None:
        tui = self._tui
        if not tui.editor.text.strip():
            return
        images = tui.editor.images
        text = tui.editor.take()
        tui.app.vi_state.input_mode = InputMode.INSERT
        self._end_command()
        tui.history.add(text, images)
        self._tell_history()
        if tui.live is None:
            tui.unsent.append((text, mode, images))
            return
        self.send(text, mode, images)

    def _tell_history(self) -> None:
        """Tell once what is wrong with the file of earlier prompts."""
        tui = self._tui
        if tui.history.problem:
            tui.transcript.say(f"! {tui.history.problem}", "warning")
            tui.history.problem = ""

    def begin_command(self) -> None:
        """Put the draft aside until the command that is typed now has run."""
        tui = self._tui
        if tui.panel is None and not tui.asking.typing_words and self._aside is None:
            self._aside = tui.editor.save()
            tui.editor.set("/")

    def _end_command(self) -> bool:
        """Bring back the draft that a command stood beside; return False if there is none."""
        if self._aside is None:
            return False
        draft, self._aside = self._aside, None
        self._tui.editor.restore(draft)
        return True

    def explain(self, asked: Asked) -> None:
        """Write what is known about a question; it stays open."""
        transcript = self._tui.transcript
        transcript.blank()
        transcript.say(asked.title, "heading")
        transcript.say_pairs(explain(asked))
        transcript.blank()
        self._tui.request_frame()

    def send(self, text: str, mode: str = "enqueue", images: list[str] | None = None) -> None:
        """Run a command of the interface or the shell, or send a prompt."""
        tui = self._tui
        if own_shell.handles(text):
            tui.spawn(tui.own_shell.run(text))
        elif text.startswith("/") and local_commands.handles(tui, text):
            tui.spawn(local_commands.run(tui, text))
        else:
            self._send_prompt(text, mode, images or [])
        tui.request_frame()

    def _send_prompt(self, text: str, mode: str, images: list[str]) -> None:
        tui = self._tui
        live = tui.live
        assert live is not None
        try:
            live.check_command(text)
        except UsageError as error:
            # What is typed next would be appended to a text that came back by itself.
            tui.transcript.blank()
            tui.transcript.say(f"> {text.strip()}", "person")
            tui.transcript.say(error.message, "error")
            tui.transcript.blank()
            return
        try:
            prompt = tui.prepare(text, images, live.controls.options.cwd)
        except TrimtabError as error:
            tui.transcript.say(error.message, "error")
            if not tui.editor.text:
                tui.editor.load(text, images)
            return
        if isinstance(prompt, str):
            prompt = Prompt(text=prompt)
        if find_command(live, text) is not None:
            mode = "enqueue"  # a command waits until the agent is done
        if tui.own_output and not text.startswith("/"):  # else it would not be a command any more
            told, tui.own_output = tui.own_output, []
            prompt = tell_model(prompt, told)
        handle_request(live, prompt, mode="immediate" if mode == "immediate" else "enqueue")

    def insert_newline(self) -> None:
        if self._tui.panel is None:
            self._tui.editor.buffer.insert_text("\n")

    def send_to_background(self) -> None:
        """Send the running command to the background; if none runs, move the caret left."""
        live = self._tui.live
        sent = live.send_to_background() if live is not None else 0
        if sent:
            self._tui.say_briefly(f"{count(sent, 'command')} sent to the background.")
        else:
            self._tui.editor.buffer.cursor_left()

    def cycle_mode(self) -> None:
        """Switch to the next mode."""
        live = self._tui.live
        if live is not None:
            modes = [mode for mode in MODES if mode != "autopilot" or live.may_use_autopilot]
            following = modes[(modes.index(live.mode) + 1) % len(modes)]
            live.controls.set_mode(following)  # type: ignore[arg-type]
            self._tui.say_briefly(f"The mode is {following}.")
            self._tui.status.refresh()

    def press_tab(self) -> None:
        """Take the marked completion, or narrow a search."""
        tui = self._tui
        if tui.panel is not None:
            tui.panel.press_tab()
            return
        chosen = tui.completer.chosen
        if chosen is not None:
            buffer = tui.editor.buffer
            buffer.save_to_undo_stack()
            buffer.delete_before_cursor(chosen.replaced)
            buffer.insert_text(chosen.text)

    def press_up(self) -> None:
        self._move(-1)

    def press_down(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        tui = self._tui
        if tui.panel is not None:
            tui.panel.move(step)
        elif tui.completer.menu is not None:
            tui.completer.move(step)
        elif tui.asking.may_answer and not tui.editor.text:
            tui.asking.move(step)
        elif step < 0 and not tui.editor.text and self._take_back():
            return
        elif step < 0:
            tui.editor.go_up()
        else:
            tui.editor.go_down()
        self._tell_history()
        tui.request_frame()

    def _take_back(self) -> bool:
        """Bring the last waiting prompt back into the editor; return False if none waits."""
        live = self._tui.live
        if live is None:
            return False
        waiting = [*live.inbox.held, *live.inbox.pending]
        for prompt in reversed(waiting):
            if live.inbox.withdraw(prompt.message_id, "taken back"):
                edit_again(self._tui, prompt)
                return True
        return False

    def search_history(self) -> None:
        tui = self._tui
        if tui.panel is None:
            tui.panel = search_panel(tui)
            self._tell_history()
            tui.request_frame()

    def search_conversation(self) -> None:
        """Search this conversation; with a draft, move the caret right."""
        tui = self._tui
        if tui.editor.text:
            tui.editor.buffer.cursor_right()
        elif tui.panel is None and tui.live is not None:
            tui.spawn(local_commands.search(tui, ""))

    def show_goal(self) -> None:
        """Show the plan of the session."""
        if self._tui.live is not None:
            self._tui.spawn(local_commands.run(self._tui, "/session plan"))

    def open_link(self) -> None:
        """Open the last address of the conversation."""
        self._tui.spawn(other_programs.open_link(self._tui))

    def refuse_voice(self) -> None:
        self._tui.say_briefly(ABSENT["voice"])

    def stash_draft(self) -> None:
        if remark := self._tui.editor.stash():
            self._tui.say_briefly(remark)

    def paste(self, text: str) -> None:
        tui = self._tui
        if tui.panel is not None:
            tui.panel.type(text.split("\n", maxsplit=1)[0])
            return
        if not text and tui.live is not None and tui.live.has_feature("IMAGE_PASTE_FALLBACK"):
            self.paste_image()  # a terminal pastes nothing if the clipboard has only an image
            return
        path = text.strip().strip("'\"")
        if "\n" not in path and re.search(r"\.(png|jpe?g|gif|webp)$", path, re.IGNORECASE):
            absolute = os.path.expanduser(path.replace("\\ ", " "))
            absolute = os.path.join(tui.terminal.cwd, absolute)
            if os.path.isfile(absolute):
                tui.editor.attach_image(absolute, other_programs.describe_image(absolute))
                return
        tui.editor.paste(text)

    def paste_image(self) -> None:
        """Attach the image in the clipboard."""
        self._tui.spawn(other_programs.attach_clipboard(self._tui))

    def erase(self) -> None:
        tui = self._tui
        if tui.panel is not None:
            tui.panel.erase()
        else:
            tui.editor.erase()

    def undo_edit(self) -> None:
        self._tui.editor.buffer.undo()

    def open_editor(self) -> None:
        self._tui.spawn(other_programs.edit_draft(self._tui))

    def edit_plan(self) -> None:
        """Open the plan that is asked about in the person's editor."""
        self._tui.spawn(other_programs.edit_plan(self._tui))

    def open_folded(self) -> None:
        """Open the newest folded thing in a pager; in a paste, expand it instead."""
        tui = self._tui
        if tui.editor.expand_paste():
            return
        if tui.transcript.folded:
            tui.spawn(other_programs.page(tui, tui.transcript.folded[::-1]))
        else:
            tui.say_briefly("Nothing is folded yet.")

    def press_end(self) -> None:
        """Go to the end of the line; in an empty editor open what is folded."""
        buffer = self._tui.editor.buffer
        if buffer.text:
            buffer.cursor_position += buffer.document.get_end_of_line_position()
        else:
            self.open_folded()

    def open_reasoning(self) -> None:
        tui = self._tui
        thoughts = [item for item in tui.transcript.folded if item[0].startswith("thought")]
        if thoughts:
            tui.spawn(other_programs.page(tui, thoughts[-1:]))
        else:
            tui.say_briefly("There is no reasoning to show.")

    def repaint(self) -> None:
        """Paint the live rows again, in case another program wrote over them."""
        tui = self._tui
        tui.screen.write(tui.painter.erase())
        tui.request_frame()

    def show_keys(self) -> None:
        """Write the table of keys."""
        tui = self._tui
        tui.transcript.blank()
        for group, keys in KEYS.items():
            tui.transcript.say(group, "heading")
            tui.transcript.say_pairs(
                [(key.shown, key.help.replace("`", "")) for key in keys if key.shown]
            )
        tui.transcript.blank()
        tui.request_frame()

    def press_escape(self) -> None:
        """Undo one thing: menu, panel, question, turn, own command; twice: rewind."""
        tui = self._tui
        now = time.monotonic()
        if tui.completer.menu is not None:
            tui.completer.close()
        elif tui.panel is not None:
            self._close_panel()
        elif tui.asking.current is not None:
            if tui.asking.may_answer or tui.asking.typing_words:
                tui.asking.escape()
        elif tui.busy:
            self._stop_turn()
        elif not tui.own_shell.stop(signal.SIGTERM) and not self._end_command():
            self._escape_idle(now)
        tui.request_frame()

    def _escape_idle(self, now: float) -> None:
        """Esc twice clears the draft, or rewinds if there is none."""
        tui = self._tui
        if now - self._escaped_at >= ESCAPE_TWICE:
            self._escaped_at = now
            what = "clear the draft" if tui.editor.text else "rewind"
            tui.say_briefly(f"Esc again to {what}.")
            return
        self._escaped_at = 0.0
        if tui.editor.text:
            self._clear_draft()
        else:
            self.rewind()

    def _clear_draft(self) -> None:
        tui = self._tui
        tui.editor.remember()
        tui.editor.clear()
        if not self._end_command():
            tui.say_briefly("The draft is in the history: Up brings it back.")

    def keep_drafts(self) -> bool:
        """Put what is typed and not sent into the history; return True if there was something."""
        editor, kept = self._tui.editor, False
        for draft in (self._saved_draft, self._aside or Draft(), editor.save()):
            editor.restore(draft)
            if editor.text.strip():
                editor.remember()
                editor.clear()
                kept = True
        return kept

    def closes_by_escape(self) -> bool:
        """Return True if Esc has something to close before it changes the mode of vi keys."""
        tui = self._tui
        open_now = tui.completer.menu or tui.panel or tui.asking.current
        return open_now is not None

    def _close_panel(self) -> None:
        panel, self._tui.panel = self._tui.panel, None
        if panel is not None:
            panel.on_close()

    def rewind(self) -> None:
        """Open the picker of turns to return to."""
        self._tui.panel = rewind_panel(self._tui)
        self._tui.request_frame()

    def _stop_turn(self) -> None:
        live = self._tui.live
        if live is not None:
            live.stop()

    def interrupt(self) -> None:
        """Stop the turn, then clear the draft, then leave."""
        tui = self._tui
        now = time.monotonic()
        last, self._interrupted_at = self._interrupted_at, 0.0
        if tui.panel is not None:
            self._close_panel()
        elif tui.busy:
            self._stop_turn()
        elif tui.own_shell.stop(signal.SIGINT):
            pass
        elif tui.editor.text:
            self._clear_draft()
        elif now - last < TWICE:
            tui.leave()
        else:
            self._interrupted_at = now
            tui.say_briefly("Ctrl-C again to leave.")
        tui.request_frame()

    def press_eof(self) -> None:
        """Leave if nothing is typed; else delete the character under the caret."""
        tui = self._tui
        now = time.monotonic()
        last, self._ended_at = self._ended_at, 0.0
        if tui.editor.text:
            tui.editor.buffer.delete()
        elif (names := list_background(tui)) and now - last >= TWICE:
            self._ended_at = now
            named = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            runs, them = ("runs", "it") if len(names) == 1 else ("run", "them")
            tui.say_briefly(f"{named} still {runs}; Ctrl-D again stops {them} and leaves.")
        else:
            tui.leave()

    def suspend(self) -> None:
        """Stop the program as the shell's job control does, and come back with `fg`.

        Keys that arrived together with this one were meant for the shell. They cannot be given
        back, so they join the draft; Enter among them must not send it.
        """
        if (text := take_typed(self._tui.app)) and self._tui.panel is None:
            self._tui.editor.buffer.insert_text(text)
        asyncio.get_running_loop().call_soon(other_programs.suspend, self._tui)
