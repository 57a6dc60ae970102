"""The choices a person or a program makes about a session."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trimtab.contracts.agent import Mode
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import Subscriber
from trimtab.contracts.permission import Ask
from trimtab.contracts.provider import CREDIT_USD

if TYPE_CHECKING:
    from trimtab.contracts.assessment import Assess
    from trimtab.contracts.hooks import HookPort
    from trimtab.contracts.provider import Provider
    from trimtab.contracts.questions import AskApproval, AskPerson, AskTrust

Transform = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""Given sections of the system message by name, gives their new texts."""


Action = Literal["replace", "remove", "append", "prepend", "preserve", "transform"]


class SectionChange(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one section. `transform` asks the caller for the new text."""

    action: Action = "preserve"
    content: str = ""


class SystemMessageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`append` puts `content` after our text, `replace` in its place, `customize` also edits it."""

    mode: Literal["append", "replace", "customize"] = "append"
    content: str = ""
    sections: Mapping[str, SectionChange] = {}


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the window. Summarising begins at `background`; at `exhausted` the run waits."""

    background: float = 0.80
    exhausted: float = 0.95
    fewest: int = 4
    """Below so many messages there is nothing worth summarising."""


class SandboxSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The setting `sandbox`. Paths may begin with `~`, or be relative to the workspace."""

    enabled: bool = False
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    network: Literal["off", "on"] = "off"
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    auto_allow: bool = False


class PermissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed without asking."""

    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow_destructive: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    temp_dir: bool = True


class LargeOutput(msgspec.Struct, frozen=True, kw_only=True):
    """When a result is too long for a model, and which folder gets it then."""

    limit: int | None = None
    """In bytes; None: what COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES says, else 20 KiB."""
    enabled: bool = True
    folder: str | None = None


def smallest_budget(usd: float | None, ai_credits: float | None) -> float | None:
    """The lower of a limit in money and one in AI credits, in USD."""
    limits = [usd, None if ai_credits is None else ai_credits * CREDIT_USD]
    return min((limit for limit in limits if limit is not None), default=None)


DEFAULT_CONTINUES = 5


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed model call is made again, and after how many seconds."""

    retries: int = 5
    delay: float = 1.0
    max_delay: float = 60.0


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run must end. `deadline` is in seconds from the start of the session."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    in_credits: bool = False
    """Whether the limit in money was given in AI credits."""
    deadline: float | None = None
    max_continues: int | None = None
    """How often autopilot sends the model back to work."""
    retries: int | None = None
    retry_delay: float | None = None
    max_retry_delay: float | None = None
    max_repeats: int | None = None
    """The limit for one call with one result; None: 25 where nobody watches and in autopilot."""

    @property
    def continues(self) -> int:
        return DEFAULT_CONTINUES if self.max_continues is None else self.max_continues

    @property
    def retry_policy(self) -> RetryPolicy:
        usual = RetryPolicy()
        return RetryPolicy(
            retries=usual.retries if self.retries is None else self.retries,
            delay=usual.delay if self.retry_delay is None else self.retry_delay,
            max_delay=usual.max_delay if self.max_retry_delay is None else self.max_retry_delay,
        )


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """A git worktree for a session alone: a new one, or only the one it had before."""

    new: bool = True
    name: str | None = None
    changes: Literal["leave", "copy"] = "leave"
    """What becomes of the person's uncommitted changes: they stay behind, or are there as well."""


class CustomizationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which customizations a session loads besides those it finds. `discover` finds them."""

    discover: bool = True
    agent: str | None = None
    """The custom agent whose prompt, tools and model the session has."""
    agents: tuple[AgentDefinition, ...] = ()
    excluded_agents: tuple[str, ...] = ()
    """Built-in agents that are not to be started."""
    """Agents a client brings; they win over those on disk."""
    skill_directories: tuple[str, ...] = ()
    disabled_skills: tuple[str, ...] = ()
    instruction_directories: tuple[str, ...] = ()
    organization_instructions: str = ""
    mcp_config: tuple[str, ...] = ()
    """JSON, or `@` and the path of a file."""
    servers: Mapping[str, Any] = {}
    """MCP servers a client brings, by name; their values are taken as they are."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins to use in this session."""
    experimental: bool | None = None
    """Whether experimental features are on; None: what the setting `experimental` says."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on the other side of a session from its first event on.

    `on_event` is given every event and its line; `ask` answers permission questions. Without
    `ask` nobody can be asked, and what would be asked is denied.
    """

    on_event: Subscriber | None = None
    ask: Ask | None = None
    attended: bool = False
    """True if a person follows what the agent does, and can stop it."""
    judges: bool = False
    """Whether everything no rule decides is put to `ask`, reads in the workspace included."""
    hooks: "HookPort | None" = None
    ask_trust: "AskTrust | None" = None
    transform: Transform | None = None
    ask_person: "AskPerson | None" = None
    ask_approval: "AskApproval | None" = None
    ask_mode_switch: Callable[[ModelError], Awaitable[bool]] | None = None
    """Asked when a model's rate limit holds on: True once another model was put in its place."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for one session. Everything has a default that works."""

    cwd: str
    model: str | None = None
    effort: str | None = None
    stream: bool = True
    mode: Mode = "interactive"
    name: str | None = None
    session_id: str | None = None
    client_name: str | None = None
    available_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] = ()
    tool_filter: Callable[[str], bool] | None = None
    """Says of every tool's name whether the session has it, for programs that embed one."""
    assess: "Assess | None" = None
    """Reads scripts besides our own grammar, for programs that embed one: see `Assess`."""
    main_excluded: tuple[str, ...] = ()
    """Tools that only sub-agents have."""
    instructions: Literal["load", "skip"] = "load"
    customize: CustomizationOptions = CustomizationOptions()
    system_message: SystemMessageOptions = SystemMessageOptions()
    offline: bool | None = None
    """Whether only this machine may be contacted."""
    fallback: tuple[str, ...] = ()
    """Models to go on with, in order, when the chosen one cannot answer."""
    provider: "Provider | None" = None
    """The model service of this session, where it is not the runtime's choice."""
    vision: bool = True
    """Whether the model may be shown images."""
    secrets: tuple[str, ...] = ()
    """Names of variables that no command gets, and whose values are shown nowhere."""
    secret_values: tuple[str, ...] = ()
    """Keys that a client gave for its services; they are shown nowhere either."""
    trust_folder: bool = False
    """Whether this run may use the configuration of its folder, whatever it holds."""
    sandbox: bool | None = None
    """Whether commands run in a sandbox; None: what the setting says."""
    sandbox_settings: SandboxSettings | None = None
    large_output: LargeOutput = LargeOutput()
    compaction: Thresholds | None = Thresholds()
    """When old messages are summarised; None: only when it must be, or somebody asks."""
    isolation: Isolation | None = None
    """The git worktree the session is to have for itself."""
    auto_commit: bool = True
    """Whether the changes of each turn are committed there."""
    permissions: PermissionOptions = PermissionOptions()
    limits: LimitOptions = LimitOptions()
