import pytest

from trimtab.contracts.errors import ModelError
from trimtab.providers.addresses import Url, is_loopback, parse_url, proxy_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a", Url("http", "a", 80)),
        ("HTTPS://API.Example.com/v1/x?y=1#z", Url("https", "api.example.com", 443, "/v1/x?y=1")),
        ("http://[::1]:8080/a", Url("http", "::1", 8080, "/a")),
        ("http://u:p@h:1?q", Url("http", "h", 1, "/?q", "u:p")),
        ("https://bücher.example/", Url("https", "xn--bcher-kva.example", 443)),
        ("http://h/ä b", Url("http", "h", 80, "/%C3%A4%20b")),
    ],
)
def test_an_address_is_taken_apart(text: str, expected: Url) -> None:
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://:80",
        "/v1",
        "http://h:0",
        "http://h:99999",
        "http://a..b",
        "http://" + "a" * 64 + ".example",
        "http://h:²",
    ],
)
def test_a_bad_address_is_named_with_what_to_do(text: str) -> None:
    with pytest.raises(ModelError, match="correct") as caught:
        parse_url(text)
    assert caught.value.category == "invalid"


def test_a_password_in_a_bad_address_is_not_shown() -> None:
    with pytest.raises(ModelError) as caught:
        parse_url("ftp://user:hunter2@h")
    assert "hunter2" not in caught.value.message


def test_the_host_header_has_the_port_only_where_it_is_unusual() -> None:
    assert parse_url("https://h:443/").authority == "h"
    assert parse_url("https://h:80/").authority == "h:80"
    assert parse_url("http://[::1]:81/").authority == "[::1]:81"


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1.example.com", "localhost.example", "10.0.0.1", "::2", "127.a.b.c", "1270"]
)
def test_what_only_looks_like_loopback_is_not(host: str) -> None:
    assert not is_loopback(host)


SECURE = parse_url("https://api.example.com/v1")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ({"https_proxy": "p:3128"}, "http://p:3128"),
        ({"ALL_PROXY": "http://p"}, "http://p"),
        ({"HTTP_PROXY": "http://p"}, None),
        ({"https_proxy": "http://a", "HTTPS_PROXY": "http://b"}, "http://a"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com"}, None),
        ({"HTTPS_PROXY": "http://p", "no_proxy": "other, .example.com"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "*.example.com"}, None),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "ample.com"}, "http://p"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com:80"}, "http://p"),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com:443"}, None),
    ],
)
def test_the_proxy_is_chosen_by_the_environment(
    environment: dict[str, str], expected: str | None
) -> None:
    proxy = proxy_for(SECURE, environment)
    assert (proxy and proxy.origin) == expected


def test_networks_can_be_excluded_from_the_proxy() -> None:
    environment = {"HTTP_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}
    assert proxy_for(parse_url("http://10.1.2.3/"), environment) is None
    assert proxy_for(parse_url("http://11.1.2.3/"), environment) is not None


def test_loopback_never_goes_through_a_proxy() -> None:
    environment = {"HTTP_PROXY": "http://p", "ALL_PROXY": "http://p"}
    assert proxy_for(parse_url("http://localhost:8080/"), environment) is None
    assert proxy_for(parse_url("http://[::1]/"), environment) is None
