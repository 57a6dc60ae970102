"""The slash command `/queue`: lists, edits, moves, sends and drops waiting prompts."""

from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import count

if TYPE_CHECKING:
    from trimtab.commands.table import Invocation
    from trimtab.contracts.events.own import PromptQueued
    from trimtab.runtime.live import LiveSession

_PREVIEW_LENGTH = 100
"""The number of characters `/queue` shows of each prompt."""
QUEUE = "[list | edit N TEXT | move N TO | send [N] | drop [N] | pause | resume]"


async def change_queue(invocation: "Invocation") -> str:
    """List the waiting prompts; edit, move, send or drop one; pause the queue or let it go on."""
    live, inbox = invocation.live, invocation.live.inbox
    action, _, rest = invocation.arguments.partition(" ")
    waiting = [*inbox.held, *inbox.pending]
    if action in ("pause", "resume"):
        inbox.pause(paused=action == "pause")
        live.wake()
        return "The queue is paused." if inbox.paused else "The queue goes on."
    if action in ("edit", "move"):
        return edit_queue(live, action, waiting, rest.strip())
    if action == "send":
        held = inbox.held
        chosen = choose_prompts(waiting if rest.strip() else held, rest.strip())
        for prompt in chosen:
            if live.busy and prompt not in held:
                inbox.steer(prompt.message_id)
        inbox.release(prompt.message_id for prompt in chosen)
        live.wake()
        return f"{count(len(chosen), 'prompt')} sent."
    if action in ("drop", "remove"):
        chosen = choose_prompts(waiting, rest.strip())
        for prompt in chosen:
            inbox.withdraw(prompt.message_id, "dropped")
        return f"{count(len(chosen), 'prompt')} dropped."
    if action not in ("", "list"):
        raise UsageError(f"Unknown argument {action!r}; write /queue {QUEUE}.")
    return list_queue(waiting, paused=inbox.paused)


def list_queue(waiting: "list[PromptQueued]", *, paused: bool) -> str:
    if not waiting:
        return (
            "No prompts are waiting; the queue is paused." if paused else "No prompts are waiting."
        )
    lines = [f"{number:>3}  {_first_line(prompt)}" for number, prompt in enumerate(waiting, 1)]
    if paused:
        lines.append("The queue is paused; let it go on with /queue resume.")
    return "\n".join((*lines, "Send them with /queue send [N], drop them with /queue drop [N]."))


def edit_queue(
    live: "LiveSession", action: str, waiting: "list[PromptQueued]", arguments: str
) -> str:
    """Change the text of a waiting prompt, or its place."""
    number, _, value = arguments.partition(" ")
    value = value.strip()
    if not number or not value:
        raise UsageError(f"Something is missing; write /queue {QUEUE}.")
    (prompt,) = choose_prompts(waiting, number)
    if action == "edit":
        live.inbox.edit(prompt.message_id, value)
        return f"Prompt {number} was changed."
    if not value.isdecimal() or not 1 <= int(value) <= len(waiting):
        raise UsageError(f"There is no place {value} in the queue; list it with /queue.")
    live.inbox.move(prompt.message_id, int(value) - 1)
    return f"Prompt {number} is now number {value}."


def choose_prompts(prompts: "list[PromptQueued]", number: str) -> "list[PromptQueued]":
    """Return the prompt with a number, or all prompts if none is given."""
    if not prompts:
        raise UsageError("No prompts are waiting; type one.")
    if not number:
        return prompts
    if not number.isdecimal() or not 1 <= int(number) <= len(prompts):
        raise UsageError(f"No waiting prompt has the number {number}; list them with /queue.")
    return [prompts[int(number) - 1]]


def _first_line(prompt: "PromptQueued") -> str:
    return shorten(prompt.display or prompt.text)


def shorten(prompt: str) -> str:
    text = " ".join(prompt.split())
    return text if len(text) <= _PREVIEW_LENGTH else f"{text[: _PREVIEW_LENGTH - 1]}…"
