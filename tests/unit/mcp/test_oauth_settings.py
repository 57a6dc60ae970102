import pytest

from trimtab.contracts.customization import McpServer
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.session_sign_in import describe_client
from trimtab.mcp.oauth.settings import check_settings


def server(**extra: object) -> McpServer:
    return McpServer(name="far", type="http", source="user", url="https://far.test", extra=extra)


def test_a_public_client_uses_no_secret() -> None:
    entry = server(oauthClientId="id", oauthPublicClient=True, oauth={"clientSecret": "s"})
    assert check_settings(entry).client_secret == ""


def test_a_client_that_is_not_public_needs_a_secret() -> None:
    with pytest.raises(ServerProblem, match=r"set oauth\.clientSecret"):
        check_settings(server(oauthClientId="id", oauthPublicClient=False))
    secret = {"clientSecret": "s"}
    kept = check_settings(server(oauthClientId="id", oauthPublicClient=False, oauth=secret))
    assert kept.client_secret == "s"


def test_hosts_are_told_of_the_client_but_not_of_its_secret() -> None:
    entry = server(
        oauthClientId="id",
        oauthPublicClient=False,
        oauthScopes="a b",
        oauthGrantType="client_credentials",
        oauth={"clientSecret": "s"},
    )
    assert describe_client(check_settings(entry)) == {
        "clientId": "id",
        "publicClient": False,
        "grantType": "client_credentials",
        "scope": "a b",
    }
    assert describe_client(check_settings(server())) == {}
