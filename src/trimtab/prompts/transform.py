"""What is put around a user's words before the model sees them."""

import os
from collections.abc import Sequence
from typing import Any

from trimtab.contracts.ids import timestamp
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

_COUNTED = 16 * 1024 * 1024
"""Files larger than this are named without the number of their lines."""


class UserContext(Processor):
    """Adds the time and what is attached to a prompt.

    The result is stored, so what the model saw never changes.
    """

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user":
            return prompt
        import msgspec

        shown = render_prompt(prompt.text, prompt.attachments, run.notices)
        run.notices.clear()
        return msgspec.structs.replace(prompt, transformed=shown)


def render_prompt(
    text: str, attachments: Sequence[dict[str, Any]] = (), notices: Sequence[str] = ()
) -> str:
    """A person's words as the model is shown them now."""
    blocks = [
        *_selections(attachments),
        f"<current_datetime>{timestamp()}</current_datetime>",
        *notices,
        text,
    ]
    tagged = [line for one in attachments if (line := _tag(one))]
    if tagged:
        blocks.append("\n".join(("<tagged_files>", *tagged, "</tagged_files>")))
    return "\n\n".join(blocks)


def _selections(attachments: Sequence[dict[str, Any]]) -> list[str]:
    """The text a person marked in an editor."""
    blocks = []
    for one in attachments:
        if one.get("type") == "selection" and isinstance(one.get("text"), str):
            path = one.get("filePath") or one.get("displayName") or ""
            blocks.append(f'<ide_selection path="{path}">\n{one["text"]}\n</ide_selection>')
    return blocks


def _tag(attachment: dict[str, Any]) -> str | None:
    """A file or directory as one line; a file that cannot be read is named all the same."""
    path = attachment.get("path")
    if attachment.get("type") not in ("file", "directory") or not isinstance(path, str):
        return None
    try:
        if os.path.isdir(path):
            return f"* {path} ({len(os.listdir(path))} items)"
        if not os.path.isfile(path) or os.path.getsize(path) > _COUNTED:
            return f"* {path}"  # reading a FIFO would wait for a writer for ever
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return f"* {path} (cannot be read: {error.strerror})"
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    wanted = attachment.get("lineRange")
    if isinstance(wanted, dict):
        return f"* {path} (lines {wanted.get('start')}-{wanted.get('end')} of {lines} lines)"
    return f"* {path} (line 1 of {lines} lines)"
