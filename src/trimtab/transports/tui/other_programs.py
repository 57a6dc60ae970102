"""Hands the terminal to another program: an editor, a pager, the shell's job control."""

import asyncio
import base64
import os
import shlex
import shutil
import signal
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.attachments.clipboard import read_clipboard
from trimtab.contracts.messages import AssistantMessage
from trimtab.contracts.text import neutralise
from trimtab.providers.image_size import HEAD, measure_image
from trimtab.transports.tui.links import find_last_address
from trimtab.transports.tui.screen import Attributes

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

NEWEST_FIRST = "The newest first; q leaves, / searches"
"""Says in `less` how to leave it; the name of a file would say nothing."""
_MAGIC = {".png": b"\x89PNG", ".jpg": b"\xff\xd8", ".gif": b"GIF8", ".webp": b"RIFF"}


def suspend(tui: "Tui") -> None:
    """Stop the process group as Ctrl-Z does; when it goes on, paint anew."""
    raw = release(tui)
    os.kill(0, signal.SIGTSTP)
    retake(tui, raw)


def release(tui: "Tui") -> Attributes | None:
    """Give up the terminal as it was found; return the attributes to set again."""
    tui.paused = True
    tui.screen.write(tui.painter.erase())
    try:
        raw: Attributes | None = termios.tcgetattr(0)
    except termios.error:
        raw = None
    tui.screen.restore()
    return raw


def retake(tui: "Tui", raw: Attributes | None) -> None:
    """Take the terminal again, without assuming where its cursor is."""
    if raw is not None:
        termios.tcsetattr(0, termios.TCSANOW, raw)
    tui.paused = False
    tui.painter.forget()
    tui.screen.begin()
    tui.request_frame()


async def run_program(tui: "Tui", command: Sequence[str], cwd: str | None = None) -> int:
    """Run a program in the terminal; keys go to it and no frame is painted meanwhile."""
    raw = release(tui)
    try:
        with tui.terminal.input.detach():
            process = await asyncio.create_subprocess_exec(*command, env=tui.terminal.env, cwd=cwd)
            return await process.wait()
    finally:
        retake(tui, raw)


def find_editor(tui: "Tui") -> list[str]:
    """Return the person's editor."""
    env = tui.terminal.env
    names = ("COPILOT_EDITOR", "VISUAL", "EDITOR")
    return shlex.split(next((env[name] for name in names if env.get(name)), "vi"))


async def edit_text(tui: "Tui", text: str, suffix: str = ".md") -> str | None:
    """Return the text as the person's editor left it; None if it could not be run."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False) as file:
        file.write(text)
    try:
        code = await run_program(tui, [*find_editor(tui), file.name])
        if code:
            tui.transcript.say(f"The editor ended with code {code}; the draft is unchanged.", "dim")
            return None
        return await asyncio.to_thread(read_text, file.name)
    except OSError as error:
        problem = f"The editor cannot be run: {error.strerror}; set VISUAL or EDITOR."
        tui.transcript.say(problem, "error")
        return None
    finally:
        os.unlink(file.name)


def read_text(path: str) -> str:
    """Return the text of a file without its last line break."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().removesuffix("\n")


async def edit_draft(tui: "Tui") -> None:
    """Edit the draft in the person's editor."""
    edited = await edit_text(tui, tui.editor.expanded)
    if edited is not None:
        tui.editor.set(edited)


async def edit_plan(tui: "Tui") -> None:
    """Edit the session's plan in place; the agent reads it from its file."""
    assert tui.live is not None
    code = await run_program(tui, [*find_editor(tui), tui.live.folder.plan])
    if code:
        tui.transcript.say(f"The editor ended with code {code}.", "dim")
        return
    tui.transcript.say("The plan is now:", "heading")
    tui.transcript.add_markdown(tui.live.folder.read_plan() or "")
    tui.request_frame()


async def page(tui: "Tui", texts: Sequence[tuple[str, str]], prompt: str = NEWEST_FIRST) -> None:
    """Show texts with their titles in a pager; `prompt` stands in its last row."""
    shown = "\n\n".join(f"── {neutralise(title)}\n\n{text}" for title, text in texts)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False, errors="replace") as file:
        file.write(f"{shown}\n")  # a pager like `cat` would leave the cursor in the last line
    command = shlex.split(tui.terminal.env.get("PAGER") or "less")
    if command[:1] == ["less"]:
        command.append(f"-P{prompt}")
    try:
        await run_program(tui, [*command, file.name])
    except OSError as error:
        tui.transcript.say(
            f"The pager cannot be run: {error.strerror}; set PAGER to a program you have.", "error"
        )
    finally:
        os.unlink(file.name)


async def open_link(tui: "Tui") -> None:
    """Open the last address of the conversation in a browser; without one, copy it."""
    assert tui.live is not None
    messages = reversed(tui.live.projections.conversation.messages)
    address = find_last_address(
        message.text for message in messages if isinstance(message, AssistantMessage)
    )
    if not address:
        tui.say_briefly("There is no address in this conversation.")
        return
    env = tui.terminal.env
    opener = shlex.split(env.get("BROWSER", "")) or find_opener(env)
    if not opener:
        copy_text(tui, address)
        tui.say_briefly(f"No browser is known (set BROWSER); {address} is copied.")
        return
    silent = asyncio.subprocess.DEVNULL
    try:
        await asyncio.create_subprocess_exec(
            *opener,
            address,
            env=env,
            stdin=silent,
            stdout=silent,
            stderr=silent,
            start_new_session=True,
        )
    except OSError as error:
        tui.transcript.say(
            f"{opener[0]} cannot be run: {error.strerror}; set BROWSER to a program you have.",
            "error",
        )
        return
    tui.say_briefly(f"Opening {address} …")


def find_opener(env: Mapping[str, str]) -> list[str]:
    """Return the desktop's program that opens addresses; empty where there is no desktop."""
    if sys.platform == "darwin":
        return ["open"]
    has_desktop = env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")
    found = shutil.which("xdg-open", path=env.get("PATH")) if has_desktop else None
    return [found] if found else []


def copy_text(tui: "Tui", text: str) -> None:
    """Copy a text to the clipboard through the terminal (OSC 52)."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    tui.screen.write(f"\x1b]52;c;{data}\x07")


async def attach_clipboard(tui: "Tui") -> None:
    """Attach the image in the clipboard; text is pasted."""
    data = await asyncio.to_thread(read_clipboard)
    suffix = next((name for name, magic in _MAGIC.items() if data.startswith(magic)), "")
    if not suffix:
        tui.editor.paste(data.decode("utf-8", "replace"))
        return
    assert tui.live is not None
    folder = tui.live.folder.files
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "wb", dir=folder, prefix="clipboard-", suffix=suffix, delete=False
    ) as file:
        file.write(data)
    tui.editor.attach_image(file.name, describe_image(file.name))


def describe_image(path: str) -> str:
    """Return the size of an image in pixels; its name if the size cannot be read."""
    try:
        with open(path, "rb") as file:
            size = measure_image(file.read(HEAD))
    except OSError:
        size = None
    return (
        f"{size[0]}\u00d7{size[1]}" if size else neutralise(os.path.basename(path)).replace("]", "")
    )
