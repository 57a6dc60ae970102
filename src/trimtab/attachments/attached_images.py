"""Images of prompts: made so that services accept them, and kept as files of the session."""

import asyncio
import os
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.permissions.processor import Permissions


class AttachedImages(Processor):
    """Whoever attached it, a file that is an image is shown to the model as one.

    Each image is a file in `folder`, named after its content. The model may look at that file and
    at the one a person attached again. What must not be read is not attached.
    """

    def __init__(self, folder: str, permissions: Permissions) -> None:
        self._folder = folder
        self._permissions = permissions

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if not prompt.attachments:
            return prompt
        settled = []
        for one in prompt.attachments:
            if self._refuse(run, one):
                continue
            shown = await self._settle(run, one)
            # What came back as it was is no image.
            if shown is not one and prompt.source == "user":
                for path in (one.get("path"), shown.get("path")):
                    if isinstance(path, str):
                        self._permissions.trust_image(path)
            settled.append(shown)
        return msgspec.structs.replace(prompt, attachments=tuple(settled))

    def _refuse(self, run: Run, attachment: dict[str, Any]) -> bool:
        """Whether a rule keeps an attachment from being read; says so."""
        for path in (attachment.get("path"), attachment.get("filePath")):
            why = self._permissions.find_objection(path) if isinstance(path, str) else ""
            if why:
                message = f"{path} was not attached. {why}"
                run.session.emit(SessionWarning(warning_type="attachment", message=message))
                return True
        return False

    async def _settle(self, run: Run, attachment: dict[str, Any]) -> dict[str, Any]:
        from trimtab.attachments.attach import read_image, show_image

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

        from trimtab.attachments.images import find_type
        from trimtab.config.files import replace_file

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
