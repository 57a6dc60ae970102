"""Unsupported methods, answered with empty results or refused."""

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()

EMPTY: dict[str, JsonObject] = {
    "managedSettings.read": {},
    "models.getBuiltInCatalog": {"models": []},
    "session.autopilotObjective.getState": {"state": None},
    "session.extensions.reconcile": {"extensions": []},
    "session.limitPrediction.predict": {"kind": "unavailable", "reason": "no_model"},
    "session.mcp.moveLoadingToBackground": {"movedToBackground": False},
    "session.sandbox.getEnforcementStatus": {"required": False, "blocked": False},
    "extensions.discover": {"extensions": [], "mode": "disabled"},
    "session.extensions.list": {"extensions": []},
    "session.telemetry.getEngagementId": {},
    "session.telemetry.setFeatureOverrides": {},
    "session.visibility.get": {"synced": False},
    "session.visibility.set": {"synced": False},
    "session.lsp.initialize": {},
}
"""Method → result that says that there is nothing to do: no extensions, no telemetry, and
language servers start by themselves."""

REFUSED = {
    **dict.fromkeys(
        (
            "extensions.enable",
            "extensions.disable",
            "session.extensions.enable",
            "session.extensions.disable",
            "session.extensions.reload",
        ),
        "Extensions not available: this version has none.",
    ),
    "agentRegistry.spawn": "agentRegistry.spawn is not enabled: sessions of this server are "
    "created with session.create.",
    "session.extensions.sendAttachmentsToMessage": "Only an extension may send attachments to a "
    "message; send them with session.send.",
}


def _answer(name: str) -> None:
    @methods.on(name)
    async def answer(call: Call, params: Nothing) -> JsonObject:
        return EMPTY[name]


@methods.on("managedSettings.clearCache")
async def clear_managed_settings(call: Call, params: Nothing) -> None:
    """Do nothing: policies are read from files when they are needed."""


@methods.on("session.quota.takeWarnings")
@methods.on("session.gitHubAuth.lastAuthErrors")
async def list_nothing(call: Call, params: Nothing) -> list[JsonObject]:
    """Return an empty list: warnings and errors are events of the session."""
    return []


@methods.on("registerExtensionLaunchProvider")
async def register_launch_provider(call: Call, params: Nothing) -> None:
    """Accept a client that would launch extensions; there are none to launch."""


def _refuse(name: str) -> None:
    @methods.on(name)
    async def refuse(call: Call, params: Nothing) -> JsonObject:
        raise UsageError(REFUSED[name])


for _name in EMPTY:
    _answer(_name)
for _name in REFUSED:
    _refuse(_name)
