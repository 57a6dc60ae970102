"""Fetches, parses and caches the list of a service's models."""

import asyncio
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.providers.addresses import join_url
from trimtab.providers.auth import auth_header
from trimtab.providers.errors import from_response

if TYPE_CHECKING:
    from trimtab.providers.endpoints import ProviderChoice
    from trimtab.providers.http import HttpClient

CACHE_SECONDS = 3600.0
_FETCH_SECONDS = 10.0
_NOT_FOR_CHAT = ("embed", "whisper", "tts", "dall-e", "moderation", "rerank", "transcribe", "image")

Raw = dict[str, Any]


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model as its service describes it; None means that the service does not say."""

    id: str
    name: str
    vendor: str | None = None
    chat: bool = True
    listed: bool = True
    """False for models that exist but are not offered: not for chat, or not enabled."""
    default: bool = False
    """True for the model that the service marks as its default for chat."""
    offered: bool = True
    """False if the service keeps the model out of pickers, or its policy was not agreed to."""
    window: int | None = None
    max_prompt: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    parallel_tools: bool | None = None
    vision: bool | None = None
    efforts: tuple[str, ...] = ()
    billing_multiplier: float | None = None
    endpoints: tuple[str, ...] = ()


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `discover`. If the service did not answer, `problem` says why."""

    models: list[ModelInfo] | None = None
    problem: str | None = None
    cached: bool = False


async def discover(
    choice: "ProviderChoice", http: "HttpClient", *, cache: str = "", refresh: bool = False
) -> Discovered:
    """Return the models of a service, from the folder `cache` if they are less than an hour old.

    The name of the cache file is a digest of address and key, so each account has its own. Never
    raises.
    """
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            key = await choice.key.reveal()
            path = _cache_path(cache, choice.base_url, key) if cache else ""
            raw = None if refresh else _load(path)
            cached = raw is not None
            if raw is None:
                raw = await fetch(choice, http, key)
                _store(path, raw)
    except TimeoutError:
        return Discovered(problem=f"no answer within {_FETCH_SECONDS:g} s")
    except ModelError as error:
        return Discovered(problem=error.message)
    return Discovered(models=[read_model(model) for model in raw], cached=cached)


async def list_names(choice: "ProviderChoice", http: "HttpClient") -> list[str] | None:
    """Return the names of a service's models; None if the service does not list them.

    Raises `ModelError` if the service cannot be reached or refuses to answer.
    """
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            models = await fetch(choice, http, await choice.key.reveal())
    except TimeoutError:
        raise ModelError(
            f"{choice.base_url} did not answer within {_FETCH_SECONDS:g} s; try again later.",
            category="transport",
        ) from None
    except ModelError as error:
        if error.category in ("not_found", "invalid"):
            return None
        raise
    return [model["id"] for model in models] or None


async def fetch(choice: "ProviderChoice", http: "HttpClient", key: str) -> list[Raw]:
    """Return a service's answer to `GET /models`. Raises `ModelError`."""
    path = "/v1/models" if choice.wire == "anthropic-messages" else "/models"
    headers = {"accept": "application/json", "accept-encoding": "identity", **choice.headers}
    headers |= auth_header(choice.auth, key)
    response = await http.request("GET", join_url(choice.base_url, path, ""), headers)
    try:
        body = await response.read(8 * 1024 * 1024)
    finally:
        response.close(expect_end=True)
    if response.status != 200:
        raise from_response(response.status, response.headers, body, secrets=(key,) if key else ())
    return read_list(body)


def read_list(body: bytes) -> list[Raw]:
    """Return the models in an answer, under `data` or `models`, or as a bare list."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        value = value.get("data", value.get("models"))
    if not isinstance(value, list):
        raise ModelError(
            "The service's list of models is invalid; check that its address is that of a model "
            "service.",
            category="invalid",
        )
    return [
        model for model in value if isinstance(model, dict) and isinstance(model.get("id"), str)
    ]


def read_model(raw: Raw) -> ModelInfo:
    """Parse a model as GitHub's, OpenAI's, Anthropic's and local services describe it."""
    capabilities, supports, limits = _parts(raw)
    described = isinstance(capabilities.get("type"), str)
    if described:
        chat = capabilities["type"] == "chat"
        state = _object(raw.get("policy")).get("state")
        listed = chat and (state == "enabled" or raw.get("preview") is True)
    else:
        chat = listed = not any(part in raw["id"].lower() for part in _NOT_FOR_CHAT)
    return ModelInfo(
        id=raw["id"],
        name=str(raw.get("name") or raw.get("display_name") or raw["id"]),
        vendor=_text(raw.get("vendor") or raw.get("owned_by")),
        chat=chat,
        listed=listed,
        default=raw.get("is_chat_default") is True,
        offered=raw.get("model_picker_enabled") is not False and _agreed(raw),
        window=_window(raw, limits),
        max_prompt=_number(limits.get("max_prompt_tokens")),
        max_output=_number(limits.get("max_output_tokens")),
        tools=_flag(supports.get("tool_calls")),
        parallel_tools=_flag(supports.get("parallel_tool_calls")),
        vision=_flag(supports.get("vision")),
        efforts=_texts(supports.get("reasoning_effort")),
        billing_multiplier=_real(_object(raw.get("billing")).get("multiplier")),
        endpoints=_texts(raw.get("supported_endpoints")),
    )


def chat_models(models: Sequence[ModelInfo]) -> list[ModelInfo]:
    """Return the models that are offered for chat."""
    return [model for model in models if model.listed]


def find_default(models: Sequence[ModelInfo]) -> str | None:
    """Return the service's default for chat, else the first model that a person may pick."""
    offered = [model for model in models if model.chat and model.offered]
    found = next((model for model in offered if model.default), None) or next(iter(offered), None)
    return found.id if found is not None else None


def _agreed(raw: Raw) -> bool:
    return _object(raw.get("policy")).get("state") in (None, "enabled")


def _parts(raw: Raw) -> tuple[Raw, Raw, Raw]:
    capabilities = _object(raw.get("capabilities"))
    return capabilities, _object(capabilities.get("supports")), _object(capabilities.get("limits"))


def _window(raw: Raw, limits: Raw) -> int | None:
    candidates = (
        limits.get("max_context_window_tokens"),
        raw.get("context_length"),
        raw.get("max_model_len"),
        raw.get("loaded_context_length"),
        raw.get("max_context_length"),
        _object(raw.get("meta")).get("n_ctx"),
    )
    return next((window for window in map(_number, candidates) if window), None)


def _object(value: Any) -> Raw:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _real(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


class _Cached(msgspec.Struct):
    fetched: float
    models: list[Raw]


def _cache_path(folder: str, address: str, key: str) -> str:
    digest = hashlib.sha256(f"{address}\0{key}".encode("utf-8", "replace")).hexdigest()
    return os.path.join(folder, f"{digest[:32]}.json")


def _load(path: str) -> list[Raw] | None:
    try:
        with open(path, "rb") as file:
            cached = msgspec.json.decode(file.read(), type=_Cached)
    except (OSError, ValueError):
        return None
    age = time.time() - cached.fetched
    return cached.models if 0 <= age < CACHE_SECONDS else None


def _store(path: str, models: Sequence[Mapping[str, Any]]) -> None:
    """Write the cache file. Errors are ignored: a missing cache only costs a request."""
    if not path:
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(msgspec.json.encode({"fetched": time.time(), "models": models}))
        os.replace(temporary, path)
    except OSError:
        return
