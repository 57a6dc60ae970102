"""Adds the time, notices and attachments to a person's prompt before the model sees it."""

import os
import stat
from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.contracts.ids import timestamp
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

_MAX_INLINE_TEXT = 64 * 1024
"""Longer inline attachments are stored as files that the model can view."""
_ABOUT = ("path", "message", "name", "jobName", "description")
"""Fields that describe something on GitHub, the first that is set is shown."""
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
        *_contexts(attachments),
        f"<current_datetime>{timestamp()}</current_datetime>",
        *notices,
        text,
    ]
    references = [line for attachment in attachments if (line := _refer(attachment))]
    if references:
        blocks.append("\n".join(("<github_references>", *references, "</github_references>")))
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
            where = f"File: {path}{_name_lines(attachment.get('selection'))}"
            blocks.append(f"<ide_selection>\n{where}\n```\n{text}\n```\n</ide_selection>")
    return blocks


def _name_lines(selection: Any) -> str:
    """Return the lines of a selection, which editors count from 0; empty if it has none."""
    match selection:
        case {"start": {"line": int(first)}, "end": {"line": int(last)}}:
            return f" ({_name_range(first + 1, last + 1)})"
    return ""


def _name_range(first: object, last: object) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _contexts(attachments: Sequence[dict[str, Any]]) -> list[str]:
    """Return inline text and the context of extensions, as one element for each."""
    blocks = []
    for attachment in attachments:
        name = attachment.get("displayName") or attachment.get("title") or ""
        if attachment.get("type") == "extension_context":
            payload = msgspec.json.format(msgspec.json.encode(attachment.get("payload"))).decode()
            blocks.append(f'<extension_context title="{name}">\n{payload}\n</extension_context>')
        elif (text := read_text_blob(attachment)) is not None:
            blocks.append(f'<attachment name="{name}">\n{text}\n</attachment>')
    return blocks


def read_text_blob(attachment: dict[str, Any]) -> str | None:
    """Return the text of an inline attachment; None if it is not text or too long."""
    data, mime_type = attachment.get("data"), str(attachment.get("mimeType"))
    if attachment.get("type") != "blob" or not isinstance(data, str):
        return None
    if mime_type.startswith("image/") or len(data) > _MAX_INLINE_TEXT:
        return None
    try:
        text = a2b_base64(data).decode("utf-8")
    except (ValueError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text


def _refer(attachment: dict[str, Any]) -> str | None:
    """Return a line that describes something on GitHub."""
    kind = str(attachment.get("type"))
    if not kind.startswith("github_"):
        return None
    if kind == "github_reference":
        what = f"{attachment.get('referenceType')} #{attachment.get('number')}"
        state = attachment.get("state")
        about = f"{attachment.get('title')} ({state})" if state else attachment.get("title")
    else:
        what = kind.removeprefix("github_").replace("_", " ")
        about = next((attachment[name] for name in _ABOUT if attachment.get(name)), None)
    described = f"{what}: {about}" if about else what
    return f"* {described} {attachment.get('url') or ''}".rstrip()


def _tag(attachment: dict[str, Any]) -> str | None:
    """Return a line that describes a file or directory, even if it cannot be read."""
    path = attachment.get("path")
    if attachment.get("type") not in ("file", "directory") or not isinstance(path, str):
        return None
    try:
        if os.path.isdir(path):
            return f"* {path} ({len(os.listdir(path))} items)"
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) > _MAX_COUNTED_BYTES:
            return f"* {path}"  # reading a FIFO would wait for a writer forever
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return f"* {path} (cannot be read: {error.strerror})"
    # As `view` numbers them: a newline at the end begins a last, empty line.
    lines = data.count(b"\n") + 1 if data else 0
    selected = attachment.get("lineRange")
    if isinstance(selected, dict):
        part = _name_range(selected.get("start"), selected.get("end"))
        return f"* {path} ({part} of {lines} lines)"
    return f"* {path} ({lines} lines)"
