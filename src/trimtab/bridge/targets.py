"""Chooses the model for the name in a request."""

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase
from hashlib import sha256

import msgspec

from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.contracts.provider import ListsModels
from trimtab.models.choose import Chosen, ModelChooser
from trimtab.providers.copilot import Copilot
from trimtab.providers.errors import unknown_model
from trimtab.providers.names import did_you_mean, same_model
from trimtab.providers.service import Service


class ModelMapping(msgspec.Struct, frozen=True):
    """A rule of `--map`: names that match the pattern mean this model."""

    pattern: str
    model: str

    @classmethod
    def parse(cls, text: str) -> "ModelMapping":
        pattern, equals, model = text.partition("=")
        if not equals or not pattern.strip() or not model.strip():
            raise UsageError(
                f"--map needs PATTERN=MODEL, not {text!r}; write for example --map '*haiku*=MODEL'."
            )
        return cls(pattern.strip(), model.strip())


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model and its service; `service` is None if it is not reached over HTTP."""

    chosen: Chosen
    service: Service | None = None

    @property
    def wire(self) -> str | None:
        return self.service.choice.wire if self.service is not None else None

    def headers(self, body: bytes) -> dict[str, str]:
        """Return the headers that the service wants besides those of a client's request."""
        provider = self.chosen.provider
        return provider.forwarded_headers(body) if isinstance(provider, Copilot) else {}

    @property
    def origin(self) -> str:
        """An id of the service, for the reasoning that only it can read."""
        choice = self.service.choice if self.service is not None else None
        name = f"{choice.wire} {choice.base_url}" if choice else self.chosen.provider.name
        return sha256(name.encode("utf-8", "replace")).hexdigest()[:16]


class Resolved(msgspec.Struct, frozen=True):
    """The target of a request; `replaced` says that its model is unknown and another is used."""

    target: Target
    replaced: bool = False


class ModelTargets:
    """Finds the target of a name: by the mappings, the fixed model, then the name itself.

    The model of `options` is the default, for names that are unknown.
    """

    def __init__(
        self,
        chooser: ModelChooser,
        options: SessionOptions,
        mappings: Sequence[ModelMapping] = (),
        *,
        fixed: str | None = None,
        strict: bool = False,
    ) -> None:
        self._chooser = chooser
        self._options = msgspec.structs.replace(options, model=None)
        self._default = options.model
        self._fixed = fixed
        self._mappings = mappings
        self._strict = strict
        self._targets: dict[str, Target] = {}
        self._listed: list[str] | None = None
        self._has_listed = False
        self._lock = asyncio.Lock()

    async def default(self) -> Target:
        """Return the fixed model, or the one that a session without a name would use."""
        return await self._choose(self._fixed or self._default or "")

    async def find(self, name: str, wire: str) -> Resolved:
        """Return the target of a name that a client of a wire uses.

        Raises `ModelError` for an unknown name if names are strict.
        """
        for mapping in self._mappings:
            if fnmatchcase(name, mapping.pattern):
                return Resolved(await self._choose(mapping.model))
        default = await self.default()
        if self._fixed:
            return Resolved(default)
        if name in self._targets or self._chooser.find(name, self._options) is not None:
            return Resolved(await self._choose(name))
        if await self._is_known(name, default, wire):
            return Resolved(await self._choose(name))
        if self._strict:
            advice = did_you_mean(name, await self.names())
            raise unknown_model("the bridge", name, advice, 404)
        return Resolved(default, replaced=True)

    async def names(self) -> list[str]:
        """Return the names of all models that the default service lists, the default first."""
        default = await self.default()
        listed = await self._list(default) or []
        mapped = [mapping.model for mapping in self._mappings]
        return list(dict.fromkeys([default.chosen.model, *mapped, *listed]))

    async def _is_known(self, name: str, default: Target, wire: str) -> bool:
        if not name:
            return False
        if name == default.chosen.model:
            return True
        listed = await self._list(default)
        if listed is None:
            # The service does not say; its own clients use its own names.
            return default.wire == wire
        return any(same_model(name, known) for known in listed)

    async def _list(self, target: Target) -> list[str] | None:
        if not self._has_listed and isinstance(target.chosen.provider, ListsModels):
            try:
                self._listed = await target.chosen.provider.list_models()
            except ModelError:
                self._listed = None
        self._has_listed = True
        return self._listed

    async def _choose(self, name: str) -> Target:
        if name in self._targets:
            return self._targets[name]
        async with self._lock:
            if name not in self._targets:
                options = msgspec.structs.replace(self._options, model=name or None)
                chosen = await self._chooser.choose(options)
                provider = chosen.provider
                service = provider if isinstance(provider, Service) else None
                if isinstance(provider, Copilot):
                    service = await provider.find_service(chosen.model)
                self._targets[name] = Target(chosen=chosen, service=service)
        return self._targets[name]

    async def aclose(self) -> None:
        for target in self._targets.values():
            await target.chosen.aclose()
