"""GitHub accounts over the SDK: signing in and out, tokens of sessions, quotas, endpoints."""

import json
from pathlib import Path
from typing import Any

import pytest
from copilot.generated import rpc

from githubkit import DEFAULT, INVALID_TOKEN, OTHER_TOKEN, TOKEN, github
from sdkkit import LIMIT, Sdk

HOST = "https://github.com"
FAKE_KEYRING = """
import json, os
PATH = os.path.join(os.environ["HOME"], "vault.json")
def _load():
    return json.load(open(PATH)) if os.path.exists(PATH) else {}
def _save(kept):
    json.dump(kept, open(PATH, "w"))
class Backend:
    priority = 5
def get_keyring():
    return Backend()
def get_password(service, name):
    return _load().get(service + "|" + name)
def set_password(service, name, password):
    _save({**_load(), service + "|" + name: password})
def delete_password(service, name):
    kept = _load()
    del kept[service + "|" + name]
    _save(kept)
"""


async def log_in(client: Any, token: str, login: str | None = None) -> Any:
    request = rpc.AccountLoginRequest(host=HOST, token=token, login=login)
    return await client.rpc.account.login(request)


async def logins(client: Any) -> list[str]:
    return [user["authInfo"]["login"] for user in await client.rpc.account.get_all_users()]


async def test_an_account_is_signed_in_to_listed_and_signed_out_of(sdk: Sdk) -> None:
    async with github(sdk, [], token=None), sdk.client() as client:
        assert (await client.get_auth_status()).isAuthenticated is False
        assert (await client.rpc.account.get_current_auth()).auth_info is None
        assert await logins(client) == []
        await log_in(client, TOKEN)
        await log_in(client, OTHER_TOKEN)
        assert await logins(client) == ["second-user", "first-user"]
        current = (await client.rpc.account.get_current_auth()).auth_info
        assert (current.host, current.login) == (HOST, "second-user")
        status = await client.get_auth_status()
        assert (status.isAuthenticated, status.login) == (True, "second-user")
        left = await client.rpc.account.logout(rpc.AccountLogoutRequest(auth_info=current))
        assert left.has_more_users
        assert await logins(client) == ["first-user"]
        for _ in range(2):
            left = await client.rpc.account.logout(rpc.AccountLogoutRequest())
            assert not left.has_more_users
        assert (await client.get_auth_status()).isAuthenticated is False


async def test_tokens_are_kept_where_only_their_owner_reads_them(sdk: Sdk) -> None:
    async with github(sdk, [], token=None), sdk.client() as client:
        stored = await log_in(client, TOKEN, "somebody")
    kept = sdk.home / "accounts.json"
    assert not stored.stored_in_vault
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text())["accounts"][0]["token"] == TOKEN


async def test_tokens_are_kept_in_the_keyring_where_there_is_one(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "keyring.py").write_text(FAKE_KEYRING)
    sdk.env["PYTHONPATH"] = str(tmp_path / "modules")
    async with github(sdk, [{"text": "ok"}], token=None) as server:
        async with sdk.client() as client:
            assert (await log_in(client, TOKEN)).stored_in_vault
            session = await client.create_session()
            await session.send_and_wait("hi", timeout=LIMIT)
        assert server.tokens == [TOKEN]
        assert TOKEN not in (sdk.home / "accounts.json").read_text()
        async with sdk.client() as client:
            (user,) = await client.rpc.account.get_all_users()
            assert user["token"] == TOKEN
            await client.rpc.account.logout(rpc.AccountLogoutRequest())
    assert TOKEN not in (tmp_path / "vault.json").read_text()


async def test_the_keyring_is_left_alone_if_a_client_says_so(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "keyring.py").write_text(FAKE_KEYRING)
    sdk.env |= {"PYTHONPATH": str(tmp_path / "modules"), "COPILOT_DISABLE_KEYTAR": "1"}
    async with github(sdk, [], token=None), sdk.client() as client:
        assert not (await log_in(client, TOKEN)).stored_in_vault
    assert not (tmp_path / "vault.json").exists()


async def test_an_account_stays_signed_in_for_the_next_process(sdk: Sdk) -> None:
    async with github(sdk, [{"text": "ok"}], token=None) as server:
        async with sdk.client() as client:
            await log_in(client, TOKEN)
        async with sdk.client() as client:
            session = await client.create_session()
            await session.send_and_wait("hi", timeout=LIMIT)
        assert server.tokens == [TOKEN]
        assert [request.json["model"] for request in server.requests] == [DEFAULT]


async def test_a_token_that_github_rejects_is_not_stored(sdk: Sdk) -> None:
    async with github(sdk, [], token=None, refusals=1), sdk.client() as client:
        with pytest.raises(Exception, match="Unauthorized"):
            await log_in(client, INVALID_TOKEN)
        assert await logins(client) == []


async def test_a_token_that_github_rejects_is_not_stored_under_a_given_name(sdk: Sdk) -> None:
    async with github(sdk, [], token=None, refusals=1), sdk.client() as client:
        wanted = rpc.AccountLoginRequest(host=HOST, login="somebody", token=INVALID_TOKEN)
        with pytest.raises(Exception, match="Unauthorized"):
            await client.rpc.account.login(wanted)
        assert await logins(client) == []


async def test_an_account_that_is_signed_in_to_wins_over_a_variable_until_it_is_left(
    sdk: Sdk,
) -> None:
    async with github(sdk, [{"text": "ok"}] * 3) as server, sdk.client() as client:
        first = await client.create_session()
        await log_in(client, OTHER_TOKEN)
        second = await client.create_session()
        current = (await client.rpc.account.get_current_auth()).auth_info
        assert current.login == "second-user"
        assert (await client.get_auth_status()).login == "second-user"
        await client.rpc.account.logout(rpc.AccountLogoutRequest(auth_info=current))
        assert (await client.get_auth_status()).authType == "env"
        third = await client.create_session()
        for session in (first, second, third):
            await session.send_and_wait("hi", timeout=LIMIT)
        assert server.tokens == [TOKEN, OTHER_TOKEN, TOKEN]


async def test_models_are_listed_for_another_token(sdk: Sdk) -> None:
    async with github(sdk, [], refusals=1), sdk.client() as client:
        listed = await client.rpc.models.list(rpc.ModelsListRequest(git_hub_token=OTHER_TOKEN))
        names = [model.id for model in listed.models]
        assert DEFAULT in names
        assert "hidden-model" not in names
        with pytest.raises(Exception, match="Unauthorized"):
            await client.rpc.models.list(rpc.ModelsListRequest(git_hub_token=INVALID_TOKEN))


async def test_an_empty_token_is_called_empty(sdk: Sdk) -> None:
    async with github(sdk, [], token=None), sdk.client() as client:
        with pytest.raises(Exception, match="token is empty"):
            await log_in(client, " ")


@pytest.mark.parametrize("given", [None, OTHER_TOKEN])
async def test_quotas_come_from_github(sdk: Sdk, given: str | None) -> None:
    async with github(sdk, []), sdk.client() as client:
        quota = await client.rpc.account.get_quota(rpc.AccountGetQuotaRequest(git_hub_token=given))
    premium = quota.quota_snapshots["premium_interactions"]
    assert (premium.entitlement_requests, premium.used_requests) == (300, 75)
    assert premium.remaining_percentage == 75.0
    assert premium.reset_date == "2030-01-01"


async def test_quotas_need_an_account(sdk: Sdk) -> None:
    async with github(sdk, [], token=None), sdk.client() as client:
        with pytest.raises(Exception, match="Not authenticated"):
            await client.rpc.account.get_quota(rpc.AccountGetQuotaRequest())


@pytest.mark.parametrize(
    ("token", "login", "plan"),
    [(TOKEN, "first-user", "individual_pro"), (OTHER_TOKEN, "second-user", "business")],
)
async def test_a_session_knows_the_account_of_its_token(
    sdk: Sdk, token: str, login: str, plan: str
) -> None:
    async with github(sdk, [], token=None), sdk.client() as client:
        session = await client.create_session(github_token=token)
        status = await session.rpc.git_hub_auth.get_status()
        assert (status.login, status.copilot_plan) == (login, plan)
        assert status.is_authenticated


async def test_an_invalid_token_of_a_session_is_an_error(sdk: Sdk) -> None:
    async with github(sdk, [], token=None, refusals=1), sdk.client() as client:
        with pytest.raises(Exception, match="Unauthorized"):
            await client.create_session(github_token=INVALID_TOKEN)
        assert await client.list_sessions() == []


async def test_each_session_uses_its_own_token(sdk: Sdk) -> None:
    async with (
        github(sdk, {"replies": [], "otherwise": {"text": "ok"}}, token=None) as server,
        sdk.client() as client,
    ):
        first = await client.create_session(github_token=TOKEN)
        second = await client.create_session(github_token=OTHER_TOKEN)
        neither = await client.create_session()
        for session in (first, second, first):
            await session.send_and_wait("hi", timeout=LIMIT)
        assert server.tokens == [TOKEN, OTHER_TOKEN, TOKEN]
        status = await neither.rpc.git_hub_auth.get_status()
        assert not status.is_authenticated
        with pytest.raises(Exception, match="No model service"):
            await neither.send_and_wait("hi", timeout=LIMIT)


async def test_a_session_is_given_another_token_later(sdk: Sdk) -> None:
    async with (
        github(sdk, {"replies": [], "otherwise": {"text": "ok"}}, token=None) as server,
        sdk.client() as client,
    ):
        session = await client.create_session()
        for token in (TOKEN, OTHER_TOKEN):
            credentials = rpc.SettableTokenAuthInfo(host=HOST, token=token)
            done = await session.rpc.git_hub_auth.set_credentials(
                rpc.SessionSetCredentialsParams(credentials=credentials)
            )
            assert done.success
            assert done.copilot_user_resolved
            await session.send_and_wait("hi", timeout=LIMIT)
        assert server.tokens == [TOKEN, OTHER_TOKEN]
        assert (await session.rpc.git_hub_auth.get_status()).login == "second-user"
        await session.rpc.git_hub_auth.set_credentials(rpc.SessionSetCredentialsParams())
        assert not (await session.rpc.git_hub_auth.get_status()).is_authenticated
    (log,) = sdk.logs()
    assert TOKEN not in log.read_text()


@pytest.mark.parametrize(
    ("model", "wire"),
    [(DEFAULT, "completions"), ("responses-model", "responses"), ("messages-model", None)],
)
async def test_the_endpoint_of_githubs_service_is_told(
    sdk: Sdk, model: str, wire: str | None
) -> None:
    sdk.env["COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"] = "true"
    async with github(sdk, []) as server, sdk.client() as client:
        session = await client.create_session(model=model)
        endpoint = await session.rpc.provider.get_endpoint()
        assert endpoint.base_url == server.url
        assert endpoint.api_key == TOKEN
        assert (endpoint.wire_api.value if endpoint.wire_api else None) == wire
        assert endpoint.type.value == ("openai" if wire else "anthropic")
        assert "copilot-integration-id" in endpoint.headers
