"""Converts the result of an MCP tool call to a tool result for the model."""

import re
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

MAX_IMAGE_BYTES = 5 * 1024 * 1024
MAX_IMAGES = 10


def read_result(answer: JsonObject, filters: str) -> ToolResult:
    """Join the texts of a result; without any, use its structured content as JSON."""
    content = answer.get("content")
    texts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else (content,):
        if isinstance(block, str):  # not of the protocol, and the meaning is plain
            texts.append(block)
        if not isinstance(block, dict):
            continue
        if block.get("type") == "image" and len(images) < MAX_IMAGES:
            image = _read_image(block)
            if isinstance(image, Image):
                images.append(image)
            else:
                texts.append(image)
        else:
            texts.append(_read_text(block))
    structured = answer.get("structuredContent")
    if structured is not None and not any(texts):
        texts = [msgspec.json.encode(structured).decode()]
    text = clean("\n".join(filter(None, texts)), filters)
    failed = answer.get("isError") is True
    if not text:
        text = "The tool failed without a message." if failed else _describe_no_text(images)
    return ToolResult(text=text, kind="failure" if failed else "success", images=tuple(images))


def choose_filter(mapping: str | Mapping[str, str] | None, tool: str) -> str:
    """Return the filter for a tool's texts, set for all tools of a server or by name."""
    if isinstance(mapping, Mapping):
        mapping = mapping.get(tool) or mapping.get("*")
    return mapping or "hidden_characters"


def clean(text: str, filters: str) -> str:
    """Remove what a person would not see: terminal escapes and invisible characters.

    `markdown` also removes comments, which are invisible in the rendered text.
    """
    if filters == "none":
        return text
    if filters == "markdown":
        text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    return neutralise(text)


def _describe_no_text(images: list[Image]) -> str:
    return f"{count(len(images), 'image')}." if images else "The tool returned no output."


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
            description = block.get("description") or block.get("title") or block.get("name")
            return f"{uri} {description or ''}".rstrip()
        case {"type": "audio" | "image" as kind}:
            return f"[{kind}, which is not shown]"
        case _:
            return ""


def _read_image(block: dict[str, Any]) -> Image | str:
    """Return an image, or a note in its place: services reject requests with an invalid one."""
    data = block.get("data")
    if not isinstance(data, str) or not data:
        return "[an image without data]"
    if len(data) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        return f"[an image of more than {MAX_IMAGE_BYTES >> 20} MB, which is not shown]"
    try:
        kind = image_type(a2b_base64(data, strict_mode=True))
    except (NotBase64, ValueError):
        kind = None
    if kind is None:
        return "[an image in a format that cannot be shown]"
    return Image(data=data, mime_type=kind)
