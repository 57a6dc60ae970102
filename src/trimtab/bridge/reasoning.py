"""Carries a service's opaque reasoning through the format of another service's clients.

A client must send reasoning back, and only the service it came from can read it. So the bridge
gives the client one opaque text, which names the service and contains its reasoning unchanged.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

import msgspec

from trimtab.contracts.messages import Reasoning

MARK = "trimtab-reasoning."


class _Sealed(msgspec.Struct, frozen=True):
    origin: str
    reasoning: Reasoning


def seal(origin: str, reasoning: Reasoning) -> Reasoning:
    """Return reasoning of a service in a form that any client can keep."""
    data = msgspec.json.encode(_Sealed(origin, reasoning))
    text = MARK + urlsafe_b64encode(data).decode("ascii")
    return Reasoning(text=reasoning.text, opaque=text, encrypted=text)


def unseal(origin: str, reasoning: Reasoning) -> Reasoning | None:
    """Return the reasoning as the service sent it; None if it came from another one."""
    tokens = [
        block.get("signature") or block.get("data") or block.get("encrypted_content")
        for block in reasoning.blocks or ()
    ] or [reasoning.opaque]
    found = [part for token in tokens if (part := _open(origin, token)) is not None]
    if not found:
        return None
    last = found[-1]
    blocks = [block for part in found for block in part.blocks or ()]
    return Reasoning(
        text="".join(part.text or "" for part in found) or None,
        opaque=last.opaque,
        encrypted=last.encrypted,
        field=last.field,
        blocks=blocks or None,
    )


def _open(origin: str, token: object) -> Reasoning | None:
    if not isinstance(token, str) or not token.startswith(MARK):
        return None
    try:
        data = urlsafe_b64decode(token[len(MARK) :].encode("ascii"))
        sealed = msgspec.json.decode(data, type=_Sealed)
    except (Error, ValueError):
        return None
    return sealed.reasoning if sealed.origin == origin else None
