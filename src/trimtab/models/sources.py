"""Lists the model services configured or found on this machine, their models and addresses."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Price
from trimtab.models.choose import LOCAL, ModelChooser, find_github_key
from trimtab.models.registry import Registry, registered_choice, registered_price
from trimtab.providers.addresses import parse_url, proxy_for
from trimtab.providers.auth import Key
from trimtab.providers.copilot import Copilot, github_api
from trimtab.providers.effort import effort_schema
from trimtab.providers.embedded.weights import find_weights, is_usable
from trimtab.providers.endpoints import PREFIX, ProviderChoice, environment_choices
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import ModelInfo, chat_models, discover
from trimtab.providers.local import find_servers, server_addresses
from trimtab.providers.prices import price_of
from trimtab.providers.windows import window_of


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model that is available. `choice` is its name for `--model`."""

    choice: str
    name: str
    window: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    efforts: tuple[str, ...] = ()
    billing_multiplier: float | None = None
    price: Price | None = None
    configuration: JsonObject | None = None
    """The JSON schema of its options."""

    def describe(self) -> str:
        """Return what a person wants to know before choosing it, as far as it is known."""
        facts = [f"{self.window // 1000:,}k tokens"] if self.window else []
        facts += ["images"] if self.vision else []
        facts += [f"effort {'/'.join(self.efforts)}"] if self.efforts else []
        if self.billing_multiplier is not None:
            facts.append(f"{self.billing_multiplier:g}x")
        return ", ".join(facts)


class Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model service. If it did not answer, `models` is None and `problem` says why."""

    name: str
    because: str
    address: str
    models: list[Offer] | None = None
    problem: str | None = None


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """An address that may be contacted, the reason, and the proxy in use."""

    address: str
    why: str
    allowed: bool = True
    proxy: str | None = None


class Sources:
    """The model services of the environment, of `providers.json` and of this machine."""

    def __init__(self, env: Mapping[str, str], home: Home, *, offline: bool = False) -> None:
        self._env = env
        self._offline = offline
        self._chooser = ModelChooser(env, home)

    async def survey(self, *, refresh: bool = False) -> list[Source]:
        """Ask all sources in parallel for their models."""
        http = HttpClient(self._env, offline=self._offline)
        try:
            pending: list[Coroutine[None, None, Source | None]] = [
                self._describe(f"named by {_variable(choice)}", choice, http, refresh)
                for choice in self._environment()
            ]
            registry = self._chooser.registry or Registry()
            pending += [
                self._registered(registry, provider.name, http, refresh)
                for provider in registry.providers
            ]
            if (key := find_github_key(self._env)) is not None:
                pending.append(self._copilot(key, http, refresh))
            pending += [
                self._describe("found on this machine", choice, http, refresh)
                for choice in await find_servers(self._env)
            ]
            sources = [source for source in await asyncio.gather(*pending) if source is not None]
            return [*sources, *self._embedded()]
        finally:
            await http.aclose()

    def destinations(self, servers: Iterable[McpServer] = ()) -> list[Destination]:
        """List every address that could be contacted, without contacting any.

        `servers` are the configured MCP servers.
        """
        addresses = [
            (choice.base_url, f"model service {choice.name}, named by {_variable(choice)}")
            for choice in self._environment()
        ]
        registry = self._chooser.registry or Registry()
        addresses += [
            (provider.base_url, f"model service {provider.name}, registered in providers.json")
            for provider in registry.providers
        ]
        if (key := find_github_key(self._env)) is not None:
            addresses += self._copilot_addresses(key)
        condition = "tried by `trimtab models`, or if nothing else is configured"
        addresses += [
            (address, f"{name} on this machine, {condition}")
            for name, address in server_addresses(self._env).items()
        ]
        addresses += [
            (server.url, f"MCP server {server.name}, configured in {server.file}")
            for server in servers
            if server.enabled and server.type != "local" and _is_address(server.url)
        ]
        return [self._destination(address, why) for address, why in addresses]

    def _copilot_addresses(self, key: Key) -> Sequence[tuple[str, str]]:
        why = f"GitHub's models, with the token of {key.source}"
        if address := self._env.get("COPILOT_API_URL"):
            return [(address, why)]
        github = github_api(self._env)
        default = "https://api.githubcopilot.com"
        return [
            (github, f"{why}: returns the address of the account's model service"),
            (default, f"{why}: the default address; {github} may return another"),
        ]

    def _destination(self, address: str, why: str) -> Destination:
        try:
            url = parse_url(address)
        except ModelError as error:
            raise ConfigurationError(error.message) from None
        proxy = proxy_for(url, self._env)
        return Destination(
            address=url.origin,
            why=why,
            allowed=url.is_loopback or not self._offline,
            proxy=proxy.origin if proxy else None,
        )

    def _embedded(self) -> list[Source]:
        if not is_usable(self._env):
            return []
        offer = Offer(choice=LOCAL, name="the embedded model", tools=True)
        address = find_weights(self._env) or ""
        return [Source(name=LOCAL, because="it was pulled", address=address, models=[offer])]

    def _environment(self) -> list[ProviderChoice]:
        """A service of COPILOT_PROVIDER_BASE_URL receives every model name, so it stands alone."""
        choices = environment_choices(self._env)
        return choices[:1] if self._env.get(PREFIX + "BASE_URL") else choices

    async def _describe(
        self, because: str, choice: ProviderChoice, http: HttpClient, refresh: bool
    ) -> Source:
        found = await discover(choice, http, cache=self._chooser.cache, refresh=refresh)
        models = None
        if found.models is not None:
            plain = choice.base_url == self._env.get(PREFIX + "BASE_URL")
            prefix = "" if plain else f"{choice.name}/"
            models = [self._offer(prefix + model.id, model) for model in chat_models(found.models)]
        return Source(
            name=choice.name,
            because=because,
            address=choice.base_url,
            models=models,
            problem=found.problem,
        )

    def _offer(self, choice: str, model: ModelInfo) -> Offer:
        return Offer(
            choice=choice,
            name=model.name,
            window=model.window or window_of(model.id),
            max_output=model.max_output,
            tools=model.tools,
            vision=model.vision,
            efforts=model.efforts,
            configuration=effort_schema(model.efforts),
            billing_multiplier=model.billing_multiplier,
            price=price_of(model.id, self._env),
        )

    async def _copilot(self, key: Key, http: HttpClient, refresh: bool) -> Source | None:
        because = f"the token of {key.source}"
        copilot = Copilot(key, self._env, offline=self._offline)
        try:
            choice = await copilot.choice()
        except ModelError as error:
            if key.command and error.category == "auth" and error.status is None:
                return None  # gh is installed, but nobody is signed in
            return Source(
                name="copilot",
                because=because,
                address=github_api(self._env),
                problem=error.message,
            )
        finally:
            await copilot.aclose()
        return await self._describe(because, choice, http, refresh)

    async def _registered(
        self, registry: Registry, name: str, http: HttpClient, refresh: bool
    ) -> Source:
        """Return the models listed in the file, or those of the service if it lists none."""
        because = "registered in providers.json"
        provider = registry.provider(name)
        assert provider is not None
        models = [model for model in registry.models if model.provider == name]
        if not models:
            try:
                choice = registered_choice(provider, None, self._env)
            except ConfigurationError as error:
                return Source(
                    name=name, because=because, address=provider.base_url, problem=error.message
                )
            return await self._describe(because, choice, http, refresh)
        offers = [
            Offer(
                choice=model.choice,
                name=model.name or model.id,
                window=model.max_context_window_tokens or window_of(model.id),
                max_output=model.max_output_tokens,
                efforts=model.efforts,
                configuration=effort_schema(model.efforts),
                price=registered_price(model) or price_of(model.id, self._env),
            )
            for model in models
        ]
        return Source(name=name, because=because, address=provider.base_url, models=offers)


def list_windows(sources: Iterable[Source]) -> dict[str, int]:
    """Return the context windows of models, by their names with and without the service's."""
    found: dict[str, int] = {}
    for source in sources:
        for offer in source.models or ():
            if offer.window:
                found.setdefault(offer.choice.removeprefix(f"{source.name}/"), offer.window)
                found[offer.choice] = offer.window
    return found


def find_offer(model: str, sources: Iterable[Source]) -> Offer | None:
    """Return the offer of a model, by its name with or without that of the service."""
    for source in sources:
        for offer in source.models or ():
            if model in (offer.choice, offer.choice.partition("/")[2]):
                return offer
    return None


def _is_address(url: str) -> bool:
    try:
        parse_url(url)
    except ModelError:
        return False
    return True


def _variable(choice: ProviderChoice) -> str:
    return choice.key.source or "its address"
