"""The exchange of an ID token, and what is said if it cannot be done."""

from pathlib import Path
from typing import Any

import pytest

from mcpkit import server
from trimtab.mcp.messages import ServerProblem
from trimtab.mcp.oauth.identity import ASSERTION, build_exchange, read_assertion, read_id_token
from trimtab.mcp.oauth.settings import check_settings

TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln"
PROVIDER = {"tokenEndpoint": "https://idp.example/token", "clientId": "app", "idToken": TOKEN}


def configured(**fields: Any) -> Any:
    oauth = {"clientId": "c", "identityProvider": {**PROVIDER, **fields}}
    return server(type="http", url="https://far.example/mcp", extra={"oauth": oauth})


def test_the_exchange_names_the_authorization_server_and_the_resource() -> None:
    settings = check_settings(configured())
    assert not settings.needs_person
    assert settings.identity_provider is not None
    fields = build_exchange(
        settings.identity_provider, "https://as.example", "https://far.example/mcp"
    )
    assert fields["subject_token"] == TOKEN
    assert fields["audience"] == "https://as.example"
    assert fields["resource"] == "https://far.example/mcp"
    assert fields["client_id"] == "app"
    assert "client_secret" not in fields


def test_an_id_token_may_be_in_a_file_that_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "id-token"
    file.write_text(f"{TOKEN}\n")
    assert read_id_token(str(file)) == TOKEN
    file.write_text("nothing of the kind")
    with pytest.raises(ServerProblem, match="contains no ID token; get a new ID token"):
        read_id_token(str(file))
    with pytest.raises(ServerProblem, match=r"No such file or directory.*correct"):
        read_id_token(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (400, {"error": "invalid_grant"}, "refused .it says so.; get a new ID token"),
        (200, {"access_token": TOKEN, "issued_token_type": "access_token"}, "another kind"),
        (200, {"access_token": "not signed", "issued_token_type": ASSERTION}, "another kind"),
        (200, {"issued_token_type": ASSERTION}, "another kind"),
    ],
)
def test_other_answers_of_the_provider_are_refused(
    status: int, answer: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ServerProblem, match=reason):
        read_assertion(status, answer, "it says so")


@pytest.mark.parametrize("url", ["http://idp.example/token", "file:///etc/passwd", "https://", ""])
def test_the_provider_must_have_a_secure_address(url: str) -> None:
    with pytest.raises(ServerProblem, match=r"tokenEndpoint is not an https address; correct it"):
        check_settings(configured(tokenEndpoint=url))
