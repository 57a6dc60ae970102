"""Images that SDK clients attach."""

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from copilot.generated.rpc import PermissionDecisionReject
from PIL import Image

from sdkkit import Sdk, talking, use


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


@pytest.mark.proves("PERM-15")
async def test_a_client_is_not_asked_about_reading_an_image_it_attached(
    sdk: Sdk, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in ("mine.png", "other.png"):
        (folder / name).write_bytes(picture("png"))
    asked: list[str] = []

    def refuse(request: Any, _: Any) -> Any:
        asked.append(request.path)
        return PermissionDecisionReject()

    mine = {"type": "file", "path": str(folder / "mine.png"), "displayName": "mine"}
    replies = [use("view", path=str(folder / name)) for name in ("mine.png", "other.png")]
    async with talking(sdk, [*replies, "done"], on_permission_request=refuse) as talk:
        await talk.say("look", attachments=[mine])
        kept, refused = talk.heard.of("tool.execution_complete")
    assert (kept.success, refused.success) == (True, False)
    assert asked == [str(folder / "other.png")]
