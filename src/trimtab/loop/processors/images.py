"""Removes the images from a conversation that is too large, so that the call can be retried."""

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import ImagesRemoved
from trimtab.contracts.messages import Image, UserMessage
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Run


class ImageRemoval(Processor):
    """Removes images permanently, since the conversation would be too large again."""

    async def before_request(self, run: Run) -> Stop | None:
        limit = run.agent.model.byte_limit
        if run.measured is not None and run.measured.size > limit:
            remove_images(run, f"The conversation is larger than {limit:,} bytes.")
        return None

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        return error.category == "too_large" and remove_images(run, error.message)


def remove_images(run: Run, reason: str) -> bool:
    """Remove all images; return False if there were none."""
    count = count_images(run)
    if count:
        run.session.emit(ImagesRemoved(count=count, reason=reason))
    return count > 0


def count_images(run: Run) -> int:
    return sum(
        isinstance(part, Image)
        for message in run.session.conversation.messages
        if isinstance(message, UserMessage)
        for part in message.parts
    )
