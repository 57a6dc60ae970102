"""Patterns of excluded content, read as GitHub reads them."""

import pytest

from trimtab.permissions.exclusions import escape, is_excluded, to_ignored


@pytest.mark.parametrize(
    ("pattern", "path", "excluded"),
    [
        ("secret.txt", "/r/secret.txt", True),
        ("secret.txt", "/r/a/b/secret.txt", True),
        ("secret.txt", "/r/a/SECRET.txt", True),
        ("secret.txt", "/r/asecret.txt", False),
        ("secret.txt", "/s/secret.txt", False),
        ("secret.txt", "/rr/secret.txt", False),
        ("/secret.txt", "/r/secret.txt", True),
        ("/secret.txt", "/r/a/secret.txt", False),
        ("*.pem", "/r/a/x.pem", True),
        ("a/*.pem", "/r/a/x.pem", True),
        ("a/*.pem", "/r/a/b/x.pem", False),
        ("/a/**", "/r/a/b/c", True),
        ("/a/**/c", "/r/a/c", True),
        ("**/b", "/r/a/b", True),
        ("a", "/r/a/b/c", True),
        ("a/", "/r/a/b/c", True),
        ("a/", "/r/a", True),
    ],
)
def test_a_pattern_covers_a_path_below_its_root(pattern: str, path: str, excluded: bool) -> None:
    assert is_excluded(path, "/r", pattern) is excluded
    assert is_excluded(path, "/r/", pattern) is excluded


@pytest.mark.parametrize(
    ("pattern", "cwd", "ignored"),
    [
        ("secret", "/r", ["**/secret"]),
        ("secret/", "/r/a", ["**/secret"]),
        ("**/secret", "/r", ["**/secret"]),
        ("/a/b", "/r", ["**/r/a/b", "/a/b"]),
        ("/a/b", "/r/a", ["**/r/a/b", "/b"]),
        ("/a/b", "/r/a/b", ["**/r/a/b"]),
        ("/a", "/r/a/b", ["**/r/a", "/**"]),
        ("/a/b", "/r/x", ["**/r/a/b"]),
        ("/a/b", "/elsewhere", ["**/r/a/b"]),
        ("/**/b", "/r/a", ["**/r/**/b", "/**/b"]),
        ("/A/b", "/r/a", ["**/r/A/b", "/b"]),
    ],
)
def test_a_search_below_the_root_ignores_the_same(
    pattern: str, cwd: str, ignored: list[str]
) -> None:
    given = list(to_ignored(pattern, "/r", cwd))
    assert given[: len(ignored)] == ignored or set(ignored) <= set(given)
    assert given[0] == ignored[0]


def test_a_path_can_be_written_as_a_pattern() -> None:
    assert escape("/a[1]/{b}!*?\\") == "/a\\[1\\]/\\{b\\}\\!\\*\\?\\\\"
