"""Claude Code's dialect: its names for tools and fields, to and from ours."""

from typing import Any

from trimtab.contracts.events.envelope import JsonObject

EVENTS = {
    "agentStop": "Stop",
    "userPromptSubmitted": "UserPromptSubmit",
}
"""Events whose name there is not ours with a capital letter."""

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
    """What a tool of an MCP server is called there; empty for all others."""
    server, tool = payload.get("mcpServerName"), payload.get("mcpToolName")
    return f"mcp__{server}__{tool}" if server and tool else ""


def translate(event: str, payload: JsonObject) -> JsonObject:
    """An input as Claude Code would write it; arguments go by both names."""
    tool = str(payload.get("toolName", ""))
    said = {_FIELDS.get(key, key): value for key, value in payload.items()}
    said["hook_event_name"] = event_name(event)
    if "tool_name" in said:
        said["tool_name"] = served_name(payload) or tool_name(tool)
    if isinstance(given := said.get("tool_input"), dict):
        names = ARGUMENTS.get(tool, {})
        said["tool_input"] = given | {
            names[name]: value for name, value in given.items() if name in names
        }
    return said


def read_arguments(tool: str, given: Any) -> Any:
    """Arguments a hook changed, by our names; where it gave both, Claude Code's counts."""
    if not isinstance(given, dict):
        return given
    ours = {theirs: mine for mine, theirs in ARGUMENTS.get(tool, {}).items()}
    renamed = {ours[name]: value for name, value in given.items() if name in ours}
    return {name: value for name, value in given.items() if name not in ours} | renamed


def read_output(output: JsonObject) -> JsonObject:
    """An output in Claude Code's words, as one in ours."""
    said = {key: value for key, value in output.items() if key != "hookSpecificOutput"}
    specific = output.get("hookSpecificOutput")
    if isinstance(specific, dict):
        said |= {key: value for key, value in specific.items() if key != "hookEventName"}
    if isinstance(verdict := said.get("decision"), dict):  # PermissionRequest
        del said["decision"]
        said |= verdict
    if "updatedInput" in said:
        said["modifiedArgs"] = said.pop("updatedInput")
    if "updatedToolOutput" in said:
        said["modifiedResult"] = said.pop("updatedToolOutput")
    if said.get("decision") == "approve":
        said["decision"] = "allow"
    return said
