"""Changes the settings of an open session, for `session.options.update` and `session.resume`."""

from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import ConfigurationError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.hosted import HostedSession
from trimtab.models.catalog import ProviderSettings, SessionCatalog
from trimtab.transports.rpc.folders import require_folder, require_folders
from trimtab.transports.rpc.sandbox_setup import SandboxConfig, read_sandbox
from trimtab.transports.rpc.setup import (
    AutopilotSettings,
    LimitSettings,
    SessionSettings,
    SystemMessageSettings,
    read_agents,
    read_budget,
    read_continues,
    read_features,
    read_system_message,
    read_vision,
    resolve_folders,
)


class Changes(msgspec.Struct, kw_only=True, rename="camel"):
    """The settings of an open session that a client may change; None leaves one as it is."""

    ask_user_disabled: bool | None = None
    additional_directories: tuple[str, ...] | None = None
    agent: str | None = None
    agent_directories: tuple[str, ...] | None = None
    autopilot: AutopilotSettings | None = None
    available_tools: tuple[str, ...] | None = None
    client_name: str | None = None
    custom_agents: tuple[JsonObject, ...] | None = None
    disabled_mcp_servers: tuple[str, ...] | None = None
    disabled_skills: tuple[str, ...] | None = None
    enable_on_demand_instruction_discovery: bool | None = None
    enable_skills: bool | None = None
    enable_streaming: bool | None = None
    enable_citations: bool | None = None
    excluded_builtin_agents: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] | None = None
    feature_flags: JsonObject | None = None
    instruction_directories: tuple[str, ...] | None = None
    mcp_servers: JsonObject | None = None
    model: str | None = None
    model_capabilities_overrides: JsonObject | None = None
    organization_custom_instructions: str | None = None
    plugin_directories: tuple[str, ...] | None = None
    provider: ProviderSettings | None = None
    reasoning_effort: str | None = None
    reasoning_summary: Literal["none", "concise", "detailed"] | None = None
    sandbox_config: SandboxConfig | None = None
    session_limits: LimitSettings | None = None
    skill_directories: tuple[str, ...] | None = None
    skip_custom_instructions: bool | None = None
    system_message: SystemMessageSettings | None = None
    working_directory: str | None = None


def changes_of(settings: SessionSettings) -> Changes:
    """Return the changes that a client asks for when it joins an open session."""
    same = {
        name: getattr(settings, name)
        for name in Changes.__struct_fields__
        if name in SessionSettings.__struct_fields__
    }
    same |= {
        name: same[name] or None
        for name in (
            "additional_directories",
            "enable_citations",
            "excluded_builtin_agents",
            "excluded_tools",
        )
    }
    return Changes(
        **{**same, "skip_custom_instructions": settings.skip_custom_instructions or None},
        enable_streaming=settings.streaming or None,
        model_capabilities_overrides=settings.model_capabilities,
    )


async def apply_changes(hosted: HostedSession, changes: Changes) -> None:
    """Apply changes to an open session; they count from the next prompt on."""
    controls = hosted.live.controls
    _check_sandbox(hosted, changes)
    if changes.working_directory is not None:
        await hosted.set_folder(require_folder(changes.working_directory, controls.options.cwd))
    if fields := _changed_options(hosted, changes):
        controls.change_options(**fields)
    if changes.additional_directories is not None:
        folders = require_folders(changes.additional_directories, controls.options.cwd)
        permissions = controls.options.permissions
        controls.set_permissions(msgspec.structs.replace(permissions, add_dirs=folders))
    if changes.skip_custom_instructions is not None and controls.setup.customizations is not None:
        controls.setup.customizations.loads_instructions = not changes.skip_custom_instructions
    if "customize" in fields or changes.skip_custom_instructions is not None:
        controls.reload()
    if changes.mcp_servers:
        controls.add_servers(changes.mcp_servers)
    if changes.agent is not None:
        controls.set_agent(changes.agent)
    _change_replies(hosted, changes)
    await _change_model(hosted, changes)
    _change_limits(hosted, changes)


def _check_sandbox(hosted: HostedSession, changes: Changes) -> None:
    """Raise if the client wants another sandbox: it is built with the session."""
    options = hosted.live.controls.options
    wanted = changes.sandbox_config
    if wanted is None or (not wanted.enabled and not options.sandbox):
        return
    if not options.sandbox or read_sandbox(wanted) != options.sandbox_settings:
        raise ConfigurationError(
            "The sandbox of an open session cannot be changed; give sandboxConfig when the "
            "session is created, or resumed after it was closed."
        )


def _change_limits(hosted: HostedSession, changes: Changes) -> None:
    controls = hosted.live.controls
    limits = controls.options.limits
    if changes.session_limits is not None:
        max_usd = read_budget(changes.session_limits)
        limits = msgspec.structs.replace(limits, max_usd=max_usd, in_credits=True)
    if changes.autopilot is not None:
        continues = read_continues(changes.autopilot, limits)
        limits = msgspec.structs.replace(limits, max_continues=continues)
    if limits is not controls.options.limits:
        controls.set_limits(limits)


def _change_replies(hosted: HostedSession, changes: Changes) -> None:
    controls = hosted.live.controls
    if changes.enable_streaming is not None:
        controls.set_streaming(changes.enable_streaming)
    if changes.enable_citations is not None:
        controls.set_citations(changes.enable_citations)
    if changes.reasoning_summary is not None:
        controls.set_reasoning_summary(changes.reasoning_summary != "none")


def _changed_options(hosted: HostedSession, changes: Changes) -> dict[str, Any]:
    """Return the changed fields of `SessionOptions`."""
    options = hosted.live.controls.options
    fields: dict[str, Any] = {
        name: value
        for name in ("available_tools", "excluded_tools", "client_name")
        if (value := getattr(changes, name)) is not None
    }
    if changes.ask_user_disabled:
        excluded = fields.get("excluded_tools", options.excluded_tools)
        fields["excluded_tools"] = (*excluded, "ask_user")
    if changes.system_message is not None:
        fields["system_message"] = read_system_message(changes.system_message)
    fields |= _changed_customizations(hosted, changes)
    return fields


def _changed_customizations(hosted: HostedSession, changes: Changes) -> dict[str, Any]:
    controls = hosted.live.controls
    given = controls.options.customize

    def resolve(folders: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if folders is None else resolve_folders(controls.options.cwd, folders)

    features = read_features(changes.feature_flags)
    plugins = dict.fromkeys((*given.plugin_dirs, *(resolve(changes.plugin_directories) or ())))
    servers = dict.fromkeys((*given.disabled_servers, *(changes.disabled_mcp_servers or ())))
    customize = {
        name: value
        for name, value in (
            ("agents", read_agents(changes.custom_agents) if changes.custom_agents else None),
            ("excluded_agents", changes.excluded_builtin_agents),
            ("agent_directories", resolve(changes.agent_directories)),
            ("skill_directories", resolve(changes.skill_directories)),
            ("plugin_dirs", tuple(plugins) if changes.plugin_directories else None),
            ("loads_skills", changes.enable_skills),
            ("loads_touched_instructions", changes.enable_on_demand_instruction_discovery),
            ("disabled_servers", tuple(servers) if changes.disabled_mcp_servers else None),
            ("features", {**given.features, **features} if features else None),
            ("disabled_skills", changes.disabled_skills),
            ("instruction_directories", resolve(changes.instruction_directories)),
            ("organization_instructions", changes.organization_custom_instructions),
        )
        if value is not None
    }
    return {"customize": controls.with_customize(**customize)} if customize else {}


async def _change_model(hosted: HostedSession, changes: Changes) -> None:
    controls, effort = hosted.live.controls, changes.reasoning_effort
    if changes.provider is not None:
        hosted.catalog = SessionCatalog(
            controls.setup.env, provider=changes.provider, get_token=hosted.get_token
        )
        hosted.live.hide(changes.provider.keys())
    model = changes.model
    if changes.provider is not None or (model and model != hosted.live.model):
        if model is not None and not model.strip():
            raise UsageError("model is empty; name a model.")
        wanted = model or hosted.live.model or None
        found = hosted.catalog.find(wanted) if hosted.catalog else None
        if found is not None:
            controls.set_model(found[1], effort=effort, provider=found[0])
        elif wanted is not None:
            await controls.switch_model(wanted, effort=effort)
    elif effort is not None:
        controls.set_effort(effort)
    if changes.model_capabilities_overrides is not None:
        controls.set_vision(read_vision(changes.model_capabilities_overrides))
