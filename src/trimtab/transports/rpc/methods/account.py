"""The GitHub account: its token comes from the environment or the session."""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import NotAvailable

methods = Methods()
TOKENS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")


@methods.on("auth.getStatus")
async def get_status(call: Call, params: Nothing) -> JsonObject:
    """Report the token of the environment, without contacting the service."""
    env = call.server.env
    variable = next((name for name in TOKENS if env.get(name)), None)
    if variable is not None:
        return {
            "isAuthenticated": True,
            "authType": "env",
            "host": "https://github.com",
            "statusMessage": f"Authenticated with the token of {variable}",
        }
    return {"isAuthenticated": False, "statusMessage": "Not authenticated"}


@methods.on("session.gitHubAuth.getStatus")
async def get_session_status(call: Call, params: Nothing) -> JsonObject:
    if call.session.token is not None:
        return {
            "isAuthenticated": True,
            "authType": "token",
            "host": "https://github.com",
            "statusMessage": "Authenticated with the token of the session",
        }
    return await get_status(call, params)


@methods.on("account.getCurrentAuth")
async def get_current_auth(call: Call, params: Nothing) -> JsonObject:
    return {}


@methods.on("account.getAllUsers")
async def get_all_users(call: Call, params: Nothing) -> list[JsonObject]:
    """Return nothing: accounts are not stored, tokens come from the environment."""
    return []


@methods.on("account.getQuota")
async def get_quota(call: Call, params: Nothing) -> None:
    raise NotAvailable("Quotas need GitHub's service, which is not connected.")


@methods.on("account.login")
async def log_in(call: Call, params: Nothing) -> None:
    raise NotAvailable("Tokens are not stored here; set COPILOT_GITHUB_TOKEN instead.")


@methods.on("account.logout")
async def log_out(call: Call, params: Nothing) -> JsonObject:
    return {"hasMoreUsers": False}
