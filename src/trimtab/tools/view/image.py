"""Recognises the image formats models can see and wraps them for the model."""

from binascii import b2a_base64

from trimtab.contracts.images import image_type
from trimtab.contracts.messages import Image
from trimtab.contracts.tool import ToolResult
from trimtab.tools.files import fail
from trimtab.tools.output import kilobytes

LARGEST = 5 * 1024 * 1024


def image_result(name: str, data: bytes) -> ToolResult | None:
    """The image for the model, or None if the bytes are no image."""
    kind = image_type(data)
    if kind is None:
        return None
    if len(data) > LARGEST:
        return fail(
            f"Image {name} is too large to be shown ({kilobytes(len(data))}); the limit is "
            f"{kilobytes(LARGEST)}. Make a smaller copy of it first.",
            "Image too large",
        )
    encoded = b2a_base64(data, newline=False).decode("ascii")
    return ToolResult(
        text="Viewed image file successfully.",
        images=(Image(data=encoded, mime_type=kind, name=name),),
    )
