"""Builds the permissions a session would have, without opening one."""

import shutil
import tempfile
from collections.abc import Mapping

import msgspec

from trimtab.agents.build import build_permissions
from trimtab.agents.fence import SessionFence
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
    """The permissions of a would-be session, and the warnings it would start with."""

    permissions: Permissions
    warnings: tuple[str, ...] = ()


async def preview_permissions(env: Mapping[str, str], options: SessionOptions) -> PermissionPreview:
    """Combine flags, rule files, trust, exclusions, the sandbox and saved approvals.

    Records no trust and runs no hooks. The session stays open, without its files: a decision may
    report something.
    """
    runtime, client = Runtime(env=env), Client()
    prepared = await runtime.folders.inspect(options, client, remembers=False)
    custom, resolved = await runtime.prepare(prepared)
    options = resolved.options
    warnings: list[str] = []

    def on_event(event: Event, _: bytes) -> None:
        if isinstance(event.data, SessionWarning | LeftOut):
            warnings.append(event.data.message)

    path = tempfile.mkdtemp(prefix="trimtab-preview-")
    folder = SessionFolder("preview", path)
    session = Session(folder.id, EventLog.create(folder.events), Projections())
    session.subscribe(on_event)
    workspace = LocalWorkspace(
        root=options.cwd, session_id=folder.id, files=folder.files, env=env, secrets=options.secrets
    )
    setup = SessionSetup(
        session=session,
        folder=folder,
        workspace=workspace,
        checkout=prepared.checkout,
        home=runtime.home,
        customizations=custom,
        trust=prepared.trust,
        env=env,
    )
    try:
        setup = await runtime.load_policy(setup, options)
        fence = SessionFence(setup, options.sandbox_settings)
        permissions = build_permissions(setup, options, client, fence)
    finally:
        await workspace.aclose()
        shutil.rmtree(path, ignore_errors=True)
    return PermissionPreview(permissions, tuple(dict.fromkeys(warnings)))
