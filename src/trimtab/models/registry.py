"""Reads `providers.json`: registered model services, their models, and the models of roles."""

from collections.abc import Mapping

import msgspec

from trimtab.config.files import read_regular
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.provider import Price
from trimtab.models.catalog import ModelSettings, ProviderSettings, read_choice
from trimtab.providers.auth import Key
from trimtab.providers.endpoints import ProviderChoice
from trimtab.providers.names import did_you_mean

ROLES = ("main", "subagent", "compaction", "title")


class RegisteredPrice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class RegisteredProvider(ProviderSettings, frozen=True, kw_only=True, rename="camel"):
    """A service. Its key comes from a variable or a command, never from the file itself."""

    api_key_env: str | None = None
    default_model: str | None = None


class RegisteredModel(ModelSettings, frozen=True, kw_only=True, rename="camel"):
    price: RegisteredPrice | None = None
    efforts: tuple[str, ...] = ()


class Registry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of the file.

    `default`, `roles` and `fallback` name models as `provider/model`. Roles are main, subagent,
    compaction and title; fallbacks are used in order.
    """

    providers: tuple[RegisteredProvider, ...] = ()
    models: tuple[RegisteredModel, ...] = ()
    default: str | None = None
    roles: dict[str, str] = {}
    fallback: tuple[str, ...] = ()

    def provider(self, name: str) -> RegisteredProvider | None:
        return next((provider for provider in self.providers if provider.name == name), None)

    def find(self, name: str) -> tuple[RegisteredProvider, str, RegisteredModel | None] | None:
        """Return the service and model for a name: `provider/model`, a model's id, or a provider.

        Raises `ConfigurationError` if the file lists models for the provider, but not this one.
        """
        alone = self.provider(name)
        if alone is not None and alone.default_model:
            name = f"{name}/{alone.default_model}"
        prefix, slash, model_id = name.partition("/")
        provider = self.provider(prefix) if slash else None
        if provider is None:
            model = next((model for model in self.models if model.id == name), None)
            owner = self.provider(model.provider) if model else None
            return (owner, name, model) if owner else None
        models = {model.id: model for model in self.models if model.provider == prefix}
        if models and model_id not in models:
            raise ConfigurationError(
                f"Unknown model {model_id!r}: providers.json does not list it for {prefix}; "
                f"{did_you_mean(model_id, models)}"
            )
        return provider, model_id, models.get(model_id)

    def names(self) -> list[str]:
        return [model.choice for model in self.models]


def load_registry(path: str) -> Registry:
    """Read the file; a missing file is an empty registry. Raises `ConfigurationError`."""
    try:
        registry = msgspec.json.decode(read_regular(path), type=Registry)
    except FileNotFoundError:
        return Registry()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error}); correct it.") from None
    _check(registry, path)
    return registry


def _check(registry: Registry, path: str) -> None:
    names = {provider.name for provider in registry.providers}
    for provider in registry.providers:
        if provider.api_key or provider.bearer_token:
            raise ConfigurationError(
                f"{path} contains a key of {provider.name!r}; remove it from the file, and name "
                "the variable or command that supplies it with apiKeyEnv or apiKeyCommand."
            )
    for model in registry.models:
        if model.provider not in names:
            raise ConfigurationError(
                f"{path} lists the model {model.id!r} of {model.provider!r}, which is not among "
                "its providers; add the provider or correct the name."
            )
    for role in registry.roles:
        if role not in ROLES:
            raise ConfigurationError(
                f"{path} contains the unknown role {role!r}; use one of {', '.join(ROLES)}."
            )


def registered_choice(
    provider: RegisteredProvider, model: RegisteredModel | None, env: Mapping[str, str]
) -> ProviderChoice:
    """Return the settings of a registered service for one of its models, with its key."""
    if provider.api_key_env:
        key = env.get(provider.api_key_env, "").strip()
        if not key:
            raise ConfigurationError(
                f"providers.json takes the key of {provider.name!r} from {provider.api_key_env}, "
                "which is not set; set it."
            )
        provider = msgspec.structs.replace(provider, api_key=key)
    choice = read_choice(provider)
    if provider.api_key_env:
        source = Key(value=choice.key.value, source=provider.api_key_env)
        choice = msgspec.structs.replace(choice, key=source)
    choice = msgspec.structs.replace(
        choice, name=provider.name, model=provider.default_model or choice.model
    )
    if model is None:
        return choice
    return msgspec.structs.replace(
        choice,
        wire_model=model.wire_model or model.id,
        max_prompt_tokens=model.max_prompt_tokens or choice.max_prompt_tokens,
        max_output_tokens=model.max_output_tokens or choice.max_output_tokens,
        window=model.max_context_window_tokens,
        efforts=model.efforts,
    )


def registered_price(model: RegisteredModel | None) -> Price | None:
    if model is None or model.price is None:
        return None
    row = model.price
    return Price(
        input=row.input, output=row.output, cache_read=row.cache_read, cache_write=row.cache_write
    )
