"""Images that SDK clients attach."""

import base64
import io

import pytest
from PIL import Image

from sdkkit import Sdk, talking


def picture(kind: str) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (8, 8), 100).save(written, kind)
    return written.getvalue()


@pytest.mark.proves("VSC-14")
@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp", "bmp"])
async def test_images_are_kept_as_files_of_the_session(sdk: Sdk, kind: str) -> None:
    data = picture(kind)
    (sdk.cwd / "picture").write_bytes(data)
    attachments = [
        {"type": "file", "path": str(sdk.cwd / "picture"), "displayName": "picture"},
        {"type": "blob", "data": base64.b64encode(data).decode(), "mimeType": f"image/{kind}"},
    ]
    async with talking(sdk, [{"text": "ok"}]) as talk:
        await talk.say("look", attachments=attachments)
        parts = talk.shown()[-1]["content"]
    shown = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    accepted = "jpeg" if kind == "bmp" else kind
    assert len(shown) == 2
    assert all(one.startswith(f"data:image/{accepted};base64,") for one in shown)
    (kept,) = sdk.home.glob("session-state/*/files/images/*")
    assert kept.suffix == f".{kind}"
    assert kept.read_bytes() == data
