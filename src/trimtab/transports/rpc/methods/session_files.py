"""Session state kept by a client instead of on this machine's disk."""

from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import NotAvailable

methods = Methods()


@methods.on("sessionFs.setProvider")
async def set_provider(call: Call, params: Nothing) -> None:
    raise NotAvailable(
        "A session file system of the client is not available; sessions are kept in COPILOT_HOME."
    )
