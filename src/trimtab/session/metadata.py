"""Reads and writes `workspace.yaml`, a session's metadata, usually without a YAML parser."""

from typing import Any

import msgspec

from trimtab.contracts.errors import ConfigurationError

Metadata = dict[str, Any]

_WORDS = {"true": True, "false": False, "null": None, "": None}
_NOT_PLAIN = frozenset("-?:,[]{}#&*!|>'\"%@`~ ")
"""Characters with which a plain YAML scalar may not begin."""


def parse(data: bytes) -> Metadata:
    """Parse the file, ours or another writer's. Raises `ConfigurationError` if it is invalid."""
    text = data.decode("utf-8", "replace")
    simple = _parse_simple(text)
    return _parse_yaml(text) if simple is None else simple


def render(metadata: Metadata) -> bytes:
    """Return one `key: value` per line; strings are quoted as in JSON, which YAML accepts."""
    return "".join(f"{key}: {_quoted(value)}\n" for key, value in metadata.items()).encode()


def _quoted(value: Any) -> str:
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # a lone surrogate, for example from a file name
        import json

        text = json.dumps(value, ensure_ascii=False, default=str)
    if text.isprintable():
        return text
    # YAML forbids or folds characters JSON allows, and UTF-8 cannot encode a lone surrogate.
    return "".join(
        f"\\u{ord(character):04x}"
        if ord(character) < 0x10000 and not character.isprintable()
        else character
        for character in text
    )


def _parse_simple(text: str) -> Metadata | None:
    """Parse lines as we write them; None if there is anything else."""
    metadata: Metadata = {}
    for line in text.split("\n"):
        if not line.strip() or line.startswith("#") or line == "---":
            continue
        key, colon, value = line.partition(":")
        if not colon or not key.replace("_", "").isalnum() or key in metadata or value[:1] > " ":
            return None
        try:
            metadata[key] = _parse_value(value.strip())
        except ValueError:
            return None
    return metadata


def _parse_value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in '"[{' or text.removeprefix("-").isdecimal():
        return _read_json(text)
    if text[0] in _NOT_PLAIN or ": " in text or " #" in text or text[-1] == ":":
        raise ValueError(text)
    return text


def _read_json(text: str) -> Any:
    """Raises `ValueError`."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # a lone surrogate, which we write ourselves
        import json

        return json.loads(text)


def _parse_yaml(text: str) -> Metadata:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Aliases can expand a few lines to gigabytes; no writer of this file uses them.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader)):
            raise ValueError("alias")
        document = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            "workspace.yaml cannot be read: correct it, or move it away and open the session again."
        ) from error
    if not isinstance(document, dict):
        raise ConfigurationError(
            "workspace.yaml does not consist of `key: value` lines: move it away and open the "
            "session again."
        )
    return {str(key): _plain(value) for key, value in document.items()}


def _plain(value: Any) -> Any:
    """Convert a timestamp back to text."""
    if hasattr(value, "isoformat"):
        moment = value.isoformat(timespec="milliseconds") if hasattr(value, "hour") else str(value)
        return moment.replace("+00:00", "") + ("Z" if "T" in moment else "")
    return value
