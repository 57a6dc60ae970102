"""The `Provider` of the embedded model: loads it on first use, and calls it over loopback."""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.contracts.errors import ConfigurationError, ModelError
from trimtab.contracts.provider import Delta, Reply, Request, Usage
from trimtab.providers.connection import Timeouts
from trimtab.providers.embedded.dialect import Story, body_of, check_again, reply_of
from trimtab.providers.http import HttpClient

NOTICE = (
    "This session uses the small embedded model (1.5 billion parameters), which runs on this "
    "machine. It can fix a line in a small file, copy a fact or run a given command, but not much "
    "more. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or COPILOT_PROVIDER_BASE_URL for a better one."
)
CONTEXT = 8192
MAX_ATTEMPTS = 5
"""The number of times the model is asked for a call that is not a repetition."""


class EmbeddedProvider:
    """Runs a GGUF file in this process, one call at a time. Cancelling a call stops its work."""

    name = "local"

    def __init__(self, path: str, slots: str = "") -> None:
        """`slots` is a folder that caches the processed instructions between runs."""
        self._path = path
        self._slots = slots
        self._engine: Any = None
        self._token = os.urandom(16).hex()
        self._http = HttpClient(
            {}, offline=True, timeouts=Timeouts(first_byte=600, between_bytes=600)
        )
        self._turn = asyncio.Lock()
        with open(os.path.join(os.path.dirname(__file__), "prompt.md"), encoding="utf-8") as file:
            self._instructions = file.read().strip()

    async def list_models(self) -> list[str]:
        return [self.name]

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        if request.answer_schema is not None:
            raise ModelError(
                "The embedded model does not support answer schemas; choose another model.",
                category="invalid",
            )
        async with self._turn:
            if (reply := check_again(request)) is not None:
                yield reply
                return
            if self._engine is None:
                self._slots = make_cache(self._slots)
                self._engine = await asyncio.to_thread(load, self._path, self._token, self._slots)
                await self._restore_slot()
            reply = await self._answer(request)
        yield reply

    async def _restore_slot(self) -> None:
        """Load the processed instructions from the cache, or process them and fill the cache.

        Processing takes seconds, loading milliseconds. A slot that cannot be used is replaced.
        """
        if not self._slots:
            return
        name = slot_name(self._path, self._instructions)
        with suppress(ModelError):  # it does not exist, or another version of the engine wrote it
            await self._post("/slots/0?action=restore", {"filename": name})
            return
        body = {
            "messages": [
                {"role": "system", "content": self._instructions},
                {"role": "user", "content": "."},
            ],
            "max_tokens": 1,
            "cache_prompt": True,
        }
        with suppress(ModelError):
            await self._post("/v1/chat/completions", body)
            await self._post("/slots/0?action=save", {"filename": name})

    async def _answer(self, request: Request) -> Reply:
        """Return the model's reply; ask again while it only repeats itself."""
        story, usage = Story(request), Usage(input_tokens=0, output_tokens=0)
        for attempt in range(MAX_ATTEMPTS):
            body = await self._ask(body_of(request, self._instructions, attempt))
            reply = reply_of(body, request)
            usage = add_usage(usage, reply.usage)
            calls = reply.message.tool_calls
            if not story.is_repeat(calls[0] if calls else None):
                break
        return msgspec.structs.replace(reply, usage=usage)

    async def aclose(self) -> None:
        self._engine = None
        await self._http.aclose()

    async def _post(self, path: str, value: Any) -> bytes:
        return await self._ask(msgspec.json.encode(value), path)

    async def _ask(self, body: bytes, path: str = "/v1/chat/completions") -> bytes:
        url = f"{self._engine.listening_address}{path}"
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


def add_usage(total: Usage, last: Usage) -> Usage:
    """Add the tokens of a call; the cached tokens are those of the last call."""
    return Usage(
        input_tokens=(total.input_tokens or 0) + (last.input_tokens or 0),
        output_tokens=(total.output_tokens or 0) + (last.output_tokens or 0),
        cache_read_tokens=last.cache_read_tokens,
    )


def slot_name(path: str, instructions: str) -> str:
    """Return the name of the cache file for a model file and its instructions."""
    info = os.stat(path)
    identity = f"{path}\0{info.st_size}\0{info.st_mtime_ns}\0{CONTEXT}\0{instructions}"
    return f"prompt-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.slot"


def make_cache(folder: str) -> str:
    """Return a folder that exists and can be written; empty if there is none: nothing is cached.

    Models may lie on a disk that is shared and read-only.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return ""
    return folder if os.access(folder, os.W_OK) else ""


def load(path: str, token: str, slots: str = "") -> Any:
    """Start the engine on a free loopback port, which takes a second or two."""
    # With busy-waiting threads, a loaded machine decodes at a tenth of the speed.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from xllamacpp import CommonParams, Server
    except ImportError:
        raise ConfigurationError(
            "The engine of the embedded model is missing; install it with pip install "
            "'trimtab[local]'."
        ) from None
    if not os.path.isfile(path):
        raise ConfigurationError(
            f"No such model file: {path}; run `trimtab models pull local` or set "
            "TRIMTAB_LOCAL_MODEL to a GGUF file."
        )
    params = CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    params.api_keys = [token]
    if slots:
        params.slot_save_path = os.path.join(slots, "")
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
