"""Converts the images of prompts for model services, and stores them in the session's folder."""

import asyncio
import os
from typing import Any

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.permissions.processor import Permissions
from trimtab.prompts.transform import read_text_blob


class AttachedImages(Processor):
    """Shows attached files that are images to the model as images.

    Each image is stored in `folder`, named after its content. The model may read that file and
    the person's file again. Files that a rule denies to read are not attached.
    """

    def __init__(self, folder: str, permissions: Permissions) -> None:
        self._folder = folder
        self._permissions = permissions

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if not prompt.attachments:
            return prompt
        converted = []
        for attachment in prompt.attachments:
            if self._refuse(run, attachment):
                continue
            shown = await self._convert(run, attachment)
            # An attachment that is returned unchanged is not an image.
            if shown is not attachment and prompt.source == "user":
                for path in (attachment.get("path"), shown.get("path")):
                    if isinstance(path, str):
                        self._permissions.trust_image(path)
            converted.append(shown)
        return msgspec.structs.replace(prompt, attachments=tuple(converted))

    def _refuse(self, run: Run, attachment: dict[str, Any]) -> bool:
        """Return True and warn if a rule denies reading an attachment."""
        for path in (attachment.get("path"), attachment.get("filePath")):
            why = self._permissions.find_objection(path) if isinstance(path, str) else ""
            if why:
                message = f"{path} was not attached. {why}"
                run.session.emit(SessionWarning(warning_type="attachment", message=message))
                return True
        return False

    async def _convert(self, run: Run, attachment: dict[str, Any]) -> dict[str, Any]:
        from trimtab.attachments.attach import read_image, show_image

        data = await asyncio.to_thread(read_image, attachment)
        if data is None:
            return await asyncio.to_thread(self._store_blob, run, attachment)
        try:
            path = await asyncio.to_thread(self._store, data)
        except OSError as error:
            path = ""
            reason = (
                f"An image could not be stored ({error.strerror}); free some space on the disk."
            )
            run.session.emit(SessionWarning(warning_type="attachment", message=reason))
        try:
            shown = await asyncio.to_thread(show_image, attachment, data)
        except UsageError as error:
            run.session.emit(SessionWarning(warning_type="attachment", message=error.message))
            return name_file(attachment, path)
        return {**shown, "path": path} if path else shown

    def _store_blob(self, run: Run, attachment: dict[str, Any]) -> dict[str, Any]:
        """Return inline data that cannot be shown as text as a file that the model can view."""
        from trimtab.attachments.attach import decode_blob

        is_image = str(attachment.get("mimeType")).startswith("image/")
        if attachment.get("type") != "blob" or is_image or read_text_blob(attachment) is not None:
            return attachment
        name = os.path.basename(str(attachment.get("displayName") or "attachment"))
        folder = os.path.join(os.path.dirname(self._folder), "attachments")
        path = os.path.join(folder, name)
        try:
            data = decode_blob(attachment)
            os.makedirs(folder, mode=0o700, exist_ok=True)
            replace_file(path, data)
        except (OSError, UsageError) as error:
            message = f"The attachment {name} was not attached: {error}"
            run.session.emit(SessionWarning(warning_type="attachment", message=message))
            return {"type": "file", "path": name, "displayName": name}
        return {"type": "file", "path": path, "displayName": name}

    def _store(self, data: bytes) -> str:
        from hashlib import sha256

        from trimtab.attachments.images import find_type

        kind = (find_type(data) or "").removeprefix("image/")
        name = f"{sha256(data).hexdigest()[:32]}.{kind}"
        path = os.path.join(self._folder, name)
        if not os.path.exists(path):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            replace_file(path, data)
        return path


def name_file(attachment: dict[str, Any], path: str) -> dict[str, Any]:
    """Return an image that no service accepts as a file, for the model to open otherwise."""
    named = attachment.get("displayName") or os.path.basename(path)
    return {"type": "file", "path": attachment.get("path") or path, "displayName": named}
