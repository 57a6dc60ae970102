"""Opens a bridge with a session of its own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from time import time

from trimtab.bridge.journal import Journal
from trimtab.bridge.server import Bridge
from trimtab.bridge.targets import ModelMapping, ModelTargets
from trimtab.checkout.checkout import find_checkout
from trimtab.contracts.events.session import LOG_VERSION, SessionShutdown, SessionStart
from trimtab.contracts.ids import timestamp
from trimtab.contracts.options import Client, SessionOptions
from trimtab.models.limits import build_ledger, check_limits
from trimtab.runtime.runtime import Runtime
from trimtab.session.masking import EventMask
from trimtab.session.session import Projections, Session
from trimtab.version import __version__


@asynccontextmanager
async def open_bridge(
    runtime: Runtime,
    options: SessionOptions,
    *,
    mappings: Sequence[ModelMapping] = (),
    strict: bool = False,
    port: int = 0,
) -> AsyncGenerator[tuple[Bridge, Session], None]:
    """Serve on a port of this machine until the block ends."""
    fixed = options.model
    # Settings name a default model, as they do for a session in this folder.
    prepared = await runtime.folders.set_up(options, Client())
    _, resolved = await runtime.prepare(prepared)
    options = resolved.options
    targets = ModelTargets(runtime.models, options, mappings, fixed=fixed, strict=strict)
    try:
        default = await targets.default()
        check_limits(default.chosen.model, options.limits, default.chosen.price)
        bridge = Bridge(targets, options.limits)
        await bridge.start(port)
        try:
            session = start_session(runtime, options, default.chosen.model)
            ledger = build_ledger(session, options.limits)
            bridge.journal = journal = Journal(session, options.limits, ledger)
            began = int(time() * 1000)
            try:
                yield bridge, session
            finally:
                await bridge.stop()
                journal.close()
                end_session(session, began)
        finally:
            await bridge.stop()
    finally:
        await targets.aclose()


def start_session(runtime: Runtime, options: SessionOptions, model: str) -> Session:
    """Create the session of a bridge."""
    checkout = find_checkout(options.cwd)
    folder, log = runtime.store.create(options.session_id, cwd=options.cwd, name="bridge")
    session = Session(folder.id, log, Projections())
    session.mask = EventMask(runtime.build_masker(options))
    session.emit(
        SessionStart(
            session_id=folder.id,
            version=LOG_VERSION,
            producer="trimtab",
            copilot_version=__version__,
            start_time=timestamp(),
            selected_model=model or None,
            context=checkout.context(),
        )
    )
    return session


def end_session(session: Session, began: int) -> None:
    """Record the end of a bridge, and close its log."""
    usage = session.projections.usage
    session.emit(
        SessionShutdown(
            shutdown_type="routine",
            total_api_duration_ms=usage.api_duration_ms,
            session_start_time=began,
            code_changes={"linesAdded": 0, "linesRemoved": 0, "filesModified": []},
            model_metrics=usage.metrics(),
        )
    )
    session.close()
