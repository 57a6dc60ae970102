"""The models there are."""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.server import Server

methods = Methods()


@methods.on("models.list")
async def list_models(call: Call, params: Nothing) -> JsonObject:
    return {"models": await find_models(call.server)}


async def find_models(server: Server) -> list[JsonObject]:
    """What the service of the environment offers, in its own words."""
    return [dict(model) for model in await server.runtime.list_models()]


def describe_model(model: str, name: str | None = None, window: int | None = None) -> JsonObject:
    limits: JsonObject = {"max_context_window_tokens": window} if window else {}
    return {
        "id": model,
        "name": name or model,
        "capabilities": {
            "supports": {"vision": False, "reasoningEffort": False},
            "limits": limits,
        },
    }
