"""GitHub accounts: those a person signed in to, and the token of a session."""

from typing import Any

import msgspec

from trimtab.config.accounts import GITHUB, Account, Accounts
from trimtab.contracts.errors import AuthenticationError, ModelError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.models.choose import is_offline
from trimtab.providers.auth import GITHUB_TOKENS, Key
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import FAILED, RpcError
from trimtab.transports.rpc.token_provider import use_token

methods = Methods()


@methods.on("auth.getStatus")
async def get_status(call: Call, params: Nothing) -> JsonObject:
    """Report the account that new sessions use, without contacting GitHub."""
    info = describe_current(call)
    if info is None:
        return {"isAuthenticated": False, "statusMessage": "Not authenticated"}
    source = info.get("envVar") or info.get("login") or "gh"
    status: JsonObject = {
        "isAuthenticated": True,
        "authType": info["type"],
        "host": info["host"],
        "statusMessage": f"Authenticated with the token of {source}",
    }
    return {**status, "login": info["login"]} if "login" in info else status


@methods.on("session.gitHubAuth.getStatus")
async def get_session_status(call: Call, params: Nothing) -> JsonObject:
    """Report the token of the session, with its account, or the one that all sessions use."""
    hosted = call.session
    if hosted.token is None:
        status = await get_status(call, params)
        if not status["isAuthenticated"]:
            return status
        return {**name_user(await find_user(call)), **status}
    named = name_user(hosted.user)
    return {
        "isAuthenticated": True,
        "authType": "token",
        "host": GITHUB,
        "statusMessage": f"Authenticated as {named.get('login', 'the owner of the session token')}",
        **named,
    }


def name_user(user: JsonObject) -> JsonObject:
    """Return the login and the plan of an account, as far as GitHub told them."""
    found = {"login": user.get("login"), "copilotPlan": user.get("copilot_plan")}
    return {name: value for name, value in found.items() if isinstance(value, str)}


async def find_user(call: Call) -> JsonObject:
    """Return the account of the token that all sessions use; empty if GitHub does not tell."""
    server = call.server
    if is_offline(server.defaults, server.env):
        return {}
    key = await server.runtime.models.find_key()
    if key is None:
        return {}
    token = await key.reveal()
    if token not in server.users:
        try:
            server.users[token] = await server.fetch_user(key)
        except ModelError:
            return {}
    return server.users[token]


class Credentials(msgspec.Struct, rename="camel"):
    """A token, or an account that was signed in to."""

    type: str
    host: str = GITHUB
    token: str | None = None
    login: str | None = None


class SetCredentials(msgspec.Struct):
    credentials: Credentials | None = None


@methods.on("session.gitHubAuth.setCredentials", SetCredentials)
async def set_credentials(call: Call, params: SetCredentials) -> JsonObject:
    """Use another token for the model calls of this session, or the shared one again."""
    token = None
    if params.credentials is not None:
        token = params.credentials.token or find_account_token(call, params.credentials)
    user = await use_token(call.server, call.session, token)
    return {"success": True, "copilotUserResolved": bool(user)}


def find_account_token(call: Call, credentials: Credentials) -> str:
    """Return the token of an account that was signed in to."""
    accounts = stored_accounts(call)
    for account in accounts.list():
        if account.login == credentials.login and (token := accounts.token(account)):
            return token
    raise UsageError(
        f"There is no token for credentials of the type {credentials.type!r}; give one, or sign in "
        "with account.login."
    )


@methods.on("account.getCurrentAuth")
async def get_current_auth(call: Call, params: Nothing) -> JsonObject:
    info = describe_current(call)
    return {"authInfo": info} if info else {}


@methods.on("account.getAllUsers")
async def get_all_users(call: Call, params: Nothing) -> list[JsonObject]:
    """Return the accounts that were signed in to, the current one first."""
    accounts = stored_accounts(call)
    return [
        {
            "authInfo": describe_account(account),
            "selectionId": account.id,
            "token": accounts.token(account),
        }
        for account in accounts.list()
    ]


class Quota(msgspec.Struct, rename="camel"):
    git_hub_token: str | None = None
    selection_id: str | None = None


@methods.on("account.getQuota", Quota)
async def get_quota(call: Call, params: Quota) -> JsonObject:
    """Return what is left of the account's quotas, as GitHub reports it."""
    key: Key | None
    if params.git_hub_token:
        key = Key(value=params.git_hub_token, source="the request")
    elif params.selection_id:
        account = find_account(call, params.selection_id)
        key = Key(value=stored_accounts(call).token(account), source=f"account {account.login}")
    else:
        key = await call.server.runtime.models.find_key()
    if key is None:
        raise RpcError(FAILED, "Not authenticated. Please authenticate first, with account.login.")
    user = await call.server.fetch_user(key)
    snapshots = user.get("quota_snapshots")
    reset = user.get("quota_reset_date_utc") or user.get("quota_reset_date")
    return {
        "quotaSnapshots": {
            name: describe_quota(snapshot, reset)
            for name, snapshot in (snapshots if isinstance(snapshots, dict) else {}).items()
            if isinstance(snapshot, dict)
        }
    }


def describe_quota(snapshot: JsonObject, reset: Any) -> JsonObject:
    entitlement = _number(snapshot.get("entitlement"))
    unlimited = snapshot.get("unlimited") is True or entitlement < 0
    remaining = _number(snapshot.get("remaining", snapshot.get("quota_remaining")))
    permitted = snapshot.get("overage_permitted") is True
    quota: JsonObject = {
        "entitlementRequests": -1 if unlimited else int(entitlement),
        "isUnlimitedEntitlement": unlimited,
        "overage": _number(snapshot.get("overage_count")),
        "overageAllowedWithExhaustedQuota": permitted,
        "usageAllowedWithExhaustedQuota": unlimited or permitted,
        "usedRequests": 0 if unlimited else max(0, int(entitlement - remaining)),
        "remainingPercentage": _number(snapshot.get("percent_remaining")),
    }
    return {**quota, "resetDate": reset} if isinstance(reset, str) else quota


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0


class Login(msgspec.Struct):
    token: str
    host: str = GITHUB
    login: str | None = None


@methods.on("account.login", Login)
async def log_in(call: Call, params: Login) -> JsonObject:
    """Store an account and its token; new sessions of this server use it from now on.

    GitHub is asked for the name of the account, unless the client gives it and GitHub cannot be
    reached. A token that GitHub rejects is not stored.
    """
    if not params.token.strip():
        raise UsageError("The token is empty; give the token of the account.")
    login = await find_login(call, params)
    call.server.hide([params.token])
    account = Account(login=login, host=params.host.rstrip("/"), token=params.token)
    stored = stored_accounts(call).add(account)
    call.server.prefer_accounts(preferred=True)
    return {"storedInVault": stored}


async def find_login(call: Call, params: Login) -> str:
    """Return the name of the account of a token. Raises `ModelError`."""
    server = call.server
    is_checked = params.host.rstrip("/") == GITHUB and not is_offline(server.defaults, server.env)
    if params.login and not is_checked:
        return params.login
    try:
        user = await server.fetch_user(Key(value=params.token, source="the request"))
    except AuthenticationError:
        raise
    except ModelError:
        if not params.login:
            raise
        return params.login
    return params.login or str(user["login"])


class Logout(msgspec.Struct, rename="camel"):
    auth_info: JsonObject | None = None
    selection_id: str | None = None


@methods.on("account.logout", Logout)
async def log_out(call: Call, params: Logout) -> JsonObject:
    """Forget an account, or the current one; signing out twice is not an error."""
    accounts = stored_accounts(call)
    known = accounts.list()
    wanted = params.selection_id
    if params.auth_info is not None:
        host = str(params.auth_info.get("host") or GITHUB).rstrip("/")
        wanted = f"{host}/{params.auth_info.get('login')}"
    elif wanted is None and known:
        wanted = known[0].id
    if any(account.id == wanted for account in known):
        accounts.remove(wanted or "")
    if not accounts.list():
        call.server.prefer_accounts(preferred=False)
    return {"hasMoreUsers": bool(accounts.list())}


def stored_accounts(call: Call) -> Accounts:
    return Accounts(call.server.runtime.home, call.server.env)


def find_account(call: Call, account_id: str) -> Account:
    for account in stored_accounts(call).list():
        if account.id == account_id:
            return account
    raise UsageError(f"Unknown account {account_id!r}; list them with account.getAllUsers.")


def describe_account(account: Account) -> JsonObject:
    return {"type": "user", "host": account.host, "login": account.login}


def describe_current(call: Call) -> JsonObject | None:
    """Return the account that new sessions use; None if there is none."""
    env = call.server.env
    for name in GITHUB_TOKENS:
        if token := env.get(name, "").strip():
            return {"type": "env", "host": GITHUB, "envVar": name, "token": token}
    if env.get("TRIMTAB_NO_LOGIN"):
        return None
    account = stored_accounts(call).current()
    return describe_account(account) if account else None
