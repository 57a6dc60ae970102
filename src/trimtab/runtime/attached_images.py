"""Images of prompts: made so that services accept them, and kept as files of the session."""

import asyncio
import os
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run


class AttachedImages(Processor):
    """Whoever attached it, a file that is an image is shown to the model as one.

    Each image is a file in `folder`, named after its content.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if not prompt.attachments:
            return prompt
        settled = [await self._settle(run, one) for one in prompt.attachments]
        return msgspec.structs.replace(prompt, attachments=tuple(settled))

    async def _settle(self, run: Run, attachment: dict[str, Any]) -> dict[str, Any]:
        from trimtab.runtime.attachments import read_image, show_image

        data = await asyncio.to_thread(read_image, attachment)
        if data is None:
            return attachment
        try:
            path = await asyncio.to_thread(self._store, data)
        except OSError as error:
            path = ""
            reason = f"An image could not be stored ({error.strerror}); make room for it."
            run.session.emit(SessionWarning(warning_type="attachment", message=reason))
        try:
            shown = await asyncio.to_thread(show_image, attachment, data)
        except UsageError as error:
            run.session.emit(SessionWarning(warning_type="attachment", message=error.message))
            return name_file(attachment, path)
        return {**shown, "path": path} if path else shown

    def _store(self, data: bytes) -> str:
        from hashlib import sha256

        from trimtab.config.files import replace_file
        from trimtab.runtime.images import find_type

        kind = (find_type(data) or "").removeprefix("image/")
        name = f"{sha256(data).hexdigest()[:32]}.{kind}"
        path = os.path.join(self._folder, name)
        if not os.path.exists(path):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            replace_file(path, data)
        return path


def name_file(attachment: dict[str, Any], path: str) -> dict[str, Any]:
    """An image no service accepts, as a file the model may look at with other means."""
    named = attachment.get("displayName") or os.path.basename(path)
    return {"type": "file", "path": attachment.get("path") or path, "displayName": named}
