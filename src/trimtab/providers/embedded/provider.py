"""The embedded model as a provider: loaded on first use, spoken to on loopback with a token."""

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.provider import Delta, Reply, Request
from trimtab.providers.connection import Timeouts
from trimtab.providers.embedded.dialect import body_of, reply_of
from trimtab.providers.http import HttpClient

NOTICE = (
    "The embedded model answers: a small one (1.5 billion parameters) that runs on this machine. "
    "It can fix a line in a small file, copy a fact, run a given command; expect no more. Set "
    "OPENAI_API_KEY, ANTHROPIC_API_KEY or COPILOT_PROVIDER_BASE_URL for a better one."
)
CONTEXT = 8192


class EmbeddedProvider:
    """Runs a GGUF file in this process, one call at a time. Cancelling a call stops its work."""

    name = "local"

    def __init__(self, path: str) -> None:
        self._path = path
        self._engine: Any = None
        self._token = os.urandom(16).hex()
        self._http = HttpClient(
            {}, offline=True, timeouts=Timeouts(first_byte=600, between_bytes=600)
        )
        self._turn = asyncio.Lock()
        with open(os.path.join(os.path.dirname(__file__), "prompt.md"), encoding="utf-8") as file:
            self._instructions = file.read().strip()

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        async with self._turn:
            if self._engine is None:
                self._engine = await asyncio.to_thread(load, self._path, self._token)
            body = await self._ask(body_of(request, self._instructions))
        yield reply_of(body, request)

    async def aclose(self) -> None:
        self._engine = None
        await self._http.aclose()

    async def _ask(self, body: bytes) -> bytes:
        url = f"{self._engine.listening_address}/v1/chat/completions"
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        response = await self._http.request("POST", url, headers, [body])
        try:
            answer = await response.read()
        finally:
            response.close()
        if response.status != 200:
            raise ModelError(
                f"The embedded model failed ({answer[:200].decode('utf-8', 'replace')}); shorten "
                "the task or start a new session.",
                category="invalid",
                status=response.status,
            )
        return answer


def load(path: str, token: str) -> Any:
    """Start the engine on a free port of loopback. Takes a second or two."""
    # With spinning threads a busy machine decodes at a tenth of the speed.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from xllamacpp import CommonParams, Server
    except ImportError:
        raise ConfigurationError(
            "The embedded model needs its engine; install it with pip install 'trimtab[local]'."
        ) from None
    if not os.path.isfile(path):
        raise ConfigurationError(
            f"There is no model file {path}; run `trimtab models pull local` or set "
            "TRIMTAB_LOCAL_MODEL to a GGUF file."
        )
    params = CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    params.api_keys = [token]
    threads = min(8, os.cpu_count() or 1)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    try:
        return Server(params)
    except RuntimeError as error:
        raise ConfigurationError(
            f"The model file {path} cannot be loaded ({error}); name another GGUF file with "
            "TRIMTAB_LOCAL_MODEL."
        ) from error
