"""Addresses in rules and in calls, in every spelling that programs understand."""

import pytest

from trimtab.permissions.urls import matches_url, parse_pattern


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.0.0.1", "127.1", "0x7f000001", "017700000001", "0177.0.0.01"]
)
def test_a_machine_is_recognised_by_any_spelling_of_its_number(host: str) -> None:
    assert matches_url("http://127.0.0.1", f"http://{host}/x", denies=True)
    assert not matches_url("http://127.0.0.2", f"http://{host}/x", denies=True)


@pytest.mark.parametrize(
    "path",
    ["/safe/../admin", "/safe/%2e%2e/admin", "/safe/%2E%2E%2Fadmin", "/safe/..%2fadmin",
     "/safe/%252e%252e/admin", "/safe/%25252e%25252e/admin", "/safe/..;/admin", "/safe/..%5cadmin", "/safe/.."],
)  # fmt: skip
def test_a_path_that_climbs_out_is_not_allowed_by_the_folder_it_names(path: str) -> None:
    assert not matches_url("https://a.test/safe", f"https://a.test{path}")


@pytest.mark.parametrize(
    "path",
    [
        "/safe",
        "/safe/%2525252e%2525252e/x",
        "/safe/a..b",
        "/safe/x?up=../..",
        "/safe/...",
        "/safe#..",
    ],
)
def test_a_path_below_an_allowed_one_is_allowed(path: str) -> None:
    assert matches_url("https://a.test/safe", f"https://a.test{path}")


def test_a_rule_that_denies_counts_for_the_path_that_is_meant() -> None:
    meant = "https://a.test/other/../%73ecret//x"
    assert matches_url("https://a.test/secret/x", meant, denies=True)
    assert not matches_url("https://a.test/secret/x", meant)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("*", ("*", "*", "*", "/")),
        ("a.test", ("https", "a.test", "443", "/")),
        ("http://a.test", ("http", "a.test", "80", "/")),
        ("HTTP://A.Test.", ("http", "a.test", "80", "/")),
        ("ftp://a.test/x", ("ftp", "a.test", "21", "/x")),
        ("gopher://a.test", ("gopher", "a.test", "", "/")),
        ("https://a.test:8443/x?y#z", ("https", "a.test", "8443", "/x?y#z")),
        ("https://u:p@a.test?x", ("https", "a.test", "443", "?x")),
        ("https://*.a.test", ("https", "*.a.test", "443", "/")),
        ("https://[::1]", ("https", "[::1]", "443", "/")),
        ("https://[::1]:80", ("https", "[::1]", "80", "/")),
        ("https://[0:0::1]", ("https", "[::1]", "443", "/")),
        ("https://[::ffff:127.0.0.1]", ("https", "127.0.0.1", "443", "/")),
        ("https://a%2Etest", ("https", "a.test", "443", "/")),
        ("https://bücher.test", ("https", "xn--bcher-kva.test", "443", "/")),
        ("https://1.2.3.4", ("https", "1.2.3.4", "443", "/")),
        ("https://1.2.3.256", ("https", "1.2.3.256", "443", "/")),
        ("https://256.1", ("https", "256.1", "443", "/")),
        ("https://255.1", ("https", "255.0.0.1", "443", "/")),
        ("https://1.16777215", ("https", "1.255.255.255", "443", "/")),
        ("https://1.16777216", ("https", "1.16777216", "443", "/")),
        ("https://4294967295", ("https", "255.255.255.255", "443", "/")),
        ("https://4294967296", ("https", "4294967296", "443", "/")),
        ("https://1.2.3.4.5", ("https", "1.2.3.4.5", "443", "/")),
        ("https://010.8.08.1", ("https", "8.8.8.1", "443", "/")),
        ("https://0x10.1.1.1", ("https", "16.1.1.1", "443", "/")),
        ("https://0.0.0.0", ("https", "0.0.0.0", "443", "/")),
        ("http://localhost:*", ("http", "localhost", "*", "/")),
        ("a.test:*/x", ("https", "a.test", "*", "/x")),
        ("http://[::1]:*", ("http", "[::1]", "*", "/")),
    ],
)
def test_a_pattern_is_brought_to_one_form(text: str, address: tuple[str, ...]) -> None:
    assert parse_pattern(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "a b.test",
        "https://a\\b",
        "a.test\x7f",
        "a*.test",
        "[x]",
        "[::1",
        "a.test:*x",
        ":*",
        "a.test:**",
    ],
)
def test_what_is_no_address_is_no_pattern(text: str) -> None:
    assert parse_pattern(text) is None


@pytest.mark.parametrize(
    ("pattern", "url", "allows", "denies"),
    [
        ("*", "gopher://a.test:1/x", True, True),
        ("a.test", "https://a.test/x", True, True),
        ("a.test", "http://a.test/x", False, True),
        ("a.test", "https://a.test:8443/x", False, True),
        ("a.test", "https://b.a.test", False, False),
        ("a.test", "https://ba.test", False, False),
        ("*.a.test", "https://b.a.test", True, True),
        ("*.a.test", "https://a.test", False, True),
        ("*.a.test", "https://ba.test", False, False),
        ("https://*", "https://a.test", True, True),
        ("https://*", "http://a.test", False, True),
        ("http://a.test:*", "http://a.test", True, True),
        ("http://a.test:*", "http://a.test:3000/x", True, True),
        ("http://a.test:*", "https://a.test:3000/x", False, True),
        ("http://a.test:*", "http://a.test:3000@b.test/", False, False),
        ("a.test/x", "https://a.test/x", True, True),
        ("a.test/x", "https://a.test/x/y", True, True),
        ("a.test/x", "https://a.test/x?y", True, True),
        ("a.test/x", "https://a.test/x#y", True, True),
        ("a.test/x", "https://a.test/xy", False, False),
        ("a.test/x", "https://a.test/", False, False),
        ("a.test/x/", "https://a.test/x", True, True),
        ("a.test/x/", "https://a.test/x/y", True, True),
        ("a.test/x*", "https://a.test/x/y", True, True),
        ("a.test/*", "https://a.test/y", True, True),
        ("a.test/x", "https://a.test/y/../x", False, True),
        ("a.test/x", "https://a.test/y/z/../../x", False, True),
        ("a.test/y/x", "https://a.test/y/z/../x", False, True),
        ("a.test/x", "https://a.test//./x", False, True),
        ("a.test/x", "https://a.test/%78", False, True),
        ("a.test/x", "https://a.test/x?a#..", True, True),
        ("not an address", "https://a.test", False, True),
        ("a.test", "https://a.test/ x", False, True),
        ("*.a.test", "see A.TEST here", False, True),
        ("b.test", "https://a.test/ x", False, False),
    ],
)
def test_a_pattern_covers_an_address_or_not(
    pattern: str, url: str, allows: bool, denies: bool
) -> None:
    assert matches_url(pattern, url) is allows
    assert matches_url(pattern, url, denies=True) is denies


@pytest.mark.parametrize(
    "path",
    [
        "/secret", "/SECRET", "/Secret/x", "/x/../secret", "/x/%2e%2e/secret", "/x/%252e%252e/secret",
        "/x/%25252e%25252e/secret", "/x/..;/secret", "/x/..;a=b/secret", "/x/%2e%2e%3b/secret",
        "//secret", "/./secret", "/x//..//secret", "/%73ecret", "/%2573ecret", "/x%2f..%2fsecret",
        "/x/..%5csecret", "/x/..\\secret", "\\secret", "/secret;v=1", "/secret;v=1/x", "/secret.",
        "/secret%20", "/secret%00.html", "/x/%c0%ae%c0%ae/secret", "/x%c0%af../secret", "/%u0073ecret",
        "/secret/../secret/x", "/secret/", "/secret?x", "/secret%3fx", "/secret#x", "/a/b/../../secret",
        "/secret/%2e", "/%73%65%63%72%65%74",
    ],
)  # fmt: skip
def test_a_denied_path_is_denied_however_it_is_written(path: str) -> None:
    assert matches_url("a.test/secret", f"https://a.test{path}", denies=True)


@pytest.mark.parametrize(
    "path", ["/", "/public", "/secrets", "/x?next=/secret", "/x#/secret", "/a/secret"]
)
def test_a_path_beside_a_denied_one_is_not_denied(path: str) -> None:
    assert not matches_url("a.test/secret", f"https://a.test{path}", denies=True)


@pytest.mark.parametrize(
    "url",
    [
        "https://évil.test", "https://ÉVIL.test/", "https://xn--vil-9la.test", "https://e\u0301vil.test",
        "https://évil.test.", "https://évil。test", "https://u@évil.test", "https://u:p@évil.test:8443/x",
        "https://%C3%A9vil.test", "https://%25C3%25A9vil.test", "https://a@évil.test@good.test",
        "https://good.test#@évil.test/", "https://évil.test\\@good.test", "https:\\\\évil.test",
        "https:/évil.test", "https:évil.test", "//évil.test/x", "https://é\tvil.test", "h\nttps://évil.test",
        "évil.test:80", "http:///évil.test",
    ],
)  # fmt: skip
def test_a_denied_host_is_denied_however_it_is_written(url: str) -> None:
    assert matches_url("évil.test", url, denies=True)


def test_a_letter_that_programs_encode_or_replace_is_denied_in_both_forms() -> None:
    assert matches_url("straße.test", "https://strasse.test", denies=True)
    assert matches_url("xn--strae-oqa.test", "https://straße.test", denies=True)


@pytest.mark.parametrize(
    "host",
    [
        "1.2.3.4", "0x1020304", "16909060", "1.2.772", "01.02.03.04", "1.2.3.4.", "[::ffff:1.2.3.4]",
        "[::1.2.3.4]", "[64:ff9b::1.2.3.4]", "[::ffff:102:304]", "%31.2.3.4", "\uff11.2.3.4", "x@1.2.3.4:99",
    ],
)  # fmt: skip
def test_a_denied_number_is_denied_in_every_form(host: str) -> None:
    assert matches_url("1.2.3.4", f"http://{host}/", denies=True)
    assert not matches_url("1.2.3.5", f"http://{host}/", denies=True)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "x.localhost", "0", "127.1"])
def test_to_deny_this_machine_by_one_name_denies_it_by_all(host: str) -> None:
    assert matches_url("localhost", f"http://{host}:8080/", denies=True)
    assert matches_url("127.0.0.1", f"http://{host}:8080/", denies=True)
    assert matches_url("http://localhost:8080", f"http://{host}:8080/") is (host == "localhost")


@pytest.mark.parametrize(
    "url",
    [
        "http://010.0.0.1", "http://0xa.0.0.1", "http://10.1", "http://[::ffff:10.0.0.1]",
        "http://%310.0.0.1", "http://\uff110.0.0.1", "http://10.0.0.1\\@x.test",
    ],
)  # fmt: skip
def test_a_rule_that_allows_a_number_is_taken_literally(url: str) -> None:
    assert matches_url("http://10.0.0.1", "http://10.0.0.1/x")
    assert not matches_url("http://10.0.0.1", url)


@pytest.mark.parametrize(
    "url",
    [
        "https://%61.test",
        "https://\uff41.test",
        "https://a。test",
        "https://a.test\\.b.test",
        "https:/a.test",
    ],
)
def test_a_rule_that_allows_a_host_is_taken_literally(url: str) -> None:
    assert not matches_url("a.test", url)


def test_a_rule_that_allows_a_host_in_another_alphabet_allows_it_as_written_or_encoded() -> None:
    assert matches_url("bücher.test", "https://bücher.test/x")
    assert matches_url("bücher.test", "https://xn--bcher-kva.test/x")
