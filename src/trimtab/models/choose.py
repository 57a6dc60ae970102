"""Which model a session uses, and through which service: the one place that decides."""

import os
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.provider import Delta, Price, Provider, Reply, Request
from trimtab.providers.auth import Key
from trimtab.providers.endpoints import (
    PREFIX,
    ProviderChoice,
    connect,
    environment_choices,
    from_environment,
)
from trimtab.providers.prices import price_of

if TYPE_CHECKING:
    from trimtab.models.registry import Registry
    from trimtab.providers.copilot import Copilot

LOCAL = "local"
NO_MODEL = (
    "No model service is configured; set OPENAI_API_KEY or ANTHROPIC_API_KEY, or point "
    "COPILOT_PROVIDER_BASE_URL at any OpenAI-compatible server, or fetch the small embedded model "
    "with `trimtab models pull local` (needs pip install 'trimtab[local]')."
)


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A model, the service it is reached through, and what is known about it.

    `prompt_limit` is how many tokens a prompt may have.
    """

    provider: Provider
    model: str
    price: Price | None = None
    prompt_limit: int | None = None
    fallbacks: tuple["Chosen", ...] = ()
    roles: "RoleModels | None" = None

    def with_headers(self, headers: Mapping[str, str]) -> "Chosen":
        """The same, with these headers in every request."""
        from trimtab.models.catalog import WithHeaders

        return msgspec.structs.replace(
            self,
            provider=WithHeaders(self.provider, headers),
            fallbacks=tuple(one.with_headers(headers) for one in self.fallbacks),
        )

    async def aclose(self) -> None:
        for one in (self, *self.fallbacks):
            await one.provider.aclose()
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
    """The models a person chose for work beside the conversation, connected when first needed."""

    def __init__(self, chooser: "ModelChooser", options: SessionOptions) -> None:
        self._chooser = chooser
        self._options = options
        self._chosen: dict[str, Chosen] = {}

    def has(self, role: str) -> bool:
        """Whether a model was chosen for a role."""
        registry = self._chooser.registry
        return registry is not None and role in registry.roles

    async def get(self, role: str) -> Chosen | None:
        """The model for a role, if one was chosen for it."""
        if not self.has(role):
            return None
        if role not in self._chosen:
            self._chosen[role] = await self._chooser.choose(self._options, role)
        return self._chosen[role]

    async def aclose(self) -> None:
        for one in self._chosen.values():
            await one.aclose()


class ModelChooser:
    """Chooses by what the person named, then by the environment, then by what is there.

    `provider` replaces all of that: programs that embed their own model, and tests.
    """

    def __init__(
        self, env: Mapping[str, str], home: Home, provider: Provider | None = None
    ) -> None:
        self._env = env
        self._home = home
        self._provider = provider

    @property
    def registry(self) -> "Registry | None":
        """What `providers.json` says, if there is one."""
        path = os.path.join(self._home.config, "providers.json")
        if not os.path.exists(path):
            return None
        from trimtab.models.registry import load_registry

        return load_registry(path)

    @property
    def cache(self) -> str:
        """Where lists of models are kept."""
        return os.path.join(self._home.state, "cache", "models")

    async def choose(self, options: SessionOptions, role: str = "main") -> Chosen:
        """The model for a role (main, subagent, compaction, title) of a session."""
        wanted = options.model or self._env.get("COPILOT_MODEL")
        given = options.provider or self._provider
        if given is not None:
            return self._chosen(given, wanted or given.name)
        offline = is_offline(options, self._env)
        registry = self.registry
        if registry is not None and (role != "main" or not wanted):
            wanted = registry.roles.get(role) or wanted or self._registered_default(registry)
        try:
            if wanted and (named := self._choose_named(wanted, registry, offline)):
                return named
            return await self._choose_found(wanted, offline)
        except AuthenticationError as error:
            if options.needs_model:
                raise
            return self._chosen(NoService(error), wanted or "")

    def find(self, name: str, options: SessionOptions) -> Chosen | None:
        """Another service, if a name tells one; None: it is a model of the service in use."""
        if options.provider is not None or self._provider is not None:
            return None
        return self._choose_named(name, self.registry, is_offline(options, self._env))

    def is_declared(self, model: str) -> bool:
        """Tell whether a person described a model in `providers.json`."""
        registry = self.registry
        found = registry.find(model) if registry is not None else None
        return found is not None and found[2] is not None

    async def choose_fallbacks(self, options: SessionOptions) -> list[Chosen]:
        """The models to go on with when the first cannot answer: only those the person named."""
        names = options.fallback
        if not names and (registry := self.registry) is not None:
            names = registry.fallback
        return [await self.choose(msgspec.structs.replace(options, model=name)) for name in names]

    def describe(self, model: str) -> tuple[Price | None, int | None]:
        """Price and prompt limit of a model by its name, without connecting to anything."""
        from trimtab.providers.windows import window_of

        registry = self.registry
        found = registry.find(model) if registry is not None else None
        if found is None or found[2] is None:
            return price_of(model, self._env), window_of(model)
        from trimtab.models.registry import registered_price

        entry = found[2]
        limit = entry.max_prompt_tokens or entry.max_context_window_tokens
        return registered_price(entry) or price_of(model, self._env), limit or window_of(model)

    async def find_service(self) -> ProviderChoice:
        """The service of a session for which nothing is chosen."""
        if (choice := from_environment(self._env)) is not None:
            return choice
        registry = self.registry
        if registry is not None and registry.default and (found := registry.find(registry.default)):
            from trimtab.models.registry import registered_choice

            return registered_choice(found[0], found[2], self._env)
        if (key := await self._find_token()) is not None:
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
        """A service named by COPILOT_PROVIDER_BASE_URL wins over the file's default."""
        return None if self._env.get(PREFIX + "BASE_URL") else registry.default

    def _choose_named(
        self, wanted: str, registry: "Registry | None", offline: bool
    ) -> Chosen | None:
        """The service a name itself tells, as `provider/model` or by a registered id."""
        if wanted == LOCAL:
            return self._embedded()
        if registry is not None and (found := registry.find(wanted)) is not None:
            from trimtab.models.registry import registered_choice, registered_price

            provider, _, model = found
            choice = registered_choice(provider, model, self._env)
            if model is None:
                choice = msgspec.structs.replace(choice, wire_model=found[1])
            return self._connected(choice, wanted, offline, registered_price(model))
        if self._env.get(PREFIX + "BASE_URL"):
            return None  # the names of that service may have slashes of their own
        service, slash, model_id = wanted.partition("/")
        if slash and service == "copilot":
            from trimtab.providers.copilot import TOKENS, find_token

            key = find_token(self._env)
            if key is None:
                raise AuthenticationError(
                    f"Not authenticated: no GitHub token for {wanted}; set {TOKENS[0]}, or sign "
                    "in with `gh auth login`."
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

    async def _choose_found(self, wanted: str | None, offline: bool) -> Chosen:
        """The first service there is: the environment's, GitHub's, a local server, the embedded."""
        choice = from_environment(self._env)
        if choice is not None:
            return self._connected(choice, wanted or choice.model, offline)
        if not offline and (key := await self._find_token()) is not None:
            provider = self._copilot(key)
            return self._chosen(provider, wanted or await provider.find_default_model())
        from trimtab.providers.local import find_servers

        servers = [server for server in await find_servers(self._env) if server.model]
        if servers:
            return self._connected(servers[0], wanted or servers[0].model, offline)
        if wanted:
            raise AuthenticationError(f"There is no service to ask for {wanted!r}. {NO_MODEL}")
        return self._embedded()

    async def _find_token(self) -> Key | None:
        """GitHub's token, if there is one; `gh` may be there without anybody signed in to it."""
        from trimtab.providers.copilot import find_token

        key = find_token(self._env)
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
        from trimtab.providers.windows import window_of

        return Chosen(
            provider=provider,
            model=model,
            price=price or price_of(model, self._env),
            prompt_limit=prompt_limit or window_of(model),
        )

    def _embedded(self) -> Chosen:
        """The model of last resort: a small one on this machine, if it was pulled."""
        from trimtab.providers.embedded.weights import cache_folder, find_weights, is_usable

        if not is_usable(self._env):
            raise AuthenticationError(NO_MODEL)
        from trimtab.providers.embedded.provider import EmbeddedProvider

        slots = os.path.join(cache_folder(self._env), "slots")
        return self._chosen(EmbeddedProvider(find_weights(self._env) or "", slots), LOCAL)


def is_offline(options: SessionOptions, env: Mapping[str, str]) -> bool:
    """Whether nothing but this machine may be contacted."""
    return bool(options.offline) or env.get("COPILOT_OFFLINE", "").lower() in {"1", "true"}
