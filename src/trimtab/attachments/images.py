"""Images people attach: known by their content, made small enough for model services."""

import io
from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.images import image_type
from trimtab.tools.view.image import LARGEST

if TYPE_CHECKING:
    from PIL.Image import Image

BMP = "image/bmp"
LONGEST_SIDE = 2000
"""Pixels. Services scale down what is larger, so more would be paid for and not seen."""
ADVICE = "make a smaller PNG or JPEG of it, or install trimtab[images] to have that done"


def find_type(data: bytes) -> str | None:
    """The type of an image, whatever its file is called; None for anything else."""
    # "BM" begins many texts: a bitmap also has its own size in bytes 2 to 5.
    if data[:2] == b"BM" and int.from_bytes(data[2:6], "little") == len(data):
        return BMP
    return image_type(data)


def fit_image(data: bytes, name: str) -> tuple[bytes, str]:
    """An image services accept, and its type: the one given, or a smaller copy."""
    kind = find_type(data)
    if kind is None:
        raise UsageError(f"{name} is no image; attach a PNG, JPEG, GIF, WebP or BMP file.")
    if kind != BMP and len(data) <= LARGEST:
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
    """Fewer pixels, then fewer again, until the file is small enough."""
    seen_through = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    side, kind = LONGEST_SIDE, "PNG" if seen_through else "JPEG"
    plain = image.convert("RGBA" if seen_through else "RGB")
    while True:
        plain.thumbnail((side, side))
        written = io.BytesIO()
        plain.save(written, kind)
        if written.tell() <= LARGEST or side < 64:
            return written.getvalue(), f"image/{kind.lower()}"
        side //= 2
