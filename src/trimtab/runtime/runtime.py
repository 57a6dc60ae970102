"""Opens sessions: builds every part of a new or resumed session and connects them."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.build import AgentPorts, build_agent, find_writer
from trimtab.agents.setup import SessionSetup, set_up_languages
from trimtab.checkout.checkout import Checkout
from trimtab.config.paths import Home, find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import AgentChanged
from trimtab.contracts.events.session import (
    LOG_VERSION,
    SessionInfo,
    SessionResume,
    SessionStart,
    SessionWarning,
)
from trimtab.contracts.ids import timestamp
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.secrets import Masker, find_secrets
from trimtab.contracts.text import count
from trimtab.contracts.tool import AgentsPort
from trimtab.customize.customizations import Customizations
from trimtab.hooks.setup import set_up_hooks
from trimtab.models.choose import (
    LOCAL,
    Chosen,
    ModelChooser,
    RoleModels,
    is_offline,
)
from trimtab.models.limits import check_limits
from trimtab.policy.rule_files import load_rules
from trimtab.runtime.controls import Controls
from trimtab.runtime.folder_setup import FolderSetup, PreparedFolder
from trimtab.runtime.live import LiveSession
from trimtab.runtime.options import OptionOwner, Resolved, resolve
from trimtab.session.folder import SessionFolder
from trimtab.session.inbox import Inbox
from trimtab.session.log import EventLog
from trimtab.session.masking import EventMask
from trimtab.session.session import Projections, Session, replay
from trimtab.session.store import SessionStore
from trimtab.version import __version__
from trimtab.workspace.environment import find_keys
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from trimtab.agents.agent import SessionAgent
    from trimtab.checkout.worktree_commits import WorktreeCommits
    from trimtab.runtimes.responder import RuntimeChoice
    from trimtab.session.projections.runtimes import UsedRuntime
    from trimtab.telemetry.export import Telemetry

    Answering = tuple[Chosen, "RuntimeChoice | None"]
    """The model that answers prompts, and the runtime that does instead, if there is one."""

NO_CLIENT = Client()
OWN_LOOP = "trimtab"
"""The name by which a person chooses our own loop for a session that a runtime answered before."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A session about to be opened: its folder, customizations, options and subscribers."""

    folder: PreparedFolder
    customizations: Customizations
    owner: OptionOwner
    client: Client
    telemetry: "Telemetry | None"


class Runtime:
    """Opens sessions. A runtime serves many sessions and keeps no state about them.

    `provider` is used instead of the service chosen by the environment: embedding programs supply
    their own model with it, and tests a scripted one. `on_open` is called with each open session.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        provider: Provider | None = None,
        on_open: Callable[[LiveSession], None] | None = None,
    ) -> None:
        self.env: Mapping[str, str] = os.environ if env is None else env
        self.home: Home = find_home(self.env)
        self.store = SessionStore(self.home)
        self.folders = FolderSetup(self.home, self.env, self.store)
        self._provider = provider
        self._on_open = on_open
        self.models = ModelChooser(self.env, self.home, provider)

    async def create(self, options: SessionOptions, client: Client = NO_CLIENT) -> LiveSession:
        """Start a new session."""
        opening = await self._prepare_opening(options, client)
        options, checkout = opening.owner.current, opening.folder.checkout
        runtime = await self._find_runtime(options)
        chosen = await self._choose(options, runtime)
        folder, log = self.store.create(
            options.session_id,
            cwd=options.cwd,
            name=options.name,
            git=checkout.metadata(),
        )
        session = self._connect(Session(folder.id, log, Projections()), opening)
        session.emit(self._describe_start(folder, chosen, options, checkout))
        setup = self._build_setup(session, folder, opening)
        return await self._finish_setup(setup, (chosen, runtime), opening.owner, client)

    async def resume(
        self,
        session_id: str,
        options: SessionOptions,
        client: Client = NO_CLIENT,
        *,
        continue_pending_work: bool | None = None,
    ) -> LiveSession:
        """Reopen a session, whatever state its log is in.

        `continue_pending_work` is recorded in the resume event; the caller continues the work.
        """
        opening = await self._prepare_opening(options, client, session_id)
        options, checkout = opening.owner.current, opening.folder.checkout
        folder, log = self.store.open(session_id)
        try:
            session = Session(folder.id, log, replay(log.path))
            runtime = await self._find_runtime(options, session.projections.runtimes.last.get(None))
            chosen = await self._choose(options, runtime)
        except BaseException:
            log.close()
            raise
        self._connect(session, opening)
        if not log.count:  # every log begins with session.start
            session.emit(self._describe_start(folder, chosen, options, checkout))
        session.emit(
            SessionResume(
                resume_time=timestamp(),
                event_count=log.count,
                selected_model=chosen.model or None,
                reasoning_effort=options.effort,
                context=checkout.context(),
                events_file_size_bytes=log.size,
                continue_pending_work=continue_pending_work,
            )
        )
        report_log(session, log)
        mark_interrupted(session)
        setup = self._build_setup(session, folder, opening, resumed=True)
        return await self._finish_setup(setup, (chosen, runtime), opening.owner, client)

    async def _prepare_opening(
        self, options: SessionOptions, client: Client, session_id: str | None = None
    ) -> Opening:
        """Set up the folder and resolve the options; the session's log is not open yet."""
        folder = await self.folders.set_up(options, client, session_id)
        custom, resolved = await self.prepare(folder)
        telemetry = self._open_telemetry(custom)
        return Opening(
            folder=folder,
            customizations=custom,
            owner=OptionOwner(folder.options, resolved, custom, self.env),
            client=client,
            telemetry=telemetry,
        )

    def _connect(self, session: Session, opening: Opening) -> Session:
        """Mask secrets in the session's events, and subscribe the client and the traces."""
        session.mask = EventMask(self.build_masker(opening.owner.current))
        if opening.client.on_event:
            session.subscribe(opening.client.on_event)
        if opening.telemetry is not None:
            opening.telemetry.follow(session)
        return session

    def _build_setup(
        self, session: Session, folder: SessionFolder, opening: Opening, *, resumed: bool = False
    ) -> SessionSetup:
        return SessionSetup(
            session=session,
            folder=folder,
            workspace=self._workspace(folder, opening.owner.current),
            checkout=opening.folder.checkout,
            home=self.home,
            customizations=opening.customizations,
            trust=opening.folder.trust,
            env=self.env,
            client_database=opening.owner.current.database,
            resumed=resumed,
        )

    def _open_telemetry(self, custom: Customizations) -> "Telemetry | None":
        """Open the export of traces if the environment or the person's settings ask for it."""
        env = custom.telemetry_env
        if env.get("COPILOT_OTEL_ENABLED", "").lower() not in ("1", "true"):
            return None
        from trimtab.telemetry.export import Telemetry, read_settings

        return Telemetry(read_settings(env))

    def _describe_start(
        self, folder: SessionFolder, chosen: Chosen, options: SessionOptions, checkout: Checkout
    ) -> SessionStart:
        return SessionStart(
            session_id=folder.id,
            version=LOG_VERSION,
            producer="trimtab",
            copilot_version=__version__,
            start_time=timestamp(),
            selected_model=chosen.model or None,
            reasoning_effort=options.effort,
            context=checkout.context(),
        )

    async def prepare(self, folder: PreparedFolder) -> tuple[Customizations, Resolved]:
        """Return the customizations and resolved options of a session in a folder."""
        options = folder.options
        custom = Customizations(self.home, self.env, folder.checkout, options)
        custom.trusted, custom.switched = folder.trust.trusted, folder.trust.switched
        if options.customize.agent is not None and options.model is None:
            from trimtab.customize.model_families import resolve_model_families

            offline = is_offline(options, self.env)
            agent = custom.find_agent(options.customize.agent)
            if not agent.runtime or options.runtime_models == "host":
                await resolve_model_families(custom, agent, offline=offline)
        return custom, resolve(options, self.env, custom)

    def build_masker(self, options: SessionOptions) -> Masker:
        """Return what masks the secrets of the environment and of the options."""
        keys = find_keys(self.env)
        return find_secrets(self.env, options.secrets, keys, options.secret_values)

    async def _find_runtime(
        self, options: SessionOptions, used: "UsedRuntime | None" = None
    ) -> "RuntimeChoice | None":
        """Find the program that answers prompts; a resumed session goes on with the one it had."""
        name = options.runtime or (used.runtime if used else None)
        if name is None or name == OWN_LOOP:
            return None
        if is_offline(options, self.env):
            raise UsageError(
                f"The runtime {name} may contact other machines, which --offline forbids; leave "
                "one of the two out."
            )
        from trimtab.agents.runtime_agent import choose_runtime

        same = used if used is not None and used.runtime == name else None
        models = options.runtime_models or (same.models if same else "own")
        return await choose_runtime(name, models, self.home, self.env)

    async def _choose(self, options: SessionOptions, runtime: "RuntimeChoice | None") -> Chosen:
        """Choose the model and its fallbacks; check that the limits can be enforced for each."""
        if runtime is not None and runtime.models == "own":
            from trimtab.agents.runtime_agent import own_models

            return own_models(runtime.runtime, options.model, options.limits)
        chosen = await self.models.choose(options)
        fallbacks = await self.models.choose_fallbacks(options)
        for candidate in (chosen, *fallbacks):
            check_limits(candidate.model, options.limits, candidate.price)
        chosen = msgspec.structs.replace(
            chosen, fallbacks=tuple(fallbacks), roles=RoleModels(self.models, options)
        )
        if options.client_name:
            return chosen.with_headers(
                {"user-agent": f"{options.client_name} trimtab/{__version__}"}
            )
        return chosen

    async def _finish_setup(
        self, setup: SessionSetup, answering: "Answering", owner: OptionOwner, client: Client
    ) -> LiveSession:
        """Load rules, sandbox and hooks, then open the session."""
        options = owner.current
        setup = await self.load_policy(setup, options)
        hooks, prompts = await set_up_hooks(setup, options, client, self.env)
        setup = set_up_languages(msgspec.structs.replace(setup, hooks=hooks))
        live = self._open(setup, answering, owner, client)
        if answering[1] is not None:
            from trimtab.agents.runtime_agent import check_stand_in

            await check_stand_in(answering[1], setup)
        for prompt in () if setup.resumed else prompts:
            live.inbox.put(Prompt(text=prompt, source="hook"))
        return live

    async def load_policy(self, setup: SessionSetup, options: SessionOptions) -> SessionSetup:
        """Report folder trust, load the rule files that apply, and set up the sandbox."""
        if setup.trust is not None:
            setup.trust.report(setup.session)
            added = options.permissions.add_dirs
            rules = await load_rules(self.home, setup.trust, setup.session, added)
            setup = msgspec.structs.replace(setup, rules=rules)
        if options.sandbox:
            from trimtab.agents.sandbox import set_up_sandbox

            sandbox = set_up_sandbox(setup, options, self.env)
            setup = msgspec.structs.replace(setup, sandbox=sandbox)
        return setup

    def _open(
        self, setup: SessionSetup, answering: "Answering", owner: OptionOwner, client: Client
    ) -> LiveSession:
        options = owner.current
        chosen, runtime = answering

        async def answer_command(text: str) -> str | None:
            return await live.run_command(text)

        async def expand_command(text: str) -> str | None:
            return await live.expand_command(text)

        def reach_agents(run: Run, call_id: str) -> AgentsPort:
            return controls.reach_agents(run, call_id)

        async def release() -> None:
            await controls.aclose()
            await setup.aclose()
            if options.provider is not None or self._provider is None:
                await chosen.aclose()

        ports = AgentPorts(
            client=client,
            answer_command=answer_command,
            expand_command=expand_command,
            agents=reach_agents,
            has_background_work=lambda: live.has_background_work,
            model_switch=lambda: controls,
            give_runtime=None
            if runtime is None
            else lambda agent: self._give_runtime(agent, setup, runtime, lambda: owner.current),
        )
        agent = build_agent(setup, chosen, options, ports)
        run = Run(session=setup.session, inbox=Inbox(setup.session), agent=agent)
        announce(setup, chosen, run)
        if agent.parts.checkpoints is not None:
            let_model_name_branch(agent.parts.checkpoints, setup, chosen, run)
        controls = Controls(setup, run, owner, client, self.models, self.folders)
        setup.workspace.shells.on_change = controls.announce_tasks
        live = LiveSession(setup.folder, setup.session, run, controls, release)
        if agent.parts.deadline is not None:
            live.keep_deadline(agent.parts.deadline.limit)
        if self._on_open is not None:
            self._on_open(live)
        return live

    def _give_runtime(
        self,
        agent: "SessionAgent",
        setup: SessionSetup,
        runtime: "RuntimeChoice",
        options: Callable[[], SessionOptions],
    ) -> "SessionAgent":
        from trimtab.agents.runtime_agent import RuntimeSupport, give_runtime

        custom = setup.customizations
        support = RuntimeSupport(
            setup=setup,
            options=options,
            models=self.models,
            system=custom.agent_prompt if custom is not None else str,
            tools=lambda: options().available_tools,
        )
        return give_runtime(agent, runtime, support)

    async def list_models(self) -> Sequence[JsonObject]:
        """Return the models of the service a new session would use, as it describes them."""
        from trimtab.models.catalog import fetch_models

        return await fetch_models(await self.models.find_service(), self.env)

    def _workspace(self, folder: SessionFolder, options: SessionOptions) -> LocalWorkspace:
        return LocalWorkspace(
            root=options.cwd,
            session_id=folder.id,
            files=folder.files,
            env=self.env,
            secrets=options.secrets,
        )


def report_log(session: Session, log: EventLog) -> None:
    """Report what opening the log repaired or missed, and the prompts it holds."""
    for finding in log.findings:
        session.emit(SessionWarning(warning_type="log_repaired", message=finding.sentence))
    for note in log.notes:
        if note.is_reported:
            session.emit(SessionWarning(warning_type="log_incomplete", message=note.sentence))
    queued = session.projections.queue.prompts
    if unsent := sum(prompt.notification is None for prompt in queued):
        message = (
            f"{count(unsent, 'prompt')} of this session never sent: list them with the command "
            "/queue, send them with /queue send, or drop them with /queue drop."
        )
        session.emit(SessionWarning(warning_type="prompts_held", message=message))


def mark_interrupted(session: Session) -> None:
    """Record which sub-agents were at work when the process that ran the session ended."""
    records = session.projections.agents.records.values()
    for record in [record for record in records if record.state == "running"]:
        session.emit(
            AgentChanged(change="interrupted", reason="The process that ran it ended."),
            agent_id=record.id,
        )


def announce(setup: SessionSetup, chosen: Chosen, run: Run) -> None:
    """Subscribe hooks to the session's events, and announce its worktree and embedded model."""
    if setup.hooks is not None:
        from trimtab.hooks.listener import HookListener

        setup.session.subscribe(HookListener(setup.hooks, run).on_event)
    if setup.checkout.worktree is not None:
        from trimtab.checkout.worktree_commits import announce_worktree

        announce_worktree(setup.session, setup.checkout.worktree)
    if chosen.provider.name == LOCAL:
        from trimtab.providers.embedded.provider import NOTICE

        setup.session.emit(SessionInfo(info_type="embedded_model", message=NOTICE))


def let_model_name_branch(
    checkpoints: "WorktreeCommits", setup: SessionSetup, chosen: Chosen, run: Run
) -> None:
    """Have a model name the branch of a worktree, unless the settings or another agent's program
    keep it from that.
    """
    from trimtab.config.host_settings import is_enabled
    from trimtab.publish.writing import Author

    custom = setup.customizations
    settings = custom.settings if custom is not None and custom.has_settings else None
    enabled = is_enabled(settings, "aiGenerateBranchNames.enabled")
    if enabled and run.agent.responder is None:
        checkpoints.name_branch = Author(run, find_writer(chosen, "title")).write_branch
