"""The options of a session, as a person or a program sets them."""

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
    from trimtab.contracts.questions import (
        AskApproval,
        AskForm,
        AskPerson,
        AskSampling,
        AskToken,
        AskTrust,
    )
    from trimtab.contracts.sql import SqlDatabase

Transform = Callable[[Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""Takes sections of the system message by name and returns their new texts."""


Action = Literal["replace", "remove", "append", "prepend", "preserve", "transform"]


class SectionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one section of the system message. `transform` asks the client for the text."""

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
    min_messages: int = 4
    """Shorter conversations are not worth summarising."""
    history: Literal["summarized", "verbatim", "cache"] = "summarized"
    """`summarized`: as it was until a threshold is reached. `verbatim`: as it was for as long as a
    service takes it. `cache`: also summarised once the service's cache of it has expired."""
    title: bool = True
    """Ask for a title of the summary."""


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
    fence: Literal["auto", "landlock", "bubblewrap", "seatbelt", "none"] = "auto"
    """The backend of the fence; `none` asks about all but the plainest commands."""


class PermissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The actions that are allowed without asking."""

    allow_all_tools: bool = False
    allow_all_paths: bool = False
    allow_all_urls: bool = False
    allow_destructive: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    temp_dir: bool = True


class LargeOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The limit above which a tool result is saved to a file, and the folder for it."""

    limit: int | None = None
    """In bytes; None takes COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES, or 20 KiB if that is not set."""
    enabled: bool = True
    folder: str | None = None


def smallest_budget(usd: float | None, ai_credits: float | None) -> float | None:
    """Return the lower of a limit in money and a limit in AI credits, in USD."""
    limits = [usd, None if ai_credits is None else ai_credits * CREDIT_USD]
    return min((limit for limit in limits if limit is not None), default=None)


DEFAULT_CONTINUES = 5


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The number of retries after a failed model call, and the delays in seconds."""

    retries: int = 5
    delay: float = 1.0
    max_delay: float = 60.0
    max_wait: float = 300.0
    """The longest wait that a service may ask for."""


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The limits at which a run ends. `deadline` is in seconds from the start of the session."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    in_credits: bool = False
    """True if the limit in money was given in AI credits."""
    deadline: float | None = None
    max_continues: int | None = None
    """The number of times autopilot sends the model back to work."""
    retries: int | None = None
    retry_delay: float | None = None
    max_retry_delay: float | None = None
    max_repeats: int | None = None
    """The limit for repeating a call with the same result. None means 25 if no person follows the
    session, and in autopilot."""

    @property
    def continues(self) -> int:
        return DEFAULT_CONTINUES if self.max_continues is None else self.max_continues

    @property
    def retry_policy(self) -> RetryPolicy:
        default = RetryPolicy()
        return RetryPolicy(
            retries=default.retries if self.retries is None else self.retries,
            delay=default.delay if self.retry_delay is None else self.retry_delay,
            max_delay=default.max_delay if self.max_retry_delay is None else self.max_retry_delay,
        )


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """A git worktree for this session alone: a new one, or only the one it had before."""

    new: bool = True
    name: str | None = None
    changes: Literal["leave", "copy"] = "leave"
    """The person's uncommitted changes stay behind, or are copied into the worktree."""


class GitHubServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of GitHub's own MCP server to use besides those that only read."""

    enabled: bool = True
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    all_tools: bool = False


class CustomizationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Customizations to load besides those found on disk, which `discover` turns off."""

    discover: bool = True
    agent: str | None = None
    """The custom agent whose prompt, tools and model the session uses."""
    agents: tuple[AgentDefinition, ...] = ()
    """Agents of the client; they take precedence over agents on disk."""
    excluded_agents: tuple[str, ...] = ()
    """Built-in agents that must not be started."""
    agent_directories: tuple[str, ...] = ()
    hook_directories: tuple[str, ...] = ()
    """Folders that the client names; its agents and hooks count whether the folder is trusted or
    not."""
    loads_skills: bool = True
    loads_repository_hooks: bool = True
    loads_touched_instructions: bool = True
    """False leaves out instructions that apply only to the files that a tool touches."""
    keeps_sign_ins: bool = True
    """False keeps the tokens of MCP servers in memory, for this session alone."""
    skill_directories: tuple[str, ...] = ()
    disabled_skills: tuple[str, ...] = ()
    instruction_directories: tuple[str, ...] = ()
    organization_instructions: str = ""
    mcp_config: tuple[str, ...] = ()
    """Each is JSON, or `@` and the path of a file."""
    github: GitHubServerOptions = GitHubServerOptions()
    disabled_servers: tuple[str, ...] = ()
    servers: Mapping[str, Any] = {}
    """MCP servers of the client, by name; variables in them are not expanded."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins to use in this session."""
    experimental: bool | None = None
    """Turns experimental features on or off; None takes the setting `experimental`."""
    features: Mapping[str, bool] = {}
    """Feature flags that are turned on or off by name."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The client that opened a session, and follows it from its first event on.

    `on_event` receives every event and its line; `ask` answers permission questions. Without
    `ask`, everything that needs a permission question is denied.
    """

    on_event: Subscriber | None = None
    ask: Ask | None = None
    attended: bool = False
    """True if a person follows what the agent does, and can stop it."""
    always_ask: bool = False
    """True if `ask` decides everything that no rule covers, including reads in the workspace."""
    hooks: "HookPort | None" = None
    ask_trust: "AskTrust | None" = None
    transform: Transform | None = None
    ask_person: "AskPerson | None" = None
    ask_approval: "AskApproval | None" = None
    ask_form: "AskForm | None" = None
    ask_token: "AskToken | None" = None
    ask_sampling: "AskSampling | None" = None
    fetch_skills: Callable[[str], Awaitable[bool]] | None = None
    """Writes the skills that clients provide below a folder; True if any of them changed."""
    offer_command: Callable[[str], Awaitable[bool]] | None = None
    """Called with a queued slash command; True if the client has run it."""
    ask_mode_switch: Callable[[ModelError], Awaitable[bool]] | None = None
    """Called when a model's rate limit persists; True if another model has replaced it."""
    ask_limit: Callable[[float, float], Awaitable[bool | None]] | None = None
    """Called with the money spent and the limit when a limit in AI credits stops the next call.

    True if the limit was changed, False if the call must not be made, None if nobody answers.
    """


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one session. Everything has a default that works."""

    cwd: str
    model: str | None = None
    effort: str | None = None
    reasoning_summary: bool = False
    """True asks for readable summaries of the reasoning, also if no effort is set."""
    mcp_apps: bool = False
    """True if a client shows interfaces of MCP servers, where the feature `MCP_APPS` is on."""
    citations: bool = False
    """True records the sources that the service gives for its replies."""
    stream: bool = True
    mode: Mode = "interactive"
    name: str | None = None
    session_id: str | None = None
    client_name: str | None = None
    available_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] = ()
    tool_filter: Callable[[str], bool] | None = None
    """Returns True for the names of tools the session may have; for embedding programs."""
    assess: "Assess | None" = None
    """An assessor that reads scripts besides our own grammar; for embedding programs."""
    main_excluded: tuple[str, ...] = ()
    """Tools that only sub-agents get."""
    instructions: Literal["load", "skip"] = "load"
    customize: CustomizationOptions = CustomizationOptions()
    system_message: SystemMessageOptions = SystemMessageOptions()
    offline: bool | None = None
    """True if no other machine may be contacted."""
    fallback: tuple[str, ...] = ()
    """Models to switch to, in order, when the chosen model cannot answer."""
    database: "SqlDatabase | None" = None
    """Keeps the tables of the `sql` tool in place of a file; for embedding programs."""
    provider: "Provider | None" = None
    """The model service of this session; None leaves the choice to the runtime."""
    runtime: str | None = None
    """The runtime that answers prompts; None takes the agent's, or our own loop."""
    runtime_models: Literal["own", "host"] | None = None
    """The models of the runtime: its own (None), or those of this program."""
    needs_model: bool = True
    """False opens the session also when no model can be chosen; its first model call fails."""
    vision: bool = True
    """False if the model must not be sent images."""
    secrets: tuple[str, ...] = ()
    """Names of variables that are withheld from commands and whose values are masked."""
    secret_values: tuple[str, ...] = ()
    """Keys that a client gave for its services; they are masked too."""
    reads_git: bool = True
    """False leaves the repository of the folder out: its root, branch, commit and remote."""
    session_store: bool | None = None
    """False keeps the session out of the index of past sessions, and that from it; None: usual."""
    trust_folder: bool = False
    """True if this run trusts its folder's configuration without asking."""
    sandbox: bool | None = None
    """Runs commands in a sandbox, or not; None takes the setting."""
    sandbox_settings: SandboxSettings | None = None
    large_output: LargeOutput = LargeOutput()
    compaction: Thresholds | None = Thresholds()
    """The thresholds for summarising old messages; None: only when unavoidable, or on request."""
    isolation: Isolation | None = None
    """The git worktree the session gets for itself."""
    auto_commit: bool | None = None
    """True if the changes of each turn are committed there; None takes the setting."""
    permissions: PermissionOptions = PermissionOptions()
    limits: LimitOptions = LimitOptions()
