"""Wraps an image file as a result for the model."""

from binascii import b2a_base64

from trimtab.contracts.images import image_type
from trimtab.contracts.messages import Image
from trimtab.contracts.tool import ToolResult
from trimtab.tools.files import fail
from trimtab.tools.output import kilobytes

MAX_IMAGE = 5 * 1024 * 1024


def image_result(name: str, data: bytes) -> ToolResult:
    """Return an image for the model, or say that it is too large."""
    if len(data) > MAX_IMAGE:
        return fail(
            f"Image {name} is too large to be shown ({kilobytes(len(data))}); the limit is "
            f"{kilobytes(MAX_IMAGE)}. Make a smaller copy of it first.",
            "Image too large",
        )
    encoded = b2a_base64(data, newline=False).decode("ascii")
    return ToolResult(
        text="Viewed image file successfully.",
        images=(Image(data=encoded, mime_type=image_type(data) or "", name=name),),
    )
