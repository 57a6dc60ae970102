"""Session state that a client keeps in a file system of its own."""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods
from trimtab.transports.rpc.mirror import FileSystem

methods = Methods()


@methods.on("sessionFs.setProvider", FileSystem)
async def set_provider(call: Call, params: FileSystem) -> JsonObject:
    """Holds for the sessions this client opens from now on."""
    call.peer.file_system = params
    return {"success": True}
