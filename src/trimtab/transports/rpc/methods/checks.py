"""Questions about the sandbox, the policies and the exclusions that hold here."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.methods.permissions import is_within
from trimtab.transports.rpc.open import MANAGED
from trimtab.workspace.sandbox.detection import detect

methods = Methods()


class Paths(msgspec.Struct):
    paths: tuple[str, ...]


@methods.on("session.contentExclusion.checkPaths", Paths)
async def check_paths(call: Call, params: Paths) -> JsonObject:
    """Report which files nobody may read. Paths outside of the session's folder are not judged."""
    controls = call.session.live.controls
    if not all(is_within(path, controls.options.cwd) for path in params.paths):
        return {"available": False, "checks": []}
    find = controls.agent.parts.permissions.find_objection
    return {
        "available": True,
        "checks": [{"path": path, "excluded": bool(find(path))} for path in params.paths],
    }


@methods.on("session.managedSettings.get")
async def get_managed_settings(call: Call, params: Nothing) -> object:
    return MANAGED


@methods.on("sandbox.getHostSupport")
async def get_sandbox_support(call: Call, params: Nothing) -> JsonObject:
    """Report whether commands can be confined on this machine, and by what."""
    found = detect(call.server.env)
    hosts = found.backend == "bubblewrap"
    capabilities: list[JsonObject] = [
        {"name": "filesystem", "supported": found.backend is not None},
        {"name": "network", "supported": found.backend is not None},
        {"name": "hosts", "supported": hosts},
    ]
    if not hosts:
        capabilities[-1]["reason"] = "only bubblewrap restricts commands to a list of hosts"
    support: JsonObject = {"supported": found.backend is not None, "capabilities": capabilities}
    reason = {"reason": ", ".join(found.reasons)} if found.backend is None else {}
    return support | reason
