"""Adds the time, notices and attachments to a person's prompt before the model sees it."""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.contracts.ids import timestamp
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

_MAX_COUNTED_BYTES = 16 * 1024 * 1024
"""Larger files are listed without their number of lines."""


class UserContext(Processor):
    """Adds context to each prompt of a person. The result is stored, so it never changes."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user":
            return prompt
        text = render_prompt(prompt.text, prompt.attachments, run.notices)
        run.notices.clear()
        return msgspec.structs.replace(prompt, transformed=text)


def render_prompt(
    text: str, attachments: Sequence[dict[str, Any]] = (), notices: Sequence[str] = ()
) -> str:
    """Return a prompt with its context."""
    blocks = [
        *_selections(attachments),
        f"<current_datetime>{timestamp()}</current_datetime>",
        *notices,
        text,
    ]
    tagged = [line for attachment in attachments if (line := _tag(attachment))]
    if tagged:
        blocks.append("\n".join(("<tagged_files>", *tagged, "</tagged_files>")))
    return "\n\n".join(blocks)


def _selections(attachments: Sequence[dict[str, Any]]) -> list[str]:
    """Return the text selected in an editor, as one element for each selection."""
    blocks = []
    for attachment in attachments:
        text = attachment.get("text")
        if attachment.get("type") == "selection" and isinstance(text, str):
            path = attachment.get("filePath") or attachment.get("displayName") or ""
            blocks.append(f'<ide_selection path="{path}">\n{text}\n</ide_selection>')
    return blocks


def _tag(attachment: dict[str, Any]) -> str | None:
    """Return a line that describes a file or directory, even if it cannot be read."""
    path = attachment.get("path")
    if attachment.get("type") not in ("file", "directory") or not isinstance(path, str):
        return None
    try:
        if os.path.isdir(path):
            return f"* {path} ({len(os.listdir(path))} items)"
        if not os.path.isfile(path) or os.path.getsize(path) > _MAX_COUNTED_BYTES:
            return f"* {path}"  # reading a FIFO would wait for a writer forever
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return f"* {path} (cannot be read: {error.strerror})"
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    selected = attachment.get("lineRange")
    if isinstance(selected, dict):
        return f"* {path} (lines {selected.get('start')}-{selected.get('end')} of {lines} lines)"
    return f"* {path} (line 1 of {lines} lines)"
