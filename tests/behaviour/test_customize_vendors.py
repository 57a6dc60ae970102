"""What people wrote for other agents: every documented field is used, or it is said why not."""

from pathlib import Path

import pytest

from vendorkit import VENDORS, files_of, judge, look, table


@pytest.mark.parametrize("vendor", VENDORS)
async def test_every_field_is_used_or_named_with_a_reason(vendor: str, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    rows = list(judge(vendor, await look(vendor, folder), folder))
    silent = [row for row in rows if row[2] in ("", "not shown") and row[0] not in IMPORTED]
    assert silent == []
    assert rows == table(vendor)
    assert {name for name, _, _ in rows} == set(files_of(vendor))


IMPORTED = ("repo/docs/style.md", "repo/more.md", "repo/docs/TEAM.md")
"""Files that another one brings along, or that count once something beside them is touched."""
