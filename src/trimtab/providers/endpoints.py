"""Reads the choice of a model service from the environment."""

from collections.abc import Mapping

import msgspec

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.providers.addresses import parse_url
from trimtab.providers.auth import AuthKind, Key
from trimtab.providers.service import Service

PREFIX = "COPILOT_PROVIDER_"


class ProviderChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A service: its wire, address, authentication, and facts about its model.

    `path` replaces the wire's own path below `base_url`; `{model}` in it stands for the model.
    `model` is the default id, `wire_model` the service's own name for it.
    """

    name: str
    base_url: str
    wire: str = "openai-chat"
    path: str | None = None
    auth: AuthKind = "bearer"
    key: Key = Key()
    headers: dict[str, str] = {}
    model: str | None = None
    wire_model: str | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    limit_field: str | None = None
    window: int | None = None
    efforts: tuple[str, ...] = ()
    """The model's levels of effort, if known."""
    aliases: bool = False
    """True if the service uses names of its own (deployments) instead of model names."""


class _Kind(msgspec.Struct, frozen=True, kw_only=True):
    """The properties that all services of one type share."""

    wire: str = "openai-chat"
    auth: AuthKind = "bearer"
    headers: dict[str, str] = {}
    limit_field: str | None = None


_KINDS = {
    "openai": _Kind(),
    "azure": _Kind(auth="api-key", limit_field="max_completion_tokens"),
    "anthropic": _Kind(
        wire="anthropic-messages", auth="x-api-key", headers={"anthropic-version": "2023-06-01"}
    ),
}
_WIRE_APIS = {"completions": "openai-chat", "responses": "openai-responses"}
_AZURE_PATHS = {
    "openai-chat": "/openai/deployments/{model}/chat/completions",
    "openai-responses": "/openai/responses",
}


class _PublicService(msgspec.Struct, frozen=True, kw_only=True):
    """A public service that is selected by its own variables."""

    key: str
    address: str
    kind: str
    base_url: str
    model: str
    limit_field: str | None = None
    efforts: tuple[str, ...] = ()


_PUBLIC_SERVICES = (
    _PublicService(
        key="OPENAI_API_KEY",
        address="OPENAI_BASE_URL",
        kind="openai",
        base_url="https://api.openai.com/v1",
        model="gpt-4.1",
        limit_field="max_completion_tokens",
        efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
    ),
    _PublicService(
        key="ANTHROPIC_API_KEY",
        address="ANTHROPIC_BASE_URL",
        kind="anthropic",
        base_url="https://api.anthropic.com",
        model="claude-sonnet-4-5",
    ),
)


def from_environment(env: Mapping[str, str]) -> ProviderChoice | None:
    """Return the service that the environment selects, or None. Raises `ConfigurationError`."""
    choices = environment_choices(env)
    return choices[0] if choices else None


def environment_choices(env: Mapping[str, str]) -> list[ProviderChoice]:
    """Return all services that the environment configures, the default one first."""
    choices = []
    if env.get(PREFIX + "BASE_URL"):
        choices.append(_checked(_custom(env), PREFIX + "BASE_URL"))
    choices += [
        _checked(_public(service, env), service.address)
        for service in _PUBLIC_SERVICES
        if env.get(service.key) or env.get(service.address)
    ]
    return choices


def _checked(choice: ProviderChoice, variable: str) -> ProviderChoice:
    try:
        parse_url(choice.base_url)
    except ModelError:
        raise ConfigurationError(
            f"{variable} is {choice.base_url!r}, which is not a web address; set it to one like "
            "http://127.0.0.1:8000/v1."
        ) from None
    return choice


def connect(choice: ProviderChoice, *, env: Mapping[str, str], offline: bool = False) -> Service:
    """Return the service of a choice. `env` supplies proxies and certificates."""
    from trimtab.providers.http import HttpClient

    return Service(choice, HttpClient(env, offline=offline))


def _public(service: _PublicService, env: Mapping[str, str]) -> ProviderChoice:
    kind = _KINDS[service.kind]
    address = env.get(service.address)
    return ProviderChoice(
        name=service.kind,
        base_url=address or service.base_url,
        wire=kind.wire,
        auth=kind.auth if env.get(service.key) else "none",
        key=Key(value=env.get(service.key, ""), source=service.key),
        headers=kind.headers,
        model=env.get("COPILOT_MODEL") or service.model,
        limit_field=None if address else service.limit_field,
        efforts=() if address else service.efforts,
    )


def _custom(env: Mapping[str, str]) -> ProviderChoice:
    name = _one_of(env, "TYPE", _KINDS, "openai")
    kind = _KINDS[name]
    wire = kind.wire
    if name != "anthropic":
        wire = _WIRE_APIS[_one_of(env, "WIRE_API", _WIRE_APIS, "completions")]
    auth, key = _key(env, kind)
    model = env.get(PREFIX + "MODEL_ID") or env.get("COPILOT_MODEL")
    wire_model = env.get(PREFIX + "WIRE_MODEL")
    return ProviderChoice(
        name=name,
        base_url=env[PREFIX + "BASE_URL"],
        wire=wire,
        path=_azure_path(env, wire) if name == "azure" else None,
        auth=auth,
        key=key,
        headers={**kind.headers, **_headers(env)},
        model=model or wire_model,
        wire_model=wire_model,
        max_prompt_tokens=_positive(env, "MAX_PROMPT_TOKENS"),
        max_output_tokens=_positive(env, "MAX_OUTPUT_TOKENS"),
        limit_field=kind.limit_field,
        aliases=name == "azure",
    )


def _key(env: Mapping[str, str], kind: _Kind) -> tuple[AuthKind, Key]:
    for name in ("BEARER_TOKEN", "API_KEY", "API_KEY_COMMAND"):
        value = env.get(PREFIX + name, "").strip()
        if value:
            command = name.endswith("_COMMAND")
            auth: AuthKind = "bearer" if name == "BEARER_TOKEN" else kind.auth
            return auth, Key(
                value="" if command else value,
                command=value if command else "",
                source=PREFIX + name,
            )
    return "none", Key()


def _azure_path(env: Mapping[str, str], wire: str) -> str | None:
    """Return the path of Azure's dated API, which addresses deployments, or of its current one."""
    version = env.get(PREFIX + "AZURE_API_VERSION")
    if version:
        return f"{_AZURE_PATHS[wire]}?api-version={version}"
    if "/openai" in env[PREFIX + "BASE_URL"]:
        return None
    return "/openai/v1/chat/completions" if wire == "openai-chat" else "/openai/v1/responses"


def _headers(env: Mapping[str, str]) -> dict[str, str]:
    headers = {}
    for line in env.get(PREFIX + "HEADERS", "").splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ConfigurationError(
                f"{PREFIX}HEADERS contains a line without a name and a colon; write 'Name: value' "
                "on each line."
            )
        headers[name.strip().lower()] = value.strip()
    return headers


def _one_of(env: Mapping[str, str], name: str, allowed: Mapping[str, object], default: str) -> str:
    value = env.get(PREFIX + name, "").strip().lower() or default
    if value not in allowed:
        raise ConfigurationError(
            f"{PREFIX}{name} is {value!r}; set it to {' or '.join(allowed)}, or unset it."
        )
    return value


def _positive(env: Mapping[str, str], name: str) -> int | None:
    value = env.get(PREFIX + name, "").strip()
    if not value:
        return None
    if not value.isdigit() or not int(value):
        raise ConfigurationError(
            f"{PREFIX}{name} is {value!r}; set it to a whole number of tokens, or unset it."
        )
    return int(value)
