"""Chooses the model of a session and the service it is called through."""

import os
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.provider import Delta, Price, Provider, Reply, Request
from trimtab.providers.auth import GITHUB_TOKENS, Key
from trimtab.providers.endpoints import (
    PREFIX,
    ProviderChoice,
    connect,
    environment_choices,
    from_environment,
)
from trimtab.providers.prices import price_of
from trimtab.providers.windows import window_of

if TYPE_CHECKING:
    from trimtab.models.registry import Registry
    from trimtab.providers.copilot import Copilot

LOCAL = "local"
NO_MODEL = (
    "No model service is configured; set OPENAI_API_KEY or ANTHROPIC_API_KEY, or point "
    "COPILOT_PROVIDER_BASE_URL at any OpenAI-compatible server, or fetch the small embedded model "
    "with `trimtab models pull local` (requires pip install 'trimtab[local]')."
)


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its service, price and limits. `prompt_limit` is the token limit of a prompt."""

    provider: Provider
    model: str
    price: Price | None = None
    prompt_limit: int | None = None
    fallbacks: tuple["Chosen", ...] = ()
    roles: "RoleModels | None" = None

    def with_headers(self, headers: Mapping[str, str]) -> "Chosen":
        """Return a copy that adds headers to every request."""
        from trimtab.models.catalog import WithHeaders

        return msgspec.structs.replace(
            self,
            provider=WithHeaders(self.provider, headers),
            fallbacks=tuple(fallback.with_headers(headers) for fallback in self.fallbacks),
        )

    async def aclose(self) -> None:
        for model in (self, *self.fallbacks):
            await model.provider.aclose()
        if self.roles is not None:
            await self.roles.aclose()


class NoService:
    """Stands in for a service that could not be chosen: every call raises the reason."""

    name = "none"

    def __init__(self, reason: AuthenticationError) -> None:
        self._reason = reason

    def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        raise self._reason

    async def aclose(self) -> None:
        pass


class RoleModels:
    """The models configured for roles such as `title`, connected when first needed."""

    def __init__(self, chooser: "ModelChooser", options: SessionOptions) -> None:
        self._chooser = chooser
        self._options = options
        self._chosen: dict[str, Chosen] = {}

    def has(self, role: str) -> bool:
        """Return True if a model is configured for a role."""
        registry = self._chooser.registry
        return registry is not None and role in registry.roles

    async def get(self, role: str) -> Chosen | None:
        """Return the model configured for a role, or None."""
        if not self.has(role):
            return None
        if role not in self._chosen:
            self._chosen[role] = await self._chooser.choose(self._options, role)
        return self._chosen[role]

    async def aclose(self) -> None:
        for model in self._chosen.values():
            await model.aclose()


class ModelChooser:
    """Chooses by name, then by the environment, then among the services that are available.

    A `provider` takes precedence over all of them: embedding programs and tests supply one.
    """

    def __init__(
        self, env: Mapping[str, str], home: Home, provider: Provider | None = None
    ) -> None:
        self._env = env
        self._home = home
        self._provider = provider
        self.listed_windows: dict[str, int] = {}
        """Context windows that services have listed for their models, as far as we asked them."""

    @property
    def registry(self) -> "Registry | None":
        """The content of `providers.json`, if the file exists."""
        path = os.path.join(self._home.config, "providers.json")
        if not os.path.exists(path):
            return None
        from trimtab.models.registry import load_registry

        return load_registry(path)

    @property
    def cache(self) -> str:
        """The folder with cached lists of models."""
        return os.path.join(self._home.state, "cache", "models")

    async def choose(self, options: SessionOptions, role: str = "main") -> Chosen:
        """Choose the model for a role of a session: main, subagent, compaction or title."""
        name = options.model or self._env.get("COPILOT_MODEL")
        provider = options.provider or self._provider
        if provider is not None:
            return self._chosen(provider, name or provider.name)
        offline = is_offline(options, self._env)
        registry = self.registry
        if registry is not None and (role != "main" or not name):
            name = registry.roles.get(role) or name or self._registered_default(registry)
        try:
            if name and (named := self._choose_named(name, registry, offline)):
                return named
            return await self._choose_available(name, offline)
        except AuthenticationError as error:
            if options.needs_model:
                raise
            return self._chosen(NoService(error), name or "")

    def find(self, name: str, options: SessionOptions) -> Chosen | None:
        """Return a model of another service if the name selects one, else None."""
        if options.provider is not None or self._provider is not None:
            return None
        return self._choose_named(name, self.registry, is_offline(options, self._env))

    def is_declared(self, model: str) -> bool:
        """Return True if `providers.json` describes a model."""
        registry = self.registry
        found = registry.find(model) if registry is not None else None
        return found is not None and found[2] is not None

    async def choose_fallbacks(self, options: SessionOptions) -> list[Chosen]:
        """Choose the configured fallback models."""
        names = options.fallback
        if not names and (registry := self.registry) is not None:
            names = registry.fallback
        return [await self.choose(msgspec.structs.replace(options, model=name)) for name in names]

    def describe(self, model: str) -> tuple[Price | None, int | None]:
        """Return the price and prompt limit of a model by its name, without a connection."""
        registry = self.registry
        found = registry.find(model) if registry is not None else None
        if found is None or found[2] is None:
            return price_of(model, self._env), self._find_window(model)
        from trimtab.models.registry import registered_price

        entry = found[2]
        limit = entry.max_prompt_tokens or entry.max_context_window_tokens
        price = registered_price(entry) or price_of(model, self._env)
        return price, limit or self._find_window(model)

    def _find_window(self, model: str) -> int | None:
        return self.listed_windows.get(model) or window_of(model)

    async def find_service(self) -> ProviderChoice:
        """Return the service of a session that names no model."""
        if (choice := from_environment(self._env)) is not None:
            return choice
        registry = self.registry
        if registry is not None and registry.default and (found := registry.find(registry.default)):
            from trimtab.models.registry import registered_choice

            return registered_choice(found[0], found[2], self._env)
        if (key := await self.find_key()) is not None:
            from trimtab.providers.copilot import Copilot

            copilot = Copilot(key, self._env)
            try:
                return await copilot.choice()
            finally:
                await copilot.aclose()
        from trimtab.providers.local import find_servers

        if servers := await find_servers(self._env):
            return servers[0]
        raise AuthenticationError(NO_MODEL)

    def _registered_default(self, registry: "Registry") -> str | None:
        """Return the file's default model, unless COPILOT_PROVIDER_BASE_URL names a service."""
        return None if self._env.get(PREFIX + "BASE_URL") else registry.default

    def _choose_named(self, name: str, registry: "Registry | None", offline: bool) -> Chosen | None:
        """Choose by a name that selects a service: `provider/model`, or a registered id."""
        if name == LOCAL:
            return self._embedded()
        if registry is not None and (found := registry.find(name)) is not None:
            from trimtab.models.registry import registered_choice, registered_price

            provider, _, model = found
            choice = registered_choice(provider, model, self._env)
            if model is None:
                choice = msgspec.structs.replace(choice, wire_model=found[1])
            return self._connected(choice, name, offline, registered_price(model))
        if self._env.get(PREFIX + "BASE_URL"):
            return None  # the model names of that service may contain slashes
        service, slash, model_id = name.partition("/")
        if slash and service == "copilot":
            key = find_github_key(self._env)
            if key is None:
                raise AuthenticationError(
                    f"Not authenticated: no GitHub token for {name}; set {GITHUB_TOKENS[0]}, or "
                    "sign in with `gh auth login`."
                )
            return self._chosen(self._copilot(key, offline=offline), model_id)
        for choice in environment_choices(self._env) if slash else ():
            if choice.name == service:
                return self._connected(choice, model_id, offline)
        return self._choose_server(service, model_id, offline) if slash else None

    def _choose_server(self, name: str, model: str, offline: bool) -> Chosen | None:
        from trimtab.providers.local import server_addresses

        address = server_addresses(self._env).get(name)
        if address is None:
            return None
        choice = ProviderChoice(name=name, base_url=address, auth="none")
        return self._connected(choice, model, offline)

    async def _choose_available(self, model: str | None, offline: bool) -> Chosen:
        """Use the first available service: the environment's, GitHub's, a local one, embedded."""
        choice = from_environment(self._env)
        if choice is not None:
            return self._connected(choice, model or choice.model, offline)
        if not offline and (key := await self.find_key()) is not None:
            provider = self._copilot(key)
            model = model or await provider.find_default_model()
            return self._chosen(provider, model, prompt_limit=provider.known_limit(model))
        from trimtab.providers.local import find_servers

        servers = [server for server in await find_servers(self._env) if server.model]
        if servers:
            return self._connected(servers[0], model or servers[0].model, offline)
        if model:
            raise AuthenticationError(f"No service is available for {model!r}. {NO_MODEL}")
        return self._embedded()

    async def find_key(self) -> Key | None:
        """Return GitHub's token, or None if there is none or nobody is signed in to `gh`."""
        key = find_github_key(self._env)
        if key is None or not key.command:
            return key
        try:
            return Key(value=await key.reveal(), source=key.source)
        except AuthenticationError:
            return None

    def _copilot(self, key: Key, *, offline: bool = False) -> "Copilot":
        from trimtab.providers.copilot import Copilot

        return Copilot(key, self._env, offline=offline, cache=self.cache)

    def _connected(
        self, choice: ProviderChoice, model: str | None, offline: bool, price: Price | None = None
    ) -> Chosen:
        if not model:
            raise ConfigurationError(
                f"No model is chosen for {choice.base_url}; pass --model ID or set COPILOT_MODEL."
            )
        service = connect(choice, offline=offline, env=self._env)
        limit = choice.max_prompt_tokens or choice.window
        return self._chosen(service, model, price=price, prompt_limit=limit)

    def _chosen(
        self,
        provider: Provider,
        model: str,
        *,
        price: Price | None = None,
        prompt_limit: int | None = None,
    ) -> Chosen:
        return Chosen(
            provider=provider,
            model=model,
            price=price or price_of(model, self._env),
            prompt_limit=prompt_limit or self._find_window(model),
        )

    def _embedded(self) -> Chosen:
        """Return the embedded model, the last resort, if it was pulled."""
        from trimtab.providers.embedded.weights import cache_folder, find_weights, is_usable

        if not is_usable(self._env):
            raise AuthenticationError(NO_MODEL)
        from trimtab.providers.embedded.provider import EmbeddedProvider

        slots = os.path.join(cache_folder(self._env), "slots")
        return self._chosen(EmbeddedProvider(find_weights(self._env) or "", slots), LOCAL)


def find_github_key(env: Mapping[str, str], *, run_gh: bool = True) -> Key | None:
    """Return GitHub's token: from a variable, of the account a person signed in to, or of `gh`."""
    from trimtab.config.accounts import find_stored_token
    from trimtab.providers.copilot import find_token

    if (key := find_token(env, run_gh=False)) is not None:
        return key
    if (stored := find_stored_token(env)) is not None:
        token, login = stored
        return Key(value=token, source=f"the account {login}")
    return find_token(env) if run_gh else None


def is_offline(options: SessionOptions, env: Mapping[str, str]) -> bool:
    """Return True if no other machine may be contacted."""
    return bool(options.offline) or env.get("COPILOT_OFFLINE", "").lower() in {"1", "true"}
