"""Translates hook inputs and outputs between Claude Code's names and ours."""

from typing import Any

from trimtab.contracts.events.envelope import JsonObject

EVENTS = {
    "agentStop": "Stop",
    "userPromptSubmitted": "UserPromptSubmit",
}
"""Events whose name is not just ours in PascalCase."""

TOOLS = {
    "bash": "Bash",
    "read_bash": "BashOutput",
    "stop_bash": "KillShell",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "task": "Task",
    "skill": "Skill",
    "ask_user": "AskUserQuestion",
    "exit_plan_mode": "ExitPlanMode",
}

ARGUMENTS = {
    "view": {"path": "file_path"},
    "create": {"path": "file_path", "file_text": "content"},
    "edit": {"path": "file_path", "old_str": "old_string", "new_str": "new_string"},
}

_FIELDS = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "toolInput": "tool_input",
    "toolResult": "tool_response",
    "toolCallId": "tool_use_id",
    "permissionSuggestions": "permission_suggestions",
    "initialPrompt": "initial_prompt",
    "customInstructions": "custom_instructions",
    "agentName": "agent_type",
    "agentId": "agent_id",
    "stopReason": "stop_reason",
    "errorContext": "error_context",
    "transformedPrompt": "transformed_prompt",
    "finalMessage": "last_assistant_message",
}


def event_name(event: str) -> str:
    return EVENTS.get(event) or event[:1].upper() + event[1:]


def tool_name(name: str) -> str:
    return TOOLS.get(name, name)


def served_name(payload: JsonObject) -> str:
    """Return Claude Code's name of an MCP tool; empty for other tools."""
    server, tool = payload.get("mcpServerName"), payload.get("mcpToolName")
    return f"mcp__{server}__{tool}" if server and tool else ""


def translate(event: str, payload: JsonObject) -> JsonObject:
    """Return an input as Claude Code would send it; arguments have both names."""
    tool = str(payload.get("toolName", ""))
    fields = {_FIELDS.get(key, key): value for key, value in payload.items()}
    fields["hook_event_name"] = event_name(event)
    if "tool_name" in fields:
        fields["tool_name"] = served_name(payload) or tool_name(tool)
    if isinstance(arguments := fields.get("tool_input"), dict):
        names = ARGUMENTS.get(tool, {})
        fields["tool_input"] = arguments | {
            names[name]: value for name, value in arguments.items() if name in names
        }
    return fields


def read_arguments(tool: str, given: Any) -> Any:
    """Return arguments that a hook changed, by our names; Claude Code's win if both are set."""
    if not isinstance(given, dict):
        return given
    ours = {theirs: name for name, theirs in ARGUMENTS.get(tool, {}).items()}
    renamed = {ours[name]: value for name, value in given.items() if name in ours}
    return {name: value for name, value in given.items() if name not in ours} | renamed


def read_output(output: JsonObject) -> JsonObject:
    """Return an output with Claude Code's fields replaced by ours."""
    fields = {key: value for key, value in output.items() if key != "hookSpecificOutput"}
    specific = output.get("hookSpecificOutput")
    if isinstance(specific, dict):
        fields |= {key: value for key, value in specific.items() if key != "hookEventName"}
    if isinstance(verdict := fields.get("decision"), dict):  # PermissionRequest
        del fields["decision"]
        fields |= verdict
    if "updatedInput" in fields:
        fields["modifiedArgs"] = fields.pop("updatedInput")
    if "updatedToolOutput" in fields:
        fields["modifiedResult"] = fields.pop("updatedToolOutput")
    if fields.get("decision") == "approve":
        fields["decision"] = "allow"
    return fields
