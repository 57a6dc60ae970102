"""Skills that clients provide: listed and read from them, and kept in the session's folder."""

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.files import make_private_dir, read_regular, replace_file
from trimtab.contracts.events.session import SessionWarning
from trimtab.host.ports import ClientError, ClientGone, ClientPort
from trimtab.session.folder import is_safe_name

if TYPE_CHECKING:
    from trimtab.host.hosted import HostedSession

MAX_SKILLS = 200


class Descriptor(msgspec.Struct, rename="camel"):
    """A skill as a client lists it."""

    name: str
    description: str = ""
    user_invocable: bool = True
    disable_model_invocation: bool = False
    argument_hint: str | None = None

    def render(self, markdown: str) -> bytes:
        """Return the text of its `SKILL.md`; a head of its own is kept."""
        if markdown.startswith("---\n") and "\ndescription:" in markdown:
            return markdown.encode("utf-8", "replace")
        fields = {
            "name": self.name,
            "description": self.description,
            "user-invocable": self.user_invocable,
            "disable-model-invocation": self.disable_model_invocation,
            **({"argument-hint": self.argument_hint} if self.argument_hint else {}),
        }
        head = "\n".join(
            f"{name}: {msgspec.json.encode(value).decode()}" for name, value in fields.items()
        )
        return f"---\n{head}\n---\n{markdown}".encode("utf-8", "replace")


class _Listed(msgspec.Struct):
    skills: tuple[Descriptor, ...] = ()


class _Read(msgspec.Struct):
    markdown: str


async def fetch_skills(hosted: "HostedSession", folder: str) -> bool:
    """Write the skills of all clients below a folder; return True if anything changed.

    If a client fails, its skills of before stay, and a warning says so.
    """
    found: dict[str, bytes] = {}
    providers = [
        participant.client
        for participant in hosted.participants
        if participant.capabilities.has_skill_provider
    ]
    if not providers:
        return False
    try:
        for client in providers:
            found |= await _read_all(client, hosted.id)
    except (ClientGone, ClientError, msgspec.ValidationError) as error:
        message = f"The skills of a client could not be read ({error}); check its skill provider."
        hosted.live.emit(SessionWarning(warning_type="skill_provider", message=message))
        return False
    return _write(folder, found)


async def _read_all(client: ClientPort, session_id: str) -> dict[str, bytes]:
    about = {"sessionId": session_id}
    listed = msgspec.convert(await client.ask("skillProvider.list", about), _Listed)
    found = {}
    for skill in listed.skills[:MAX_SKILLS]:
        if is_safe_name(skill.name):
            reply = await client.ask("skillProvider.read", {**about, "name": skill.name})
            found[skill.name] = skill.render(msgspec.convert(reply, _Read).markdown)
    return found


def _write(folder: str, found: dict[str, bytes]) -> bool:
    changed = False
    known = os.listdir(folder) if os.path.isdir(folder) else []
    for name in set(known) - set(found):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        changed = True
    for name, data in found.items():
        path = os.path.join(folder, name, "SKILL.md")
        if not os.path.exists(path) or read_regular(path) != data:
            make_private_dir(os.path.dirname(path))
            replace_file(path, data)
            changed = True
    return changed
