"""What a call of a server's tool came to, as a model reads it."""

from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.images import image_type
from trimtab.contracts.messages import Image
from trimtab.contracts.text import count, neutralise
from trimtab.contracts.tool import ToolResult

LARGEST_IMAGE = 5 * 1024 * 1024
MOST_IMAGES = 10


def read_result(answer: JsonObject, filters: str) -> ToolResult:
    """Texts one below the other; where there is none, what the server says in JSON."""
    content = answer.get("content")
    texts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "image" and len(images) < MOST_IMAGES:
            shown = _read_image(block)
            if isinstance(shown, Image):
                images.append(shown)
            else:
                texts.append(shown)
        else:
            texts.append(_read_text(block))
    structured = answer.get("structuredContent")
    if structured is not None and not any(texts):
        texts = [msgspec.json.encode(structured).decode()]
    text = clean("\n".join(filter(None, texts)), filters)
    failed = answer.get("isError") is True
    if not text:
        text = "The tool failed and gave no reason." if failed else _describe_nothing(images)
    return ToolResult(text=text, kind="failure" if failed else "success", images=tuple(images))


def choose_filter(mapping: str | Mapping[str, str] | None, tool: str) -> str:
    """What is done to a tool's texts: for all tools of a server, or by name."""
    if isinstance(mapping, Mapping):
        mapping = mapping.get(tool) or mapping.get("*")
    return mapping or "hidden_characters"


def clean(text: str, filters: str) -> str:
    """A text that hides nothing from a person: no terminal commands, no invisible characters.

    `markdown` also takes the comments out, which no reader of the rendered text would see.
    """
    if filters == "none":
        return text
    if filters == "markdown":
        import re

        text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    return neutralise(text)


def _describe_nothing(images: list[Image]) -> str:
    return f"{count(len(images), 'image')}." if images else "The tool gave no output."


def _read_text(block: dict[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": dict(resource)}:
            kind = str(resource.get("mimeType") or "binary data")
            return f"[{resource.get('uri')}: {kind}, which is not shown]"
        case {"type": "resource_link", "uri": str(uri)}:
            about = block.get("description") or block.get("title") or block.get("name") or ""
            return f"{uri} {about}".rstrip()
        case {"type": "audio" | "image" as kind}:
            return f"[{kind}, which is not shown]"
        case _:
            return ""


def _read_image(block: dict[str, Any]) -> Image | str:
    """An image that every service takes, or a note of one: a bad one would spoil each request."""
    data = block.get("data")
    if not isinstance(data, str) or len(data) > LARGEST_IMAGE * 4 // 3 + 4:
        return f"[an image of more than {LARGEST_IMAGE >> 20} MB, which is not shown]"
    try:
        kind = image_type(a2b_base64(data, strict_mode=True))
    except (NotBase64, ValueError):
        kind = None
    if kind is None:
        return "[an image in a format that cannot be shown]"
    return Image(data=data, mime_type=kind)
