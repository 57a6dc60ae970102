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


DOT = base64.b64encode(picture("png")).decode()
REFERENCES: dict[str, tuple[dict[str, Any], str]] = {
    "issue": (
        {
            "type": "github_reference",
            "referenceType": "issue",
            "number": 5,
            "title": "It leaks",
            "state": "open",
            "url": "https://github.com/o/r/issues/5",
        },
        "* issue #5: It leaks (open) https://github.com/o/r/issues/5",
    ),
    "commit": (
        {
            "type": "github_commit",
            "message": "Caulk it",
            "oid": "abc",
            "repo": {"owner": "o", "name": "r"},
            "url": "https://github.com/o/r/commit/abc",
        },
        "* commit: Caulk it https://github.com/o/r/commit/abc",
    ),
    "file": (
        {
            "type": "github_file",
            "path": "hull.c",
            "ref": "main",
            "repo": {"owner": "o", "name": "r"},
            "url": "https://github.com/o/r/blob/main/hull.c",
        },
        "* file: hull.c https://github.com/o/r/blob/main/hull.c",
    ),
    "url": (
        {"type": "github_url", "url": "https://github.com/o/r"},
        "* url https://github.com/o/r",
    ),
}


async def shown_prompt(sdk: Sdk, attachment: dict[str, Any]) -> Any:
    """Return the content of the user message that the model gets for a prompt."""
    async with talking(sdk, [{"text": "ok"}]) as talk:
        await talk.say("look", attachments=[attachment])
        assert not talk.heard.of("session.warning")
        return talk.shown()[-1]["content"]


async def test_a_file_reaches_the_model_as_a_tagged_file(sdk: Sdk) -> None:
    path = sdk.cwd / "log.txt"
    path.write_text("one\ntwo\n")
    shown = await shown_prompt(sdk, {"type": "file", "path": str(path), "displayName": "log.txt"})
    tag = f"<tagged_files>\n* {path} (3 lines)\n</tagged_files>"
    assert shown.endswith(f"\n\nlook\n\n{tag}")


async def test_a_directory_reaches_the_model_with_its_number_of_entries(sdk: Sdk) -> None:
    path = sdk.cwd / "logs"
    path.mkdir()
    (path / "a").write_text("")
    (path / "b").write_text("")
    shown = await shown_prompt(sdk, {"type": "directory", "path": str(path)})
    assert shown.endswith(f"look\n\n<tagged_files>\n* {path} (2 items)\n</tagged_files>")


async def test_a_selection_reaches_the_model_before_the_prompt(sdk: Sdk) -> None:
    selection = {
        "type": "selection",
        "filePath": "/src/hull.c",
        "displayName": "hull.c",
        "text": "int planks;",
        "selection": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 11}},
    }
    shown = await shown_prompt(sdk, selection)
    where = "File: /src/hull.c (line 2)"
    block = f"<ide_selection>\n{where}\n```\nint planks;\n```\n</ide_selection>\n\n"
    assert shown.startswith(f"{block}<current_datetime>")


async def test_an_image_reaches_the_model_after_the_prompt_and_its_name(sdk: Sdk) -> None:
    blob = {"type": "blob", "data": DOT, "mimeType": "image/png", "displayName": "dot.png"}
    text, name, image = await shown_prompt(sdk, blob)
    assert text["text"].endswith("look")
    assert name == {"type": "text", "text": "dot.png"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/markdown"])
async def test_inline_text_reaches_the_model_as_text(sdk: Sdk, kind: str) -> None:
    data = base64.b64encode(b'{"depth": 7}').decode()
    blob = {"type": "blob", "data": data, "mimeType": kind, "displayName": "depth"}
    shown = await shown_prompt(sdk, blob)
    assert '<attachment name="depth">\n{"depth": 7}\n</attachment>' in shown


async def test_inline_data_that_is_not_text_reaches_the_model_as_a_file(sdk: Sdk) -> None:
    data = base64.b64encode(b"\x00\x01\x02").decode()
    blob = {"type": "blob", "data": data, "mimeType": "application/x-chart", "displayName": "c.bin"}
    shown = await shown_prompt(sdk, blob)
    (kept,) = sdk.home.glob("session-state/*/files/attachments/c.bin")
    assert kept.read_bytes() == b"\x00\x01\x02"
    assert f"* {kept}" in shown


@pytest.mark.parametrize("kind", REFERENCES)
async def test_things_on_github_reach_the_model_by_name_and_address(sdk: Sdk, kind: str) -> None:
    attachment, line = REFERENCES[kind]
    shown = await shown_prompt(sdk, attachment)
    assert f"<github_references>\n{line}\n</github_references>" in shown


async def test_the_context_of_an_extension_reaches_the_model(sdk: Sdk) -> None:
    context = {
        "type": "extension_context",
        "extensionId": "chart",
        "title": "Chart",
        "capturedAt": "2026-01-01T00:00:00Z",
        "payload": {"depth": 7},
    }
    shown = await shown_prompt(sdk, context)
    assert '<extension_context title="Chart">' in shown
    assert '"depth": 7' in shown
