"""Builds the TLS context of outgoing connections, once and in a thread."""

import asyncio
import os
import ssl
from collections.abc import Mapping

from trimtab.contracts.errors import ModelError

_EXTRA_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


class TlsContext:
    """Builds the context on first use, in a thread since loading certificates takes a while."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._context: ssl.SSLContext | None = None

    async def get(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = await asyncio.to_thread(_build, self._environment)
        return self._context


def _build(environment: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    for variable in _EXTRA_FILES:
        path = environment.get(variable)
        if not path:
            continue
        try:
            if os.path.isdir(path):
                context.load_verify_locations(capath=path)
            else:
                context.load_verify_locations(cafile=path)
        except OSError as error:
            reason = error.strerror or "it contains no certificate"
            raise ModelError(
                f"The certificates in {path} could not be loaded ({reason}); "
                f"correct or unset {variable}.",
                category="invalid",
            ) from None
    return context
