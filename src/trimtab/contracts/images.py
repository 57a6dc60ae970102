"""Detects the image formats that models accept, by their first bytes."""

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
HEAD = 12
"""Bytes needed to detect the format."""


def image_type(data: bytes) -> str | None:
    """Return the media type, or None if the data is not an image that models accept."""
    if data[:4] == b"RIFF" and data[8:HEAD] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in SIGNATURES if data.startswith(start)), None)
