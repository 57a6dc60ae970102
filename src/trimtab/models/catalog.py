"""The model services that a client supplies for a session, in addition to the environment's."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Delta, ListsModels, Provider, Reply, Request
from trimtab.providers.auth import Key
from trimtab.providers.copilot import DEFAULT_MODEL
from trimtab.providers.endpoints import PREFIX, ProviderChoice, connect, from_environment
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import fetch

SECRET_HEADERS = ("authorization", "key", "token", "secret", "cookie")
"""Substrings of header names that mark credentials."""
GetToken = Callable[[str], Awaitable[str]]
"""Takes a provider's name and returns a token for one request."""


class AzureSettings(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str | None = None


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model service as a client describes it."""

    base_url: str = ""
    name: str = "default"
    type: str | None = None
    wire_api: str | None = None
    api_key: str | None = None
    api_key_command: str | None = None
    bearer_token: str | None = None
    has_bearer_token_provider: bool = False
    headers: dict[str, str] = {}
    azure: AzureSettings | None = None
    model_id: str | None = None
    wire_model: str | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None

    def keys(self) -> tuple[str, ...]:
        """Return the credentials in these settings."""
        headers = (
            value.rpartition(" ")[2]
            for name, value in self.headers.items()
            if any(word in name.lower() for word in SECRET_HEADERS)
        )
        return tuple(filter(None, (self.api_key, self.bearer_token, *headers)))


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model of a client's service. Its name for `--model` is `provider/id`."""

    id: str
    provider: str
    wire_model: str | None = None
    model_id: str | None = None
    name: str | None = None
    max_prompt_tokens: int | None = None
    max_context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    capabilities: JsonObject | None = None

    @property
    def choice(self) -> str:
        return f"{self.provider}/{self.id}"


class RequestedKey(Key, frozen=True, kw_only=True):
    """A key that is requested from the client for every request."""

    ask: Callable[[], Awaitable[str]]

    async def reveal(self) -> str:
        return await self.ask()


class WithHeaders:
    """A provider that adds headers to every request; the request's own headers win."""

    def __init__(self, provider: Provider, headers: Mapping[str, str]) -> None:
        self.name = provider.name
        self.provider = provider
        self._headers = headers

    def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        headers = {**self._headers, **request.headers}
        return self.provider.stream(msgspec.structs.replace(request, headers=headers))

    async def list_models(self) -> list[str] | None:
        if isinstance(self.provider, ListsModels):
            return await self.provider.list_models()
        return None

    async def aclose(self) -> None:
        await self.provider.aclose()


class SessionCatalog:
    """The services and models that a client supplies for one session.

    A single `provider` replaces the environment's service; `providers` are added to it and serve
    the `models` that name them.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        provider: ProviderSettings | None = None,
        providers: tuple[ProviderSettings, ...] = (),
        models: tuple[ModelSettings, ...] = (),
        get_token: GetToken,
    ) -> None:
        self._env = env
        self.provider = provider
        self.models: dict[str, ModelSettings] = {}
        self._providers: dict[str, ProviderSettings] = {}
        self._get_token = get_token
        self.add(providers, models)

    def add(
        self, providers: tuple[ProviderSettings, ...], models: tuple[ModelSettings, ...]
    ) -> None:
        known = {**self._providers, **{provider.name: provider for provider in providers}}
        for model in models:
            if model.provider not in known:
                raise ConfigurationError(
                    f"Model {model.id!r} names the provider {model.provider!r}, which is not among "
                    "the providers; add it, or correct the name."
                )
        self._providers = known
        self.models |= {model.choice: model for model in models}

    def find(self, model: str | None) -> tuple[Provider, str] | None:
        """Return the service of a model and its name there; None if the catalog lacks it."""
        if self.provider is not None:
            choice = self._choice(self.provider)
            # A client may name a model later, with the first prompt that needs one.
            name = model or choice.model or self._env.get("COPILOT_MODEL") or DEFAULT_MODEL
            return connect(choice, env=self._env), name
        found = self.models.get(model or "")
        if found is None and model:
            found = next((known for known in self.models.values() if known.id == model), None)
        if found is None:
            return None
        choice = self._choice(self._providers[found.provider])
        choice = msgspec.structs.replace(
            choice,
            wire_model=found.wire_model or found.id,
            max_prompt_tokens=found.max_prompt_tokens,
            max_output_tokens=found.max_output_tokens,
        )
        return connect(choice, env=self._env), found.choice

    def describe(self, model: str) -> ProviderSettings | None:
        """Return the settings of a model's service."""
        if self.provider is not None:
            return self.provider
        found = self.models.get(model)
        return self._providers[found.provider] if found else None

    def _choice(self, settings: ProviderSettings) -> ProviderChoice:
        choice = read_choice(settings)
        if settings.has_bearer_token_provider:
            name = settings.name
            key = RequestedKey(source=f"provider {name}", ask=lambda: self._get_token(name))
            choice = msgspec.structs.replace(choice, auth="bearer", key=key)
        return choice


def read_choice(settings: ProviderSettings) -> ProviderChoice:
    """Interpret the settings like the environment variables of the same names."""
    if not settings.base_url:
        raise ConfigurationError(f"Provider {settings.name!r} has no baseUrl; add one.")
    values = {
        "BASE_URL": settings.base_url,
        "TYPE": settings.type,
        "WIRE_API": settings.wire_api,
        "API_KEY": settings.api_key,
        "API_KEY_COMMAND": settings.api_key_command,
        "BEARER_TOKEN": settings.bearer_token,
        "HEADERS": "\n".join(f"{name}: {value}" for name, value in settings.headers.items()),
        "AZURE_API_VERSION": settings.azure and settings.azure.api_version,
        "MODEL_ID": settings.model_id,
        "WIRE_MODEL": settings.wire_model,
        "MAX_PROMPT_TOKENS": settings.max_prompt_tokens,
        "MAX_OUTPUT_TOKENS": settings.max_output_tokens,
    }
    choice = from_environment(
        {PREFIX + name: str(value) for name, value in values.items() if value}
    )
    assert choice is not None
    return choice


async def fetch_models(choice: ProviderChoice, env: Mapping[str, str]) -> list[JsonObject]:
    """Return the models that a service lists, with the fields clients need."""
    http = HttpClient(env)
    try:
        models = await fetch(choice, http, await choice.key.reveal())
    finally:
        await http.aclose()
    return [_complete(model) for model in models]


def _complete(model: JsonObject) -> JsonObject:
    capabilities = model.get("capabilities")
    if not isinstance(capabilities, dict):
        capabilities = {"supports": {}, "limits": {}}
    return {**model, "name": model.get("name") or model.get("id"), "capabilities": capabilities}
