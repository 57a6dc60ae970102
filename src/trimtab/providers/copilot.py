"""GitHub's model service: finds the token, the account's address and the wire of each model."""

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.contracts.messages import Image, UserMessage
from trimtab.contracts.provider import Delta, Reply, Request
from trimtab.providers.auth import GITHUB_TOKENS, Key, auth_header
from trimtab.providers.endpoints import ProviderChoice
from trimtab.providers.errors import from_response, unknown_model
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import ModelInfo, discover, find_default, list_names
from trimtab.providers.names import SERVICE_CHOOSES, did_you_mean
from trimtab.providers.service import Service
from trimtab.version import __version__

NAME = "copilot"
DEFAULT_MODEL = "gpt-4.1"
"""The model to ask for if the service's list cannot be read."""
MAX_REPOSITORIES = 10
"""The number of repositories that GitHub accepts in one request."""
_GH_COMMAND = "gh auth token"
_WIRES = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
    "ws:/responses": "openai-responses",
}
_SOCKET = "ws:/responses"
_INTENT = {"openai-intent": "conversation-agent", "x-interaction-type": "conversation-agent"}
_VISION = "copilot-vision-request"
_IMAGES = re.compile(rb'"(image|image_url|input_image)"')


def find_token(env: Mapping[str, str], *, run_gh: bool = True) -> Key | None:
    """Return the GitHub token, or None. `gh` is run only when the token is needed."""
    for name in GITHUB_TOKENS:
        if value := env.get(name, "").strip():
            return Key(value=value, source=name)
    if run_gh and not env.get("TRIMTAB_NO_LOGIN") and _has_program("gh", env):
        return Key(command=_GH_COMMAND, source=f"`{_GH_COMMAND}`")
    return None


def github_api(env: Mapping[str, str]) -> str:
    return env.get("COPILOT_DEBUG_GITHUB_API_URL") or "https://api.github.com"


class Exclusion(msgspec.Struct, frozen=True):
    """Patterns of paths that must not be shown to a model, and the source of the rule."""

    paths: tuple[str, ...]
    source: str


class Transports(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that make requests to the model service.

    `sockets` sends a request as a message of a WebSocket, for models that offer it.
    """

    http: HttpClient
    sockets: HttpClient | None = None


class Copilot:
    """The `Provider` for GitHub's service. It connects with the first call."""

    name = NAME

    def __init__(
        self,
        key: Key,
        env: Mapping[str, str],
        *,
        offline: bool = False,
        cache: str = "",
        transports: "Transports | None" = None,
    ) -> None:
        self._key = key
        self._env = env
        self._cache = cache
        self._http = HttpClient(env, offline=offline)
        self._transports = transports or Transports(http=self._http)
        self._base_url = env.get("COPILOT_API_URL", "")
        self._services: dict[str, Service] = {}
        self._models: dict[str, ModelInfo] | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        service = await self.find_service(request.model)
        headers = {**self._headers(request), **request.headers}
        async for item in service.stream(msgspec.structs.replace(request, headers=headers)):
            yield self._with_terms(item, request.model) if isinstance(item, Reply) else item

    def _with_terms(self, reply: Reply, asked: str) -> Reply:
        """Add what the service lists about the model, or about the one that it chose itself."""
        models = self._models or {}
        info = models.get(asked) or models.get(reply.model or "")
        if info is None:
            return reply
        return msgspec.structs.replace(
            reply,
            billing_multiplier=info.billing_multiplier,
            prompt_limit=info.max_prompt or info.window,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def choice(self) -> ProviderChoice:
        """Return the service at the address of this account."""
        if not self._base_url:
            self._base_url = await self._find_address()
        return ProviderChoice(
            name=NAME,
            base_url=self._base_url,
            key=self._key,
            headers=self._common_headers(),
        )

    async def list_models(self) -> list[str] | None:
        """Return the names of this account's models; None if the service does not list them."""
        return await list_names(await self.choice(), self._transports.http)

    async def find_default_model(self) -> str:
        """Return the model to use for a session that names none."""
        try:
            models = await self._discover()
        except ModelError:
            return DEFAULT_MODEL  # the first call says what is wrong
        return find_default(tuple(models.values())) or DEFAULT_MODEL

    def known_limit(self, model: str) -> int | None:
        """Return the largest prompt of a model in tokens, if its list has been read."""
        info = (self._models or {}).get(model)
        return (info.max_prompt or info.window) if info is not None else None

    async def _discover(self) -> dict[str, ModelInfo]:
        if self._models is None:
            http = self._transports.http
            found = await discover(await self.choice(), http, cache=self._cache)
            self._models = {info.id: info for info in found.models or ()}
        return self._models

    async def find_service(self, model: str) -> Service:
        """Return the service of one model. Raises `ModelError` if the account does not have it."""
        return self._services.get(model) or await self._connect(model)

    async def _connect(self, model: str) -> Service:
        choice, models = await self.choice(), await self._discover()
        info = models.get(model)
        if info is None and models and model not in SERVICE_CHOOSES:
            raise unknown_model("GitHub", model, did_you_mean(model, models))
        if info is not None:
            choice = msgspec.structs.replace(
                choice, wire=_wire(info), efforts=info.efforts, window=info.window
            )
        http, sockets = self._transports.http, self._transports.sockets
        if sockets is not None and info is not None and _offers_socket(info):
            http = sockets
        service = self._services[model] = Service(choice, http)
        return service

    async def fetch_exclusions(self, repositories: Sequence[str]) -> tuple[Exclusion, ...]:
        """Return the exclusions of this account's organizations and of some repositories."""
        fields = {"repos": ",".join(repositories[:MAX_REPOSITORIES]), "scope": "all"}
        query = urlencode({name: value for name, value in fields.items() if value})
        status, body = await self._get(f"/copilot_internal/content_exclusion?{query}")
        return () if status == 404 else _read_exclusions(body)

    async def describe(self, model: str) -> ProviderChoice:
        """Return the service as it serves one model."""
        choice = await self.choice()
        info = (await self._discover()).get(model)
        return choice if info is None else msgspec.structs.replace(choice, wire=_wire(info))

    async def fetch_user(self) -> dict[str, Any]:
        """Return the account of the token as GitHub describes it.

        Raises `AuthenticationError` if GitHub rejects the token.
        """
        user = _decode_object(await self._get_user())
        if not isinstance(user.get("login"), str):
            raise ModelError("GitHub's answer names no account.", category="invalid")
        return user

    async def _find_address(self) -> str:
        return _address(await self._get_user())

    async def _get_user(self) -> bytes:
        status, body = await self._get("/copilot_internal/user", refused=(401, 403, 404))
        if status != 200:
            raise AuthenticationError(
                f"{'Unauthorized' if status == 401 else 'Forbidden'}: the token of "
                f"{self._key.source} has no access to Copilot (status {status}); use a token of "
                "an account that has it.",
                status=status,
            )
        return body

    async def _get(self, path: str, refused: Sequence[int] = (404,)) -> tuple[int, bytes]:
        """Return GitHub's status and body. Raises `ModelError` unless it is 200 or in `refused`."""
        key = await self._key.reveal()
        headers = {**self._common_headers(), **auth_header("bearer", key)}
        response = await self._http.request(
            "GET", github_api(self._env).rstrip("/") + path, headers
        )
        try:
            body = await response.read(1024 * 1024)
        finally:
            response.close(expect_end=True)
        if response.status != 200 and response.status not in refused:
            raise from_response(response.status, response.headers, body, secrets=(key,))
        return response.status, body

    def _common_headers(self) -> dict[str, str]:
        return {
            "accept-encoding": "identity",
            "user-agent": f"trimtab/{__version__}",
            "editor-version": f"trimtab/{__version__}",
            "copilot-integration-id": self._env.get(
                "GITHUB_COPILOT_INTEGRATION_ID", "copilot-developer-cli"
            ),
            "x-github-api-version": "2025-05-01",
        }

    def forwarded_headers(self, body: bytes) -> dict[str, str]:
        """Return the headers for a request that another program made."""
        return {**_INTENT, **({_VISION: "true"} if _IMAGES.search(body) else {})}

    def _headers(self, request: Request) -> dict[str, str]:
        headers = dict(_INTENT)
        if request.cache_key:
            headers["x-client-session-id"] = request.cache_key
        users = (message for message in request.messages if isinstance(message, UserMessage))
        if any(map(_has_image, users)):
            headers[_VISION] = "true"
        return headers


class _Source(msgspec.Struct, frozen=True):
    name: str = ""
    type: str = ""


class _ExclusionRule(msgspec.Struct, rename="camel"):
    paths: tuple[str, ...] = ()
    source: _Source = _Source()


class _Exclusions(msgspec.Struct):
    rules: tuple[_ExclusionRule, ...] = ()


def _read_exclusions(body: bytes) -> tuple[Exclusion, ...]:
    try:
        answers = msgspec.json.decode(body, type=tuple[_Exclusions, ...])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ModelError(
            "GitHub's answer about excluded content is invalid; try again later.",
            category="invalid",
        ) from None
    rules = (rule for answer in answers for rule in answer.rules)
    return tuple(
        Exclusion(rule.paths, f"the {rule.source.type.lower()} {rule.source.name} on GitHub")
        for rule in rules
        if rule.paths
    )


class _Endpoints(msgspec.Struct):
    api: str


class _User(msgspec.Struct):
    endpoints: _Endpoints


def _decode_object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _address(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_User).endpoints.api
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ModelError(
            "GitHub's answer contains no model service for this account; set COPILOT_API_URL.",
            category="invalid",
        ) from None


def _wire(info: ModelInfo) -> str:
    """Return the wire of a model: Chat Completions if the model supports it or says nothing."""
    known = [wire for path, wire in _WIRES.items() if path in info.endpoints]
    return known[0] if known else "openai-chat"


def _offers_socket(info: ModelInfo) -> bool:
    return _wire(info) == "openai-responses" and _SOCKET in info.endpoints


def _has_image(message: UserMessage) -> bool:
    return any(isinstance(part, Image) for part in message.parts)


def _has_program(name: str, env: Mapping[str, str]) -> bool:
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders if folder)
