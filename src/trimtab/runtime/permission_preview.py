"""Gathers what decides about the calls of a run, as a run does, without opening a session."""

import shutil
import tempfile
from collections.abc import Mapping

import msgspec

from trimtab.agents.build import build_permissions
from trimtab.agents.setup import SessionSetup
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import LeftOut
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.options import Client, SessionOptions
from trimtab.permissions.processor import Permissions
from trimtab.runtime.runtime import Runtime
from trimtab.session.folder import SessionFolder
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session
from trimtab.workspace.local import LocalWorkspace


class PermissionPreview(msgspec.Struct, frozen=True):
    """The judge of the calls of a run, and the warnings that would come before the first call."""

    permissions: Permissions
    warnings: tuple[str, ...] = ()


async def preview_permissions(env: Mapping[str, str], options: SessionOptions) -> PermissionPreview:
    """Gather what decides about calls: flags, rules of files, trust, exclusions, the sandbox and
    answers that were kept. Nothing is remembered, and no hook is run.
    """
    runtime, nobody = Runtime(env=env), Client()
    ready = await runtime.folders.judge(options, nobody, remembers=False)
    custom, resolved = await runtime.prepare(ready)
    options = resolved.options
    warnings: list[str] = []

    def hear(event: Event, _: bytes) -> None:
        if isinstance(event.data, SessionWarning | LeftOut):
            warnings.append(event.data.message)

    path = tempfile.mkdtemp(prefix="trimtab-preview-")
    folder = SessionFolder("preview", path)
    session = Session(folder.id, EventLog.create(folder.events), Projections())
    session.subscribe(hear)
    workspace = LocalWorkspace(
        root=options.cwd, session_id=folder.id, files=folder.files, env=env, secrets=options.secrets
    )
    place = SessionSetup(
        session=session,
        folder=folder,
        workspace=workspace,
        checkout=ready.around,
        home=runtime.home,
        customizations=custom,
        trust=ready.trust,
        env=env,
    )
    try:
        permissions = build_permissions(await runtime.govern(place, options), options, nobody)
    finally:
        await workspace.aclose()
        session.close()
        shutil.rmtree(path, ignore_errors=True)
    return PermissionPreview(permissions, tuple(dict.fromkeys(warnings)))
