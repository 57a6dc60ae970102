"""Models: those the service offers, the model of a session, and its providers."""

from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.models.catalog import ModelSettings, ProviderSettings
from trimtab.providers.copilot import Copilot
from trimtab.providers.service import Service
from trimtab.runtime.live import LiveSession
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.methods.account import find_account, stored_accounts
from trimtab.transports.rpc.server import Server
from trimtab.transports.rpc.setup import read_vision

methods = Methods()


class SwitchTo(msgspec.Struct, rename="camel"):
    model_id: str
    reasoning_effort: str | None = None
    model_capabilities: JsonObject | None = None


class SetEffort(msgspec.Struct, rename="camel"):
    reasoning_effort: str


class AddProviders(msgspec.Struct):
    providers: tuple[ProviderSettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()


class ListModels(msgspec.Struct, rename="camel"):
    """The account whose models are listed: by its token, or as `account.getAllUsers` names it."""

    git_hub_token: str | None = None
    selection_id: str | None = None


@methods.on("models.list", ListModels)
async def list_models(call: Call, params: ListModels) -> JsonObject:
    token = params.git_hub_token
    if token is None and params.selection_id is not None:
        token = stored_accounts(call).token(find_account(call, params.selection_id))
    return {"models": await find_models(call.server, token)}


async def find_models(server: Server, token: str | None = None) -> list[JsonObject]:
    """Return the chat models of the service, as it describes them, for a token or the usual one."""
    runtime = server.runtime_for(token)
    return [dict(model) for model in await runtime.list_models() if is_offered(model)]


def is_offered(model: JsonObject) -> bool:
    """Return False for models that the service wants nobody to choose."""
    return is_chat_model(model) and model.get("model_picker_enabled") is not False


def is_chat_model(model: JsonObject) -> bool:
    """Return False for models of another type, such as embeddings."""
    capabilities = model.get("capabilities")
    kind = capabilities.get("type") if isinstance(capabilities, dict) else None
    return kind in (None, "chat")


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


@methods.on("session.model.getCurrent")
async def get_current(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    current: JsonObject = {"modelId": live.model}
    if live.controls.effort:
        current["reasoningEffort"] = live.controls.effort
    return current


@methods.on("session.model.switchTo", SwitchTo)
async def switch_to(call: Call, params: SwitchTo) -> JsonObject:
    """Switch the model from the next call on; the conversation is kept."""
    if not params.model_id.strip():
        raise UsageError("modelId is empty; name a model.")
    hosted = call.session
    found = hosted.catalog.find(params.model_id) if hosted.catalog else None
    controls = hosted.live.controls
    if found is None:
        model = await controls.switch_model(params.model_id, effort=params.reasoning_effort)
    else:
        provider, model = found
        controls.set_model(model, effort=params.reasoning_effort, provider=provider)
    if params.model_capabilities is not None:
        controls.set_vision(read_vision(params.model_capabilities))
    state = await get_current(call, Nothing())
    return {"modelId": model, "deferred": False, "status": "applied", "modelState": state}


@methods.on("session.model.setReasoningEffort", SetEffort)
async def set_effort(call: Call, params: SetEffort) -> JsonObject:
    call.session.live.controls.set_effort(params.reasoning_effort)
    return {"reasoningEffort": params.reasoning_effort}


@methods.on("session.model.list")
async def list_session_models(call: Call, params: Nothing) -> JsonObject:
    """List the session's own models, then those of the service in the environment."""
    hosted = call.session
    catalog = hosted.catalog
    own = [
        describe_model(model.choice, model.name, model.max_context_window_tokens)
        for model in (catalog.models.values() if catalog else ())
    ]
    if catalog is not None and catalog.provider is not None:
        return {"list": [*own, describe_model(hosted.live.model)]}
    return {"list": [*own, *await find_models(call.server)]}


@methods.on("session.provider.add", AddProviders)
async def add_providers(call: Call, params: AddProviders) -> JsonObject:
    catalog = call.session.catalog
    assert catalog is not None
    catalog.add(params.providers, params.models)
    return {"models": [describe_model(model.choice, model.name) for model in params.models]}


WIRE_APIS = {"openai-chat": "completions", "openai-responses": "responses"}


async def describe_service(live: LiveSession) -> JsonObject:
    """Return the address and headers of the service that the session itself was given."""
    provider: Any = live.controls.agent.model.provider
    provider = getattr(provider, "provider", provider)  # without the headers of the client's name
    if isinstance(provider, Copilot):
        choice = await provider.describe(live.model)
    elif isinstance(provider, Service):
        choice = provider.choice
    else:
        raise UsageError(
            f"The model service {provider.name} has no address; configure one that has."
        )
    key = await choice.key.reveal()
    wire_api = WIRE_APIS.get(choice.wire)
    return {
        "type": "openai" if wire_api else "anthropic",
        **({"wireApi": wire_api} if wire_api else {}),
        "baseUrl": choice.base_url,
        "headers": dict(choice.headers),
        "transport": "http",
        **({"apiKey": key} if key else {}),
    }


ALLOW_ENDPOINT = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"


@methods.on("session.provider.getEndpoint")
async def get_endpoint(call: Call, params: Nothing) -> JsonObject:
    """Return the address and the key of the model service, if the server's owner allows it."""
    if call.server.env.get(ALLOW_ENDPOINT) != "true":
        raise UsageError(f"To enable this API, set {ALLOW_ENDPOINT}=true when the server starts.")
    hosted = call.session
    settings = hosted.catalog.describe(hosted.live.model) if hosted.catalog else None
    if settings is None:
        return await describe_service(hosted.live)
    return {
        "type": settings.type or "openai",
        "wireApi": settings.wire_api or "completions",
        "baseUrl": settings.base_url,
        "headers": settings.headers,
        "transport": "http",
        **({"apiKey": settings.api_key} if settings.api_key else {}),
    }
