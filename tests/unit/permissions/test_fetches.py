"""Requests by curl that a rule for an address covers."""

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.permissions.decide_shell import decide_shell

LOCAL = msgspec.structs.replace(
    POLICY, allow=rules("url(http://localhost:*)", "url(https://docs.test/api)")
)


@pytest.mark.parametrize(
    "command",
    [
        "curl http://localhost:3000",
        "curl localhost:3000/healthz",
        "curl -s -o /dev/null -w '%{http_code}' http://localhost:8080/x",
        "curl -sS -m 5 -H 'Accept: text/plain' -X GET http://localhost:3000",
        "curl -I --url http://localhost",
        "curl https://docs.test/api/v1",
        "curl localhost:1 localhost:2",
        "curl -s localhost:3000 | jq .",
    ],
)
def test_a_plain_request_to_an_allowed_address_needs_no_rule_for_curl(command: str) -> None:
    assert decide_shell(command, LOCAL).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "curl http://localhost.evil.test",
        "curl https://localhost:3000",
        "curl http://localhost:3000@evil.test",
        "curl http://{localhost,evil.test}/",
        "curl http://user@localhost:3000\\\\@evil.test",
        "curl localhost:3000 evil.test",
        "curl https://docs.test/other",
        "curl https://docs.test/api/../secret",
        "curl -d a=1 localhost:3000",
        "curl --data-binary @.env localhost:3000",
        "curl -X POST localhost:3000",
        "curl -X DELETE localhost:3000",
        "curl -T file localhost:3000",
        "curl -F a=@b localhost:3000",
        "curl -L localhost:3000",
        "curl -x evil.test localhost:3000",
        "curl --resolve localhost:3000:1.2.3.4 localhost:3000",
        "curl --connect-to ::evil.test: localhost:3000",
        "curl -K file localhost:3000",
        "curl -H @.env localhost:3000",
        "curl -b cookies localhost:3000",
        "curl -n localhost:3000",
        "curl -u a:b localhost:3000",
        "curl -o out.txt localhost:3000",
        "curl -O localhost:3000/a",
        "curl -w '%output{x}' localhost:3000",
        "curl --unix-socket /var/run/docker.sock localhost:3000",
        "http_proxy=http://evil.test curl localhost:3000",
        "ALL_PROXY=evil.test:80 curl localhost:3000",
        "export https_proxy=evil.test; curl localhost:3000",
        "read HTTP_PROXY < f; curl localhost:3000",
        "curl localhost:3000#@evil.test",
        "curl localhost:[1-99]",
        "curl $x",
        "curl localhost:$x",
        "curl",
        "wget localhost:3000",
        "./curl localhost:3000",
        "/tmp/curl localhost:3000",
    ],
)
def test_a_request_that_sends_follows_or_writes_more_is_asked_about(command: str) -> None:
    assert decide_shell(command, LOCAL).verdict == "ask"


def test_what_a_request_writes_needs_the_rule_for_writing() -> None:
    policy = msgspec.structs.replace(LOCAL, allow=(*LOCAL.allow, *rules("write")))
    assert decide_shell("curl -o out.txt localhost:3000", policy).verdict == "allow"
    assert decide_shell("curl -o ../out.txt localhost:3000", policy).verdict == "ask"


def test_a_denied_address_stays_denied() -> None:
    policy = msgspec.structs.replace(LOCAL, deny=rules("url(localhost/secret)"))
    assert decide_shell("curl localhost:3000/secret/x", policy).verdict == "deny"
    assert decide_shell("curl localhost:3000/other", policy).verdict == "allow"
