"""The file of approvals, if somebody writes it by hand."""

from pathlib import Path

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.policy.saved_approvals import SavedApprovals


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"locations": []}', "locations is not an object"),
        ('{"locations": {"/a": []}}', "/a is not an object"),
        ('{"locations": {"/a": {"tool_approvals": "x"}}}', "tool_approvals of /a is not a list"),
        ('{"always": {"tool_approvals": {}}}', "tool_approvals of always is not a list"),
        ('{"deny": ["shell(rm)"]}', "deny has no effect here, but in settings.json"),
        ('{"permissions": {"deny": ["shell(rm)"]}}', "permissions has no effect here"),
    ],
)
def test_a_file_that_holds_no_approvals_is_an_error(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "permissions-config.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="move it away to start over") as caught:
        SavedApprovals(str(file), "/a").load()
    assert problem in caught.value.message


def test_fields_that_are_not_known_are_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "permissions-config.json"
    file.write_text('{"version": 1, "locations": {"/a": {"more": 1}}}')
    assert SavedApprovals(str(file), "/a").load().rules == ()
