"""Where models can come from on this machine, what each source offers, and whom it contacts."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence

import msgspec

from trimtab.config.paths import Home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.provider import Price
from trimtab.models.choose import LOCAL, ModelChooser
from trimtab.models.registry import Registry, registered_choice, registered_price
from trimtab.providers.addresses import parse_url, proxy_for
from trimtab.providers.auth import Key
from trimtab.providers.copilot import Copilot, find_token, github_api
from trimtab.providers.effort import effort_schema
from trimtab.providers.endpoints import PREFIX, ProviderChoice, environment_choices
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import ModelInfo, chat_models, discover
from trimtab.providers.local import find_servers, server_addresses
from trimtab.providers.prices import price_of
from trimtab.providers.windows import window_of


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model that can be used now. `choice` is what to write after `--model`."""

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
    """The schema of what can be chosen about it."""


class Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A service. `models` is None if it could not be asked, and `problem` says why."""

    name: str
    because: str
    address: str
    models: list[Offer] | None = None
    problem: str | None = None


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """An address that may be contacted, when and why, and through which proxy."""

    address: str
    why: str
    allowed: bool = True
    proxy: str | None = None


class Sources:
    """Everything the environment, `providers.json` and this machine name."""

    def __init__(self, env: Mapping[str, str], home: Home, *, offline: bool = False) -> None:
        self._env = env
        self._offline = offline
        self._chooser = ModelChooser(env, home)

    async def survey(self, *, refresh: bool = False) -> list[Source]:
        """Ask all sources at once what they have."""
        http = HttpClient(self._env, offline=self._offline)
        try:
            found: list[Coroutine[None, None, Source | None]] = [
                self._describe(f"named by {_variable(choice)}", choice, http, refresh)
                for choice in self._environment()
            ]
            registry = self._chooser.registry or Registry()
            found += [
                self._registered(registry, one.name, http, refresh) for one in registry.providers
            ]
            if (key := find_token(self._env)) is not None:
                found.append(self._copilot(key, http, refresh))
            found += [
                self._describe("found on this machine", choice, http, refresh)
                for choice in await find_servers(self._env)
            ]
            sources = [source for source in await asyncio.gather(*found) if source is not None]
            return [*sources, *self._embedded()]
        finally:
            await http.aclose()

    def destinations(self, servers: Iterable[McpServer] = ()) -> list[Destination]:
        """List every address that could be contacted, without contacting any.

        `servers` are the MCP servers that are configured.
        """
        wanted = [
            (choice.base_url, f"model service {choice.name}, named by {_variable(choice)}")
            for choice in self._environment()
        ]
        registry = self._chooser.registry or Registry()
        wanted += [
            (one.base_url, f"model service {one.name}, registered in providers.json")
            for one in registry.providers
        ]
        if (key := find_token(self._env)) is not None:
            wanted += self._copilot_addresses(key)
        looked_for = "looked for when `trimtab models` asks or nothing else is configured"
        wanted += [
            (address, f"{name} on this machine, {looked_for}")
            for name, address in server_addresses(self._env).items()
        ]
        wanted += [
            (one.url, f"MCP server {one.name}, configured in {one.file}")
            for one in servers
            if one.enabled and one.type != "local" and _is_address(one.url)
        ]
        return [self._destination(address, why) for address, why in wanted]

    def _copilot_addresses(self, key: Key) -> Sequence[tuple[str, str]]:
        why = f"GitHub's models, with the token of {key.source}"
        if address := self._env.get("COPILOT_API_URL"):
            return [(address, why)]
        github = github_api(self._env)
        usual = "https://api.githubcopilot.com"
        return [
            (github, f"{why}: says where the account's model service is"),
            (usual, f"{why}: the usual address; {github} may name another"),
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
        from trimtab.providers.embedded.weights import find_weights, is_usable

        if not is_usable(self._env):
            return []
        offer = Offer(choice=LOCAL, name="the embedded model", tools=True)
        address = find_weights(self._env) or ""
        return [Source(name=LOCAL, because="it was pulled", address=address, models=[offer])]

    def _environment(self) -> list[ProviderChoice]:
        """A service named by COPILOT_PROVIDER_BASE_URL takes every name, so it is the only one."""
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
            models = [self._offer(prefix + one.id, one) for one in chat_models(found.models)]
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
                return None  # gh is there, but nobody is signed in: not a source at all
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
        """The models the file lists, or, where it lists none, those the service does."""
        because = "registered in providers.json"
        provider = registry.provider(name)
        assert provider is not None
        own = [model for model in registry.models if model.provider == name]
        if not own:
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
            for model in own
        ]
        return Source(name=name, because=because, address=provider.base_url, models=offers)


def _is_address(url: str) -> bool:
    try:
        parse_url(url)
    except ModelError:
        return False
    return True


def _variable(choice: ProviderChoice) -> str:
    return choice.key.source or "its address"
