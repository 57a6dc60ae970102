"""Reads the content blocks of a prompt."""

import binascii
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from trimtab.contracts.run import Prompt
from trimtab.transports.acp.protocol import INVALID_PARAMS, AcpError
from trimtab.transports.acp.schema import ContentBlock, Resource

Attachment = dict[str, Any]


def read_prompt(blocks: Sequence[ContentBlock]) -> Prompt:
    """Return the prompt of content blocks. Raises `AcpError` for a block that is not supported."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        match block.type:
            case "text" if block.text is not None:
                texts.append(block.text)
            case "image" if block.data and block.mime_type:
                attachments.append(read_image(block.data, block.mime_type, block.uri))
            case "resource_link" if block.uri and block.name is not None:
                texts.append(link(block.uri, block.name))
                attachments += attach_link(block.uri, block.name)
            case "resource" if block.resource is not None:
                read_resource(block.resource, texts, attachments)
            case "text" | "image" | "resource_link" | "resource":
                raise AcpError(INVALID_PARAMS, f"A block of type {block.type} lacks its fields.")
            case _:
                raise AcpError(
                    INVALID_PARAMS,
                    f"Content of type {block.type!r} is not supported; send text, images, "
                    "resource links or embedded resources.",
                )
    text = join(texts)
    if not text.strip() and not attachments:
        raise AcpError(INVALID_PARAMS, "The prompt is empty; send at least one block.")
    return Prompt(text=text, attachments=tuple(attachments))


def join(texts: Sequence[str]) -> str:
    """Join the texts of blocks. Editors cut a sentence at each mention, so they belong together."""
    return "".join(texts)


def read_image(data: str, mime_type: str, uri: str | None) -> Attachment:
    if not mime_type.startswith("image/"):
        raise AcpError(INVALID_PARAMS, f"{mime_type} is not a type of image; send an image.")
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        reason = f"The data of an image is not Base64 ({error}); encode it again."
        raise AcpError(INVALID_PARAMS, reason) from None
    name = os.path.basename(local_path(uri or "") or "") or "image"
    return {"type": "blob", "data": data, "mimeType": mime_type, "displayName": name}


def link(uri: str, name: str) -> str:
    """Return a link as the model reads it: a path, or a Markdown link."""
    path = local_path(uri)
    return path or f"[{name}]({uri})"


def attach_link(uri: str, name: str) -> list[Attachment]:
    """Return the attachment of a link to a file or folder on this machine."""
    path = local_path(uri)
    if not path or not os.path.exists(path):
        return []
    kind = "directory" if os.path.isdir(path) else "file"
    attachment: Attachment = {"type": kind, "path": path, "displayName": name}
    if lines := find_lines(uri):
        attachment["lineRange"] = {"start": lines[0], "end": lines[1]}
    return [attachment]


def read_resource(resource: Resource, texts: list[str], attachments: list[Attachment]) -> None:
    """Add an embedded resource: its text to the prompt, or its bytes as an attachment."""
    name = local_path(resource.uri) or resource.uri
    if resource.text is not None:
        texts.append(f'\n<context ref="{name}">\n{resource.text}\n</context>\n')
    elif resource.blob is not None and (resource.mime_type or "").startswith("image/"):
        attachments.append(read_image(resource.blob, str(resource.mime_type), resource.uri))
    elif resource.blob is not None:
        raise AcpError(
            INVALID_PARAMS,
            f"The resource {name} is neither text nor an image; send a link to it instead.",
        )
    else:
        raise AcpError(INVALID_PARAMS, f"The resource {name} has neither text nor a blob.")


def local_path(uri: str) -> str | None:
    """Return the path of a file: URI or of an absolute path; None for every other address."""
    if uri.startswith("/"):
        return uri
    parts = split_uri(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path)


def split_uri(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:  # brackets that do not match, for example
        return SplitResult("", "", uri, "", "")


def find_lines(uri: str) -> tuple[int, int] | None:
    """Return the lines that a URI's fragment names: `#L10` or `#L10:20`, as editors write them."""
    fragment = split_uri(uri).fragment
    first, _, last = fragment.removeprefix("L").replace("-", ":").replace("L", "").partition(":")
    if not fragment.startswith("L") or not first.isdecimal():
        return None
    return int(first), int(last) if last.isdecimal() else int(first)
