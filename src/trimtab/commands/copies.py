"""Slash commands that copy something of a session: `/share`, `/fork`, `/ask`."""

import asyncio
import os
from typing import TYPE_CHECKING

from trimtab.commands.session import require_person
from trimtab.commands.session_copies import export_session, fork_session
from trimtab.config.files import cannot, write_new_file
from trimtab.contracts.errors import UsageError

if TYPE_CHECKING:
    from trimtab.commands.table import Invocation

SHARE = "[md | html | json] [PATH]"
FORMS = {"md": "md", "markdown": "md", "file": "md", "html": "html", "json": "json"}
"""The words for each format of a shared session; `file` is Copilot's word for Markdown."""
SERVICES = ("gist", "link", "research")
"""Ways to share that need a service of GitHub."""


async def share(invocation: "Invocation") -> str:
    """Write the session into a file that can be given to others."""
    require_person(invocation, "--share=FILE")
    live = invocation.live
    form, path = choose_file(invocation.arguments, live.id, live.controls.options.cwd)
    document = await export_session(live, form)
    try:
        data = document.encode("utf-8", "replace")
        await asyncio.to_thread(write_new_file, path, data, 0o644, durable=False)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already; name another: /share {SHARE}.") from error
    except OSError as error:
        raise cannot("write", path, error) from error
    return f"Wrote {path}\nRead it before you pass it on: it contains all that was said and done."


def choose_file(arguments: str, session_id: str, cwd: str) -> tuple[str, str]:
    """Return the format and the path that the arguments of `/share` name. Raises `UsageError`."""
    first, _, rest = arguments.partition(" ")
    if first in SERVICES:
        raise UsageError(
            f"/share {first} needs GitHub's service, and Trimtab uploads nothing; write a file "
            "with /share and pass it on yourself."
        )
    path = (rest if first in FORMS else arguments).strip().strip("'\"")
    form = FORMS.get(first) or FORMS.get(os.path.splitext(path)[1].lstrip(".").lower(), "md")
    path = os.path.expanduser(path or f"trimtab-session-{session_id}.{form}")
    return form, os.path.normpath(os.path.join(cwd, path))


async def fork(invocation: "Invocation") -> str:
    """Copy the session as it is now into a new one."""
    require_person(invocation, "`trimtab sessions fork ID`")
    session_id = await fork_session(invocation.live, invocation.arguments or None)
    return f"The copy of this session is {session_id}; open it with trimtab --resume={session_id}."


async def ask(invocation: "Invocation") -> str:
    """Answer a question without adding it to the conversation."""
    if not invocation.arguments:
        raise UsageError("There is no question; write /ask QUESTION.")
    return await invocation.live.ask_aside(invocation.arguments)
