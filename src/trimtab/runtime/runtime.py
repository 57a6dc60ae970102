"""The one place that knows every part: opens sessions and hands them out."""

import os
from collections.abc import Mapping

from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.contracts.events.session import (
    SessionResume,
    SessionStart,
    SessionWarning,
)
from trimtab.contracts.events.setup import (
    SessionMcpServersLoaded,
    SessionSkillsLoaded,
    SessionToolsUpdated,
)
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.ids import timestamp
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Run
from trimtab.runtime.build import Place, build_prompt, build_run
from trimtab.runtime.live import LiveSession
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.surroundings import look_around
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Projections, Session, replay
from trimtab.session.store import SessionStore
from trimtab.version import __version__
from trimtab.workspace.local import LocalWorkspace

NOBODY = Client()
NO_MODEL = (
    "No model service is configured; set OPENAI_API_KEY or ANTHROPIC_API_KEY, or point "
    "COPILOT_PROVIDER_BASE_URL at any OpenAI-compatible server, and run again."
)


class Runtime:
    """Opens sessions. One runtime serves many sessions; it holds no state of theirs.

    `provider` replaces the choice from the environment: that is how programs embed their own
    model and how tests script one.
    """

    def __init__(
        self, *, env: Mapping[str, str] | None = None, provider: Provider | None = None
    ) -> None:
        self.env: Mapping[str, str] = os.environ if env is None else env
        self.home: Home = find_home(self.env)
        self.store = SessionStore(self.home)
        self._provider = provider

    async def create(self, options: SessionOptions, client: Client = NOBODY) -> LiveSession:
        """Start a new session."""
        provider, model = self._choose_model(options)
        around = look_around(options.cwd)
        folder, log = self.store.create(
            options.session_id,
            cwd=options.cwd,
            name=options.name,
            git={"git_root": around.git_root, "branch": around.branch},
        )
        session = Session(folder.id, log, Projections())
        if client.on_event:
            session.subscribe(client.on_event)
        session.emit(
            SessionStart(
                session_id=folder.id,
                version=1,
                producer="trimtab",
                copilot_version=__version__,
                start_time=timestamp(),
                selected_model=model,
                reasoning_effort=options.effort,
                context=around.context(),
            )
        )
        place = Place(
            session=session,
            folder=folder,
            workspace=self._workspace(folder, options),
            surroundings=around,
        )
        return self._open(place, provider, model, options, client)

    async def resume(
        self, session_id: str, options: SessionOptions, client: Client = NOBODY
    ) -> LiveSession:
        """Go on with a session, whatever state its log is in."""
        provider, model = self._choose_model(options)
        folder, log = self.store.open(session_id)
        try:
            session = Session(folder.id, log, replay(log.path))
        except BaseException:
            log.close()
            raise
        if client.on_event:
            session.subscribe(client.on_event)
        around = look_around(options.cwd)
        session.emit(
            SessionResume(
                resume_time=timestamp(),
                event_count=log.count,
                selected_model=model,
                reasoning_effort=options.effort,
                context=around.context(),
                events_file_size_bytes=log.size,
            )
        )
        for finding in log.findings:
            session.emit(SessionWarning(warning_type="log_repaired", message=finding.sentence))
        if held := len(session.projections.queue.prompts):
            message = f"{held} prompts queued before the last end were kept and not sent."
            session.emit(SessionWarning(warning_type="prompts_held", message=message))
        place = Place(
            session=session,
            folder=folder,
            workspace=self._workspace(folder, options),
            surroundings=around,
        )
        return self._open(place, provider, model, options, client)

    def _open(
        self,
        place: Place,
        provider: Provider,
        model: str,
        options: SessionOptions,
        client: Client,
    ) -> LiveSession:
        run = build_run(place, provider, model, options, client.ask)

        async def release() -> None:
            await place.workspace.aclose()
            if provider is not self._provider:
                await provider.aclose()

        live = LiveSession(place.folder, place.session, run, release, lambda: announce(run, place))
        if options.limits.deadline is not None:
            live.stop_after(options.limits.deadline)
        return live

    def _workspace(self, folder: SessionFolder, options: SessionOptions) -> LocalWorkspace:
        return LocalWorkspace(
            root=options.cwd, session_id=folder.id, files=folder.files, env=self.env
        )

    def _choose_model(self, options: SessionOptions) -> tuple[Provider, str]:
        wanted = options.model or self.env.get("COPILOT_MODEL")
        if self._provider is not None:
            return self._provider, wanted or self._provider.name
        from trimtab.providers.endpoints import connect, from_environment

        choice = from_environment(self.env)
        if choice is None:
            raise AuthenticationError(NO_MODEL)
        model = wanted or choice.model
        if not model:
            raise ConfigurationError(
                f"No model is chosen for {choice.base_url}; pass --model ID or set COPILOT_MODEL."
            )
        return connect(choice), model


def announce(run: Run, place: Place) -> None:
    """Before the first prompt of a process: tell what the session has, set the system prompt."""
    session = place.session
    session.emit(SessionMcpServersLoaded(servers=[]))
    session.emit(SessionSkillsLoaded(skills=[]))
    prompt = build_prompt(run, place)
    if prompt != session.conversation.system:
        session.emit(SystemMessage(role="system", content=prompt))
    session.emit(SessionToolsUpdated(model=run.options.model))
