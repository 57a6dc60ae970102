"""Reads the width and height of an image from its first bytes."""

import struct
from base64 import b64decode

HEAD = 64 * 1024


def image_size(url: str) -> tuple[int, int] | None:
    """Return width and height; None if the URL or image is invalid or of an unknown format."""
    head, comma, text = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    try:
        return measure_image(b64decode(text[:HEAD]))
    except ValueError:
        return None


def measure_image(head: bytes) -> tuple[int, int] | None:
    """Return width and height of the image that begins with these bytes; None if unknown."""
    try:
        size = _size(head)
    except (struct.error, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        width, height = struct.unpack_from("<HH", data, 6)
        return width, height
    if data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Skip the segments up to the frame header, which contains the size."""
    offset = 2
    while data[offset] == 0xFF:
        kind, length = data[offset + 1], struct.unpack_from(">H", data, offset + 2)[0]
        if 0xC0 <= kind <= 0xCF and kind not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", data, offset + 5)
            return width, height
        offset += 2 + length
    return None
