"""Detects images by their content, and shrinks them for model services."""

import io
from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.images import image_type
from trimtab.tools.view.image import MAX_IMAGE

if TYPE_CHECKING:
    from PIL.Image import Image

BMP = "image/bmp"
LONGEST_SIDE = 2000
"""In pixels. Services scale larger images down, but charge for them."""
ADVICE = (
    "convert it to a smaller PNG or JPEG, or install trimtab[images] to convert it automatically"
)


def find_type(data: bytes) -> str | None:
    """Return the media type of an image; None for anything else."""
    # Many texts begin with "BM": a bitmap also has its own size in bytes 2 to 5.
    if data[:2] == b"BM" and int.from_bytes(data[2:6], "little") == len(data):
        return BMP
    return image_type(data)


def fit_image(data: bytes, name: str) -> tuple[bytes, str]:
    """Return an image that services accept and its type: the original or a smaller copy."""
    kind = find_type(data)
    if kind is None:
        raise UsageError(f"{name} is not an image; attach a PNG, JPEG, GIF, WebP or BMP file.")
    if kind != BMP and len(data) <= MAX_IMAGE:
        return data, kind
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        reason = "BMP is not accepted by model services" if kind == BMP else "it is too large"
        raise UsageError(f"{name} cannot be attached: {reason}; {ADVICE}.") from None
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _shrink(image)
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise UsageError(f"{name} cannot be read as an image ({error}); attach another.") from None


def _shrink(image: "Image") -> tuple[bytes, str]:
    """Reduce the number of pixels until the file is small enough."""
    is_transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    side, kind = LONGEST_SIDE, "PNG" if is_transparent else "JPEG"
    converted = image.convert("RGBA" if is_transparent else "RGB")
    while True:
        converted.thumbnail((side, side))
        encoded = io.BytesIO()
        converted.save(encoded, kind)
        if encoded.tell() <= MAX_IMAGE or side < 64:
            return encoded.getvalue(), f"image/{kind.lower()}"
        side //= 2
