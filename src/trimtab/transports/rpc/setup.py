"""The parameters of `session.create` and `session.resume`, and the options made from them."""

import os
from typing import Any, Literal

import msgspec

from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import (
    CustomizationOptions,
    GitHubServerOptions,
    LargeOutput,
    LimitOptions,
    SectionChange,
    SessionOptions,
    SystemMessageOptions,
    Thresholds,
    smallest_budget,
)
from trimtab.customize.agents import read_given
from trimtab.host.participants import Capabilities
from trimtab.models.catalog import ModelSettings, ProviderSettings
from trimtab.prompts.customize import change_sections
from trimtab.transports.rpc.folders import require_folder, require_folders
from trimtab.transports.rpc.sandbox_setup import SandboxConfig, read_sandbox


class SectionOverride(msgspec.Struct, frozen=True):
    action: str = "preserve"
    content: str = ""


class SystemMessageSettings(msgspec.Struct, frozen=True):
    mode: str = "append"
    content: str = ""
    sections: dict[str, SectionOverride | None] = {}


class LimitSettings(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    max_ai_credits: float | None = None


class LargeOutputSettings(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    enabled: bool = True
    max_size_bytes: int | None = None
    output_dir: str | None = None


class InfiniteSettings(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    enabled: bool = True
    background_compaction_threshold: float | None = None
    buffer_exhaustion_threshold: float | None = None


class AutopilotSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The number of times that autopilot sends the model back to work."""

    continuation_enabled: bool | None = None
    max_continues: int | None = None


class GitHubToolSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The tools of GitHub's own MCP server."""

    enable_all_tools: bool = False
    additional_toolsets: tuple[str, ...] = ()
    additional_tools: tuple[str, ...] = ()


class CapiSettings(msgspec.Struct, frozen=True, rename="camel"):
    """Options of GitHub's model service."""

    enable_web_socket_responses: bool | None = None


class SessionSettings(Capabilities, frozen=True, kw_only=True, rename="camel"):
    """The parameters of `session.create` and `session.resume`; unknown ones are ignored."""

    session_id: str | None = None
    model: str | None = None
    name: str | None = None
    client_name: str | None = None
    reasoning_effort: str | None = None
    streaming: bool = False
    enable_citations: bool = False
    request_mcp_apps: bool = False
    system_message: SystemMessageSettings | None = None
    available_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] = ()
    working_directory: str | None = None
    additional_directories: tuple[str, ...] = ()
    provider: ProviderSettings | None = None
    providers: tuple[ProviderSettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    git_hub_token: str | None = None
    git_hub_token_provider_registration_id: str | None = None
    continue_pending_work: bool = False
    disable_resume: bool = False
    capi: CapiSettings | None = None
    cloud: Any = None
    custom_agents: tuple[JsonObject, ...] | None = None
    agent: str | None = None
    default_agent: JsonObject | None = None
    excluded_builtin_agents: tuple[str, ...] = ()
    model_capabilities: JsonObject | None = None
    skill_directories: tuple[str, ...] | None = None
    disabled_skills: tuple[str, ...] | None = None
    instruction_directories: tuple[str, ...] | None = None
    mcp_servers: JsonObject | None = None
    session_limits: LimitSettings | None = None
    large_output: LargeOutputSettings | None = None
    infinite_sessions: InfiniteSettings | None = None
    memory: JsonObject | None = None
    context_tier: str | None = None
    feature_flags: JsonObject | None = None
    skip_custom_instructions: bool = False
    enable_config_discovery: bool = False
    organization_custom_instructions: str | None = None
    reasoning_summary: Literal["none", "concise", "detailed"] | None = None
    plugin_directories: tuple[str, ...] | None = None
    agent_directories: tuple[str, ...] | None = None
    hook_directories: tuple[str, ...] | None = None
    enable_skills: bool | None = None
    enable_file_hooks: bool | None = None
    enable_on_demand_instruction_discovery: bool | None = None
    disabled_mcp_servers: tuple[str, ...] | None = None
    github_mcp_tool_config: GitHubToolSettings | None = None
    sign_in_storage: Literal["persistent", "in-memory"] | None = msgspec.field(
        default=None, name="mcpOAuthTokenStorage"
    )
    is_experimental_mode: bool | None = None
    autopilot: AutopilotSettings | None = None
    trust_working_directory: Literal["session", "user"] | None = None
    sandbox_config: SandboxConfig | None = None
    managed_settings: JsonObject | None = None
    enable_managed_settings: bool = False
    tool_search: JsonObject | None = None
    image_generation: JsonObject | None = None
    config_dir: str | None = None
    ask_user_variant: str | None = None
    auth_client_id_metadata_url: str | None = None
    enable_git_hub_telemetry_forwarding: bool = False
    enable_host_git_operations: bool | None = None
    enable_session_store: bool | None = None

    def capabilities(self) -> Capabilities:
        return Capabilities(
            **{name: getattr(self, name) for name in Capabilities.__struct_fields__}
        )

    def kept(self) -> JsonObject:
        """Return the settings that are kept with the session and reported."""
        return {name: value for name in KEPT if (value := getattr(self, name)) is not None}


KEPT = (
    "custom_agents",
    "agent",
    "default_agent",
    "skill_directories",
    "disabled_skills",
    "instruction_directories",
    "mcp_servers",
    "session_limits",
    "large_output",
    "infinite_sessions",
    "memory",
    "context_tier",
)


def build_options(settings: SessionSettings, defaults: SessionOptions, cwd: str) -> SessionOptions:
    """Return the options of the session: the client's, else those of the server's flags.

    Raises `ConfigurationError` for invalid settings.
    """
    if settings.cloud is not None:
        raise ConfigurationError(
            "Cloud sessions need GitHub's service; create a local session (leave `cloud` out)."
        )
    folder = os.path.abspath(require_folder(settings.working_directory or cwd, cwd))
    if settings.managed_settings or settings.enable_managed_settings:
        raise ConfigurationError(
            "Managed settings cannot be applied here; leave managedSettings and "
            "enableManagedSettings out, and put the rules into the policy files of the machine."
        )
    tools, sandbox = settings.available_tools, settings.sandbox_config
    return msgspec.structs.replace(
        defaults,
        cwd=folder,
        model=settings.model or defaults.model,
        needs_model=False,
        effort=settings.reasoning_effort or defaults.effort,
        stream=settings.streaming,
        citations=settings.enable_citations,
        mcp_apps=settings.request_mcp_apps,
        name=settings.name,
        session_id=settings.session_id,
        client_name=settings.client_name,
        available_tools=defaults.available_tools if tools is None else tools,
        excluded_tools=(*defaults.excluded_tools, *settings.excluded_tools),
        main_excluded=read_excluded_tools(settings.default_agent),
        vision=read_vision(settings.model_capabilities),
        system_message=read_system_message(settings.system_message),
        instructions="skip" if settings.skip_custom_instructions else defaults.instructions,
        customize=read_customizations(settings, defaults.customize, folder),
        permissions=msgspec.structs.replace(
            defaults.permissions,
            add_dirs=(
                *defaults.permissions.add_dirs,
                *require_folders(settings.additional_directories, folder),
            ),
        ),
        large_output=read_large_output(settings.large_output),
        compaction=read_thresholds(settings.infinite_sessions),
        limits=read_limits(settings, defaults.limits),
        reads_git=settings.enable_host_git_operations is not False,
        session_store=settings.enable_session_store,
        reasoning_summary=settings.reasoning_summary not in (None, "none"),
        trust_folder=defaults.trust_folder or settings.trust_working_directory is not None,
        sandbox=defaults.sandbox if sandbox is None else sandbox.enabled,
        sandbox_settings=defaults.sandbox_settings if sandbox is None else read_sandbox(sandbox),
    )


def read_customizations(
    settings: SessionSettings, defaults: CustomizationOptions, cwd: str
) -> CustomizationOptions:
    """Return the customizations; relative folders are below the session's folder."""

    def resolve(folders: tuple[str, ...] | None) -> tuple[str, ...]:
        return resolve_folders(cwd, folders or ())

    experimental = settings.is_experimental_mode
    return msgspec.structs.replace(
        defaults,
        discover=settings.enable_config_discovery,
        agent=settings.agent or defaults.agent,
        agents=read_agents(settings.custom_agents),
        excluded_agents=settings.excluded_builtin_agents,
        agent_directories=resolve(settings.agent_directories),
        hook_directories=resolve(settings.hook_directories),
        plugin_dirs=(*defaults.plugin_dirs, *resolve(settings.plugin_directories)),
        loads_skills=settings.enable_skills is not False,
        loads_repository_hooks=settings.enable_file_hooks is not False,
        loads_touched_instructions=settings.enable_on_demand_instruction_discovery is not False,
        keeps_sign_ins=settings.sign_in_storage != "in-memory",
        disabled_servers=(*defaults.disabled_servers, *(settings.disabled_mcp_servers or ())),
        github=read_github_tools(settings.github_mcp_tool_config, defaults.github),
        experimental=defaults.experimental if experimental is None else experimental,
        skill_directories=resolve(settings.skill_directories),
        disabled_skills=settings.disabled_skills or (),
        instruction_directories=resolve(settings.instruction_directories),
        organization_instructions=settings.organization_custom_instructions or "",
        servers=settings.mcp_servers or {},
        features=read_features(settings.feature_flags) or defaults.features,
    )


def resolve_folders(cwd: str, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return folders as absolute paths, or as they are if they begin with `~`."""
    return tuple(
        folder if folder.startswith("~") else os.path.join(cwd, folder) for folder in folders
    )


def read_features(flags: JsonObject | None) -> dict[str, bool]:
    """Return the feature flags that a client turns on or off."""
    return {name.upper(): value for name, value in (flags or {}).items() if isinstance(value, bool)}


def read_limits(settings: SessionSettings, defaults: LimitOptions) -> LimitOptions:
    """Return the server's limits with the client's, if its budget is the smaller one."""
    continues = read_continues(settings.autopilot, defaults)
    defaults = msgspec.structs.replace(defaults, max_continues=continues)
    budget = read_budget(settings.session_limits)
    if budget is None or (defaults.max_usd is not None and defaults.max_usd <= budget):
        return defaults
    return msgspec.structs.replace(defaults, max_usd=budget, in_credits=True)


def read_continues(settings: AutopilotSettings | None, defaults: LimitOptions) -> int | None:
    """Return the number of times that autopilot may go on; None for the default."""
    autopilot = settings or AutopilotSettings()
    if autopilot.continuation_enabled is False:
        return 0
    return defaults.max_continues if autopilot.max_continues is None else autopilot.max_continues


def read_github_tools(
    settings: GitHubToolSettings | None, defaults: GitHubServerOptions
) -> GitHubServerOptions:
    if settings is None:
        return defaults
    return msgspec.structs.replace(
        defaults,
        tools=(*defaults.tools, *settings.additional_tools),
        toolsets=(*defaults.toolsets, *settings.additional_toolsets),
        all_tools=defaults.all_tools or settings.enable_all_tools,
    )


NO_EFFECT = {
    "tool_search": "toolSearch: tools are deferred by their size",
    "image_generation": "imageGeneration: no images are made here",
    "config_dir": "configDir: start the server with another COPILOT_HOME",
    "auth_client_id_metadata_url": "authClientIdMetadataUrl: this program identifies itself",
}
"""Options that are reported because nothing follows them here, and why."""


def find_ignored(settings: SessionSettings) -> list[str]:
    """Return sentences about the options that have no effect here."""
    ignored = [reason for name, reason in NO_EFFECT.items() if getattr(settings, name) is not None]
    if settings.ask_user_variant == "elicitation":
        ignored.append("askUserVariant: the tool asks in its one form")
    return [f"An option of the session has no effect here. {reason}." for reason in ignored]


def read_excluded_tools(default_agent: JsonObject | None) -> tuple[str, ...]:
    """Return the tools that only sub-agents may use."""
    names = (default_agent or {}).get("excludedTools") or ()
    return tuple(name for name in names if isinstance(name, str))


def read_vision(capabilities: JsonObject | None) -> bool:
    """Return False if the client says that the model cannot see images."""
    return ((capabilities or {}).get("supports") or {}).get("vision") is not False


def read_agents(given: tuple[JsonObject, ...] | None) -> tuple[AgentDefinition, ...]:
    """Return the agents a client defines."""
    return tuple(map(read_given, given or ()))


def read_large_output(settings: LargeOutputSettings | None) -> LargeOutput:
    if settings is None:
        return LargeOutput()
    return LargeOutput(
        enabled=settings.enabled, limit=settings.max_size_bytes, folder=settings.output_dir
    )


def read_thresholds(settings: InfiniteSettings | None) -> Thresholds | None:
    if settings is None:
        return Thresholds()
    if not settings.enabled:
        return None
    default = Thresholds()
    background = settings.background_compaction_threshold
    exhausted = settings.buffer_exhaustion_threshold
    return Thresholds(
        background=default.background if background is None else background,
        exhausted=default.exhausted if exhausted is None else exhausted,
    )


def read_budget(settings: LimitSettings | None) -> float | None:
    return smallest_budget(None, settings.max_ai_credits) if settings else None


def read_system_message(settings: SystemMessageSettings | None) -> SystemMessageOptions:
    if settings is None:
        return SystemMessageOptions()
    change_sections(
        {}, dict.fromkeys(settings.sections, SectionChange())
    )  # raises if one does not exist
    sections = {
        name: {"action": override.action, "content": override.content}
        for name, override in settings.sections.items()
        if override is not None
    }
    try:
        return SystemMessageOptions(
            mode=msgspec.convert(settings.mode, _Mode),
            content=settings.content,
            sections=msgspec.convert(sections, dict[str, SectionChange]),
        )
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"systemMessage is not valid: {error}; correct it.") from None


_Mode = SystemMessageOptions.__annotations__["mode"]
