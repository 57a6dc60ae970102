"""The one place that knows every part: opens sessions and hands them out."""

import os
from collections.abc import Mapping, Sequence

from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import AuthenticationError, ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import (
    SessionResume,
    SessionStart,
    SessionWarning,
)
from trimtab.contracts.ids import timestamp
from trimtab.contracts.provider import Provider
from trimtab.runtime.build import Place, build_run
from trimtab.runtime.controls import Controls
from trimtab.runtime.limits import apply_limits, check_limits
from trimtab.runtime.live import LiveSession
from trimtab.runtime.options import Client, SessionOptions
from trimtab.runtime.surroundings import look_around
from trimtab.session.folder import SessionFolder
from trimtab.session.session import Projections, Session, replay
from trimtab.session.store import SessionStore
from trimtab.version import __version__
from trimtab.workspace.local import LocalWorkspace

NOBODY = Client()
LOCAL = "local"
NO_MODEL = (
    "No model service is configured; set OPENAI_API_KEY or ANTHROPIC_API_KEY, or point "
    "COPILOT_PROVIDER_BASE_URL at any OpenAI-compatible server, or fetch the small embedded model "
    "with `trimtab models pull local` (needs pip install 'trimtab[local]')."
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
        check_limits(model, options.limits, self.env)
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
        check_limits(model, options.limits, self.env)
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
            resumed=True,
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
        shared = provider
        if options.client_name:
            from trimtab.runtime.catalog import WithHeaders

            agent = f"{options.client_name} trimtab/{__version__}"
            provider = WithHeaders(provider, {"user-agent": agent})
        run = build_run(place, provider, model, options, client)
        apply_limits(run, place.session, options.limits, self.env)
        if provider.name == LOCAL:
            from trimtab.runtime.small_model import suit_small_model

            suit_small_model(run)

        async def release() -> None:
            await place.workspace.aclose()
            if shared is not self._provider:
                await provider.aclose()

        controls = Controls(place, run, options, client)
        live = LiveSession(place.folder, place.session, run, controls, release)
        if options.limits.deadline is not None:
            live.stop_after(options.limits.deadline)
        return live

    async def list_models(self) -> Sequence[JsonObject]:
        """The models of the environment's service, as it describes them."""
        from trimtab.providers.endpoints import from_environment
        from trimtab.runtime.catalog import fetch_models

        choice = from_environment(self.env)
        if choice is None:
            raise AuthenticationError(NO_MODEL)
        return await fetch_models(choice, self.env)

    def _workspace(self, folder: SessionFolder, options: SessionOptions) -> LocalWorkspace:
        return LocalWorkspace(
            root=options.cwd, session_id=folder.id, files=folder.files, env=self.env
        )

    def _embedded(self) -> Provider:
        """The model of last resort: a small one on this machine, if it was pulled."""
        from trimtab.providers.embedded.weights import find_weights, is_usable

        if not is_usable(self.env):
            raise AuthenticationError(NO_MODEL)
        from trimtab.providers.embedded.provider import EmbeddedProvider

        return EmbeddedProvider(find_weights(self.env) or "")

    def _choose_model(self, options: SessionOptions) -> tuple[Provider, str]:
        wanted = options.model or self.env.get("COPILOT_MODEL")
        if options.provider is not None:
            return options.provider, wanted or options.provider.name
        if self._provider is not None:
            return self._provider, wanted or self._provider.name
        from trimtab.providers.endpoints import connect, from_environment

        choice = None if wanted == LOCAL else from_environment(self.env)
        if choice is None:
            return self._embedded(), LOCAL
        model = wanted or choice.model
        if not model:
            raise ConfigurationError(
                f"No model is chosen for {choice.base_url}; pass --model ID or set COPILOT_MODEL."
            )
        return connect(choice), model
