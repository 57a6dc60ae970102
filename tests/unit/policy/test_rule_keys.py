"""Keys of settings files that are almost those by which rules are given."""

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.policy.rule_keys import check_names, check_repeated, may_hold_rules


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("permission", "permissions"),
        ("Permissions", "permissions"),
        ("deny", '"permissions": {"deny": […]}'),
        ("denny", '"permissions": {"deny": […]}'),
        ("denyTool", '"permissions": {"deny": […]}'),
        ("deny-tool", '"permissions": {"deny": […]}'),
        ("deniedTools", '"permissions": {"deny": […]}'),
        ("disallowedTools", '"permissions": {"deny": […]}'),
        ("permissions.deny", '"permissions": {"deny": […]}'),
        ("allowTools", '"permissions": {"allow": […]}'),
        ("deniedURLs", "deniedUrls"),
        ("deny_urls", "deniedUrls"),
        ("deniedDomains", "deniedUrls"),
        ("allowUrls", "allowedUrls"),
        ("contentexclusion", "contentExclusion"),
        ("contentExclusions", "contentExclusion"),
        ("sandboxx", "sandbox"),
    ],
)
def test_a_key_that_almost_gives_rules_is_an_error_that_names_the_right_one(
    key: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_names({key: []}, "settings.json")
    assert caught.value.message == f"settings.json: there is no setting {key}; write {meant}."


@pytest.mark.parametrize(
    "key",
    ["permissions", "deniedUrls", "askUser", "defaultPermissionMode", "model", "hidden", "golden"],
)
def test_other_keys_are_left_alone(key: str) -> None:
    check_names({key: []}, "settings.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"permissions": {"deny": ["shell(rm)"]}, "permissions": {}}',
        '{"permissions": {"deny": ["shell(rm)"], "deny": []}}',
        '// rules\n{"deniedUrls": ["x.test"], "deniedUrls": [],}',
        '\ufeff{"sandbox": {"fence": "auto"}, "sandbox": {}}',
    ],
)
def test_a_key_that_stands_twice_is_an_error(text: str) -> None:
    """Only the last one counted, so the rules of the first were lost."""
    with pytest.raises(ConfigurationError, match="stands twice"):
        check_repeated(text.encode(), "settings.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"permissions": {"deny": ["shell(rm)"], "allow": []}, "model": "x", "model": "y"}',
        '{"hooks": {"deny": 1}, "permissions": {"deny": []}}',
        '{"permissions": {"deny": ["read(\\"deny\\": )"]}}',
    ],
)
def test_other_repetitions_are_left_alone(text: str) -> None:
    check_repeated(text.encode(), "settings.json")


def test_a_broken_file_may_hold_rules_if_it_names_them() -> None:
    assert may_hold_rules(b'{"permissions": {"deny": ["she')
    assert may_hold_rules('{"deniedUrls": []}'.encode("utf-16"))
    assert not may_hold_rules(b'{"model": "x",')
