"""Which service to talk to: the choice the environment makes, as data."""

from collections.abc import Mapping

import msgspec

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.providers.addresses import parse_url
from trimtab.providers.auth import AuthKind, Key
from trimtab.providers.service import Service

PREFIX = "COPILOT_PROVIDER_"


class ProviderChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A service: wire, address, authentication, and what is known about its model.

    `path` replaces the wire's own path below `base_url`; `{model}` in it stands for the model.
    `model` is the id to use if the person names none, `wire_model` what the service calls it.
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
    """The levels of effort the model knows, where that is known."""
    aliases: bool = False
    """Whether the service is asked by names of its own (deployments), not by names of models."""


class _Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What the services of one type have in common."""

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


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """A public service found by its own variables."""

    key: str
    address: str
    kind: str
    base_url: str
    model: str
    limit_field: str | None = None
    efforts: tuple[str, ...] = ()


_KNOWN = (
    _Known(
        key="OPENAI_API_KEY",
        address="OPENAI_BASE_URL",
        kind="openai",
        base_url="https://api.openai.com/v1",
        model="gpt-4.1",
        limit_field="max_completion_tokens",
        efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
    ),
    _Known(
        key="ANTHROPIC_API_KEY",
        address="ANTHROPIC_BASE_URL",
        kind="anthropic",
        base_url="https://api.anthropic.com",
        model="claude-sonnet-4-5",
    ),
)


def from_environment(env: Mapping[str, str]) -> ProviderChoice | None:
    """The service the environment names, or None. Raises `ConfigurationError` for a bad value."""
    choices = environment_choices(env)
    return choices[0] if choices else None


def environment_choices(env: Mapping[str, str]) -> list[ProviderChoice]:
    """All services the environment names, the one that is used unless a person says else first."""
    choices = []
    if env.get(PREFIX + "BASE_URL"):
        choices.append(_checked(_custom(env), PREFIX + "BASE_URL"))
    choices += [
        _checked(_public(known, env), known.address)
        for known in _KNOWN
        if env.get(known.key) or env.get(known.address)
    ]
    return choices


def _checked(choice: ProviderChoice, variable: str) -> ProviderChoice:
    try:
        parse_url(choice.base_url)
    except ModelError:
        raise ConfigurationError(
            f"{variable} is {choice.base_url!r}, which is no web address; set it to one like "
            "http://127.0.0.1:8000/v1."
        ) from None
    return choice


def connect(
    choice: ProviderChoice, *, offline: bool = False, env: Mapping[str, str] | None = None
) -> Service:
    """The service of a choice. `env` gives proxies and certificates (default: the process's)."""
    import os

    from trimtab.providers.http import HttpClient

    return Service(choice, HttpClient(os.environ if env is None else env, offline=offline))


def _public(known: _Known, env: Mapping[str, str]) -> ProviderChoice:
    kind = _KINDS[known.kind]
    address = env.get(known.address)
    return ProviderChoice(
        name=known.kind,
        base_url=address or known.base_url,
        wire=kind.wire,
        auth=kind.auth if env.get(known.key) else "none",
        key=Key(value=env.get(known.key, ""), source=known.key),
        headers=kind.headers,
        model=env.get("COPILOT_MODEL") or known.model,
        limit_field=None if address else known.limit_field,
        efforts=() if address else known.efforts,
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
    """Azure's dated interface addresses deployments; without a date its current one is used."""
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
                f"{PREFIX}HEADERS has a line without a name and a colon; write 'Name: value' on "
                "each line."
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
