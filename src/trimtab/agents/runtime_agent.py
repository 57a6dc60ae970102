"""Gives an agent a runtime: connects the program to the rules, limits and undo of a session."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.agent import SessionAgent, agent_of
from trimtab.agents.setup import SessionSetup
from trimtab.bridge.journal import Journal
from trimtab.bridge.server import Bridge
from trimtab.bridge.targets import ModelTargets
from trimtab.config.files import make_private_dir
from trimtab.contracts.errors import (
    AuthenticationError,
    ConfigurationError,
    ExitCode,
    UsageError,
)
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.hooks import GUARDS
from trimtab.contracts.options import LimitOptions, SessionOptions
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult
from trimtab.loop.ledger import Ledger
from trimtab.models.choose import Chosen, ModelChooser, NoService
from trimtab.providers.names import did_you_mean
from trimtab.runtimes.binaries import Binaries
from trimtab.runtimes.contract import AgentRuntime, ModelSource
from trimtab.runtimes.judged_call import NoFence
from trimtab.runtimes.models import list_models
from trimtab.runtimes.responder import RuntimeChoice, RuntimePorts, RuntimeResponder
from trimtab.runtimes.table import load_runtime
from trimtab.workspace.sandbox.confinement import Confinement

if TYPE_CHECKING:
    from trimtab.config.paths import Home

_SANDBOX = "sandbox"
"""The source of rules that the sandbox itself enforces."""


async def choose_runtime(
    name: str, models: ModelSource, home: "Home", env: Mapping[str, str]
) -> RuntimeChoice:
    """Find a runtime and its program. Raises `UsageError` and `ConfigurationError`."""
    runtime = load_runtime(name)
    if models == "host" and not runtime.capabilities.host_models:
        raise UsageError(
            f"{runtime.title} cannot use the models of Trimtab; leave out --runtime-models host."
        )
    binaries = Binaries(home, env)
    binary = await binaries.require(runtime)
    return RuntimeChoice(
        runtime=runtime, binary=binary, models=models, settings=binaries.settings(runtime)
    )


async def check_stand_in(choice: RuntimeChoice, setup: SessionSetup) -> None:
    """Warn of flags that a program lacks which only stands in for the real one."""
    if setup.home is None or not choice.binary.best_effort:
        return
    binaries = Binaries(setup.home, setup.env)
    if missing := await binaries.find_missing_flags(choice.runtime, choice.binary):
        command = " ".join(choice.binary.command)
        message = (
            f"`{command}` stands in for {choice.runtime.program} and lacks "
            f"{', '.join(missing)}; install the real one with `{choice.runtime.install}`."
        )
        setup.session.emit(SessionWarning(warning_type="runtime", message=message))


def own_models(runtime: AgentRuntime, model: str | None, limits: LimitOptions) -> Chosen:
    """Stand in for the choice of a model that the runtime makes itself.

    Raises `ConfigurationError` if a limit could not be enforced, because it does not say what it
    spends.
    """
    can = runtime.capabilities
    if limits.max_usd is not None and not can.cost_tracking:
        raise ConfigurationError(
            f"{runtime.title} does not report what its models cost, so a limit in money cannot be "
            "enforced; use --runtime-models host, or another limit."
        )
    if limits.max_tokens is not None and not can.token_tracking:
        raise ConfigurationError(
            f"{runtime.title} does not report all its tokens, so --max-tokens cannot be enforced; "
            "use --runtime-models host, or another limit."
        )
    reason = AuthenticationError(
        f"{runtime.title} answers in this session, with models of its own; start another session "
        "or use --runtime-models host for a model call."
    )
    return Chosen(provider=NoService(reason), model=model or "")


class RuntimeSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a session from which the ports of its runtimes are made."""

    setup: SessionSetup
    options: Callable[[], SessionOptions]
    models: ModelChooser
    system: Callable[[], str]
    """Returns the instructions of the custom agent."""
    tools: Callable[[], Sequence[str] | None] = lambda: None
    """Returns the tools that the agent may use, by our names; None for all."""
    denied_tools: tuple[str, ...] = ()


def give_runtime(
    agent: SessionAgent, choice: RuntimeChoice, support: RuntimeSupport
) -> SessionAgent:
    """Return the agent with a runtime that answers its prompts."""
    setup = support.setup
    permissions = agent.parts.permissions
    permissions.fence = NoFence(choice.runtime.title, permissions.fence)
    rules = RuntimeRules(choice.runtime, support)
    ports = RuntimePorts(
        env=setup.env,
        workspace=setup.workspace,
        recorder=agent.parts.recorder,
        guards=rules.guards,
        check_rules=rules.check,
        check_limits=check_limits,
        stop_at_budget=stop_at_budget,
        open_bridge=lambda run: open_own_bridge(run, support),
        confine=lambda: confine(choice, setup),
        system=support.system,
        last_session=lambda run: setup.session.projections.runtimes.session_of(
            run.agent.id or None, choice.runtime.name
        ),
        suggest=lambda model: suggest_model(choice, setup, model),
        folders=lambda: support.options().permissions.add_dirs,
        secrets=lambda: support.options().secrets,
        max_continues=support.options().limits.max_continues,
    )
    wanted = agent.model.name if choice.models == "own" else None
    responder = RuntimeResponder(choice, ports, wanted or None)
    # The runtime says itself when it is done, and chooses among its own models.
    agent = agent.with_parts(autopilot=None, routing=None)
    return msgspec.structs.replace(agent, responder=responder.respond)


class ToolList(Processor):
    """Keeps a runtime to the tools that an agent's file or a flag names."""

    def __init__(self, support: RuntimeSupport) -> None:
        self._support = support

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        name = pending.call.name
        if name in find_denied(self._support) or not is_listed(name, self._support):
            return ToolResult(text=f"The tool {name} is not available here.", kind="denied")
        return pending


def find_denied(support: RuntimeSupport) -> tuple[str, ...]:
    return (*support.options().excluded_tools, *support.denied_tools)


def is_listed(name: str, support: RuntimeSupport) -> bool:
    listed = support.tools()
    return listed is None or name in listed


class RuntimeRules:
    """The rules of a session, as far as a runtime can keep them."""

    def __init__(self, runtime: AgentRuntime, support: RuntimeSupport) -> None:
        self._runtime = runtime
        self._support = support
        self._tools = ToolList(support)

    def guards(self, run: Run) -> Sequence[Processor]:
        """Return the processors that decide about a call, in the order of the pipeline."""
        parts = agent_of(run).parts
        found = (self._tools, parts.hooks, parts.plan_mode, parts.permissions, parts.firewall)
        return [part for part in found if part is not None]

    def check(self, run: Run) -> None:
        """Raise `UsageError` if there is a rule that the runtime cannot keep."""
        if self._runtime.capabilities.asks_permission:
            return
        if reason := self._find_obstacle(run):
            raise UsageError(f"{self._runtime.title} {reason}")

    def _find_obstacle(self, run: Run) -> str:
        support, parts = self._support, agent_of(run).parts
        policy = parts.permissions.policy
        if run.agent.mode == "plan" or support.setup.has_read_only_agent():
            return "cannot be kept from changing files; leave plan mode, or use another runtime."
        if not is_all_allowed(policy):
            return "cannot ask for permissions, so it may only run with --allow-all; add that."
        if rule := find_kept_rule(policy):
            return f"cannot keep the rule {rule}; remove the rule, or use a runtime that asks."
        if support.tools() is not None or find_denied(support):
            return (
                "cannot be kept to a list of tools; leave out the list, or use a runtime that asks."
            )
        hooks = support.setup.hooks
        if hooks is not None and any(map(hooks.listens, GUARDS)):
            return "cannot be stopped by hooks; disable preToolUse and permissionRequest hooks."
        return ""


def is_all_allowed(policy: Policy) -> bool:
    return policy.allow_all_tools and policy.allow_all_paths and policy.allow_all_urls


def find_kept_rule(policy: Policy) -> Rule | None:
    """Return a rule that somebody must keep and the sandbox does not."""
    rules = (*policy.deny, *policy.ask)
    return next((rule for rule in rules if rule.source != _SANDBOX), None)


async def check_limits(run: Run) -> Stop | None:
    """Count a turn of a runtime; return why it may not begin."""
    turn_limit = agent_of(run).parts.turn_limit
    if turn_limit is not None and (stop := await turn_limit.before_request(run)) is not None:
        return stop
    return check_budget(run)


def check_budget(run: Run) -> Stop | None:
    """Return the stop of a run whose budget is spent."""
    ledger = run.agent.budget
    if not isinstance(ledger, Ledger) or ledger.share() < 1:
        return None
    return stop_at_budget(run, f"{ledger.describe()} spent")


def stop_at_budget(run: Run, reason: str) -> Stop:
    message = f"Stopped at the budget: {reason}; raise the limit and resume the session to go on."
    run.session.emit(SessionWarning(warning_type="budget", message=message))
    return Stop(reason="budget", exit_code=ExitCode.BUDGET, message=message)


@asynccontextmanager
async def open_own_bridge(run: Run, support: RuntimeSupport) -> AsyncGenerator[Bridge, None]:
    """Serve the models of a session to its runtime, within the budget of the session.

    Every name means the agent's own model.
    """
    options, model = support.options(), run.agent.model.name
    targets = ModelTargets(support.models, options, fixed=model)
    bridge = Bridge(targets, LimitOptions())
    ledger = run.agent.budget if isinstance(run.agent.budget, Ledger) else None
    bridge.journal = Journal(run.session, LimitOptions(), ledger)
    mask = support.setup.session.mask
    if mask is not None:
        mask.add([bridge.key])
    try:
        await bridge.start()
        yield bridge
    finally:
        await bridge.stop()
        bridge.journal.close()
        await targets.aclose()


def confine(choice: RuntimeChoice, setup: SessionSetup) -> Confinement | None:
    """Return the sandbox of a runtime: that of commands, with the runtime's own files writable.

    Raises `ConfigurationError` if its models could not be reached from inside.
    """
    confinement = setup.workspace.shells.confinement
    if confinement is None:
        return None
    policy, runtime = confinement.policy, choice.runtime
    reachable = policy.network or (policy.hosts is not None and choice.models == "own")
    if not reachable:
        raise ConfigurationError(
            f"{runtime.title} cannot reach its models from the sandbox; set sandbox.network to on, "
            "or list their hosts under sandbox.allowedHosts."
        )
    home = setup.workspace.home
    folders = [os.path.join(home, name) for name in runtime.state]
    for folder in folders:
        make_private_dir(folder)  # the program could not create it from inside
    files = [os.path.join(home, name) for name in runtime.state_files]
    writable = (*policy.writable, *folders, *(path for path in files if os.path.lexists(path)))
    wider = Confinement(
        confinement.backend,
        msgspec.structs.replace(policy, writable=writable),
        confinement.program,
    )
    wider.on_refusal = confinement.on_refusal
    return wider


async def suggest_model(choice: RuntimeChoice, setup: SessionSetup, model: str) -> str:
    """Return advice about an unknown model, by the models that the runtime lists."""
    if setup.home is None:
        return ""
    binaries = Binaries(setup.home, setup.env)
    listed = await list_models(binaries, choice.runtime, choice.binary)
    advice = did_you_mean(model, listed) if listed else ""
    return advice.rstrip(".")
