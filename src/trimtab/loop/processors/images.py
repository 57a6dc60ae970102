"""A request that is too large is made once more without its images."""

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import ImagesRemoved
from trimtab.contracts.messages import Image, UserMessage
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Run


class ImageRemoval(Processor):
    """Takes the images out of the conversation, for good: it would be too large again."""

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        if error.category != "too_large":
            return False
        count = sum(
            isinstance(part, Image)
            for message in run.session.conversation.messages
            if isinstance(message, UserMessage)
            for part in message.parts
        )
        if count:
            run.session.emit(ImagesRemoved(count=count, reason=error.message))
        return count > 0
