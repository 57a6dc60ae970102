"""A service named by its address: its entry in `providers.json`."""

import json
from pathlib import Path

import pytest

from trimtab.contracts.errors import TrimtabError
from trimtab.models.address import forget_provider, list_names_at, register_address


def test_an_address_is_registered_once_under_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "providers.json"
    path.write_text(json.dumps({"providers": [{"name": "gpu-box", "baseUrl": "http://other/v1"}]}))
    assert register_address(str(path), "http://GPU-box:8000/v1/") == "gpu-box-2"
    assert register_address(str(path), "http://GPU-box:8000/v1") == "gpu-box-2"
    entries = json.loads(path.read_text())["providers"]
    assert [entry["name"] for entry in entries] == ["gpu-box", "gpu-box-2"]
    forget_provider(str(path), "gpu-box-2")
    assert [entry["name"] for entry in json.loads(path.read_text())["providers"]] == ["gpu-box"]


@pytest.mark.parametrize(
    "address", ["gpu-box", "ftp://x", "http://", "http://a b/", "https://[::1"]
)
async def test_what_is_not_an_address_is_refused_with_a_reason(address: str) -> None:
    with pytest.raises(TrimtabError) as refused:
        await list_names_at({}, address)
    assert refused.value.message
