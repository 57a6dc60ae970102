"""Messages of the Agent Client Protocol, and the entry in its registry."""

import json
from pathlib import Path

import pytest

from trimtab.transports.acp.protocol import AcpError, decode_incoming, encode, find_id
from trimtab.version import __version__

ROOT = Path(__file__).parents[4]


def test_the_id_of_an_invalid_message_is_found() -> None:
    line = b'{"id": "x", "method": 5}'
    with pytest.raises(AcpError):
        decode_incoming(line)
    assert find_id(line) == "x"


def test_a_lone_surrogate_is_sent_as_an_escape() -> None:
    assert encode({"path": "a\udcff"}) == b'{"path":"a\\udcff"}\n'


def test_the_registry_entry_names_this_version_and_the_flag() -> None:
    entry = json.loads((ROOT / "examples" / "acp-registry" / "agent.json").read_text())
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"]["package"] == f"trimtab=={__version__}"
    assert entry["distribution"]["uvx"]["args"] == ["--acp"]
