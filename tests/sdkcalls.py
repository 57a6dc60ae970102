"""Calls of the official clients, as a table: each row is a call and what the answer holds.

A scenario is a list of steps in one session. A step is a method of `session.rpc` (or `server.` and
a method of `client.rpc`), its parameters as sent, and the fields the answer must have; a string
instead of fields is a part of the error's text. `{cwd}`, `{id}` and `{home}` stand for the folder,
the session and the home of the test. The step `say` sends a prompt; replies of the model that come
before `Done.` follow it.
"""

from typing import Any

from sdkkit import use

Step = tuple[Any, ...]
WRITE = use("create", path="made.txt", file_text="one\ntwo\n")
SQL = use(
    "sql",
    description="todos",
    query="INSERT INTO todos (id, title, status) VALUES ('a', 'Caulk', 'pending'), "
    "('b', 'Paint', 'done'); INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a')",
)
SKILL = "---\nname: knots\ndescription: Ties knots.\n---\nTie it."
AGENTS = [{"name": "mate", "description": "Helps.", "prompt": "Help."}]
DONE = {"text": "Done."}

SCENARIOS: dict[str, list[Step]] = {
    "a snapshot": [
        (
            "metadata.snapshot",
            {},
            {"sessionId": "{id}", "workingDirectory": "{cwd}", "currentMode": "interactive"},
        )
    ],
    "idle": [
        ("metadata.is_processing", {}, {"processing": False}),
        ("metadata.activity", {}, {"hasActiveWork": False, "abortable": False}),
    ],
    "no context before the first call": [
        (
            "metadata.context_info",
            {"promptTokenLimit": 1000, "outputTokenLimit": 100, "selectedModel": "m"},
            {"contextInfo": None},
        ),
        ("metadata.get_context_attribution", {}, {"contextAttribution": None}),
    ],
    "context after a call": [
        ("say",),
        (
            "metadata.context_info",
            {"promptTokenLimit": 1000, "outputTokenLimit": 100, "selectedModel": "m"},
            {"contextInfo": {"modelName": "m", "promptTokenLimit": 1000}},
        ),
        (
            "metadata.get_context_attribution",
            {},
            {"contextAttribution": {"modelId": "scripted", "compactions": {"count": 0}}},
        ),
    ],
    "tokens of another model": [
        ("say",),
        ("metadata.recompute_context_tokens", {"modelId": "gpt-4.1"}, {"totalTokens": ...}),
    ],
    "heaviest messages": [
        ("say",),
        ("metadata.get_context_heaviest_messages", {"limit": 1}, {"messages": [{"tokens": ...}]}),
    ],
    "no heaviest messages": [
        ("metadata.get_context_heaviest_messages", {"limit": 0}, "at least 1"),
    ],
    "another folder": [
        ("metadata.set_working_directory", {"workingDirectory": "/"}, {"workingDirectory": "/"}),
        ("metadata.snapshot", {}, {"workingDirectory": "/"}),
    ],
    "a folder that does not exist": [
        (
            "metadata.set_working_directory",
            {"workingDirectory": "/no/such"},
            "Directory does not exist",
        ),
        ("metadata.snapshot", {}, {"workingDirectory": "{cwd}"}),
    ],
    "a folder by options": [
        ("options.update", {"workingDirectory": "/"}, {"success": True}),
        ("metadata.snapshot", {}, {"workingDirectory": "/"}),
    ],
    "options without effect": [
        ("options.update", {"verbosity": "high", "coauthorEnabled": True}, {"success": True}),
    ],
    "tools by options": [
        ("options.update", {"availableTools": ["view"]}, {"success": True}),
        ("say",),
        ("tools.get_current_metadata", {}, {"tools": [{"name": "view"}]}),
    ],
    "an effort by options": [
        ("options.update", {"reasoningEffort": "high"}, {"success": True}),
        ("model.get_current", {}, {"modelId": "scripted", "reasoningEffort": "high"}),
    ],
    "a model by options": [
        ("options.update", {"model": "other"}, {"success": True}),
        ("model.get_current", {}, {"modelId": "other"}),
    ],
    "modes": [
        ("mode.get", {}, "value:interactive"),
        ("mode.set", {"mode": "plan"}, ...),
        ("mode.get", {}, "value:plan"),
        ("mode.set", {"mode": "autopilot"}, ...),
        ("mode.get", {}, "value:autopilot"),
    ],
    "a name": [
        ("name.get", {}, {"name": None}),
        ("name.set", {"name": "Refit"}, ...),
        ("name.get", {}, {"name": "Refit"}),
        ("name.set_auto", {"summary": "Other"}, {"applied": False}),
        ("name.get", {}, {"name": "Refit"}),
    ],
    "a name made up": [
        ("name.set_auto", {"summary": "Caulking  the   hull"}, {"applied": True}),
        ("name.get", {}, {"name": "Caulking the hull"}),
    ],
    "an empty name": [("name.set", {"name": ""}, "empty")],
    "a name of spaces": [("name.set", {"name": "   "}, "empty")],
    "a long name": [("name.set", {"name": "x" * 101}, "100")],
    "a plan": [
        ("plan.read", {}, {"exists": False}),
        ("plan.update", {"content": "# Plan\n"}, ...),
        ("plan.read", {}, {"exists": True, "content": "# Plan\n"}),
        ("plan.delete", {}, ...),
        ("plan.read", {}, {"exists": False}),
    ],
    "a plan deleted twice": [("plan.delete", {}, ...), ("plan.delete", {}, ...)],
    "todos": [
        ("say", SQL),
        (
            "plan.read_sql_todos",
            {},
            {"rows": [{"id": "a", "title": "Caulk"}, {"id": "b", "status": "done"}]},
        ),
        (
            "plan.read_sql_todos_with_dependencies",
            {},
            {"dependencies": [{"todoId": "b", "dependsOn": "a"}]},
        ),
    ],
    "no todos": [
        ("plan.read_sql_todos", {}, {"rows": []}),
        ("plan.read_sql_todos_with_dependencies", {}, {"rows": [], "dependencies": []}),
    ],
    "files": [
        ("workspaces.list_files", {}, {"files": []}),
        ("workspaces.create_file", {"path": "a/b.txt", "content": "hold"}, ...),
        ("workspaces.list_files", {}, {"files": ["a/b.txt"]}),
        ("workspaces.read_file", {"path": "a/b.txt"}, {"content": "hold"}),
        ("workspaces.remove_path", {"path": "a"}, ...),
        ("workspaces.list_files", {}, {"files": []}),
    ],
    "a file that does not exist": [("workspaces.read_file", {"path": "no.txt"}, "No such file")],
    "a file outside": [
        ("workspaces.read_file", {"path": "../events.jsonl"}, "workspace files directory"),
        ("workspaces.create_file", {"path": "/x", "content": ""}, "workspace files directory"),
        ("workspaces.remove_path", {"path": ".."}, "workspace files directory"),
        ("workspaces.create_directory", {"path": "../x"}, "workspace files directory"),
    ],
    "a folder of files": [
        ("workspaces.create_directory", {"path": "deep/er"}, ...),
        ("workspaces.create_file", {"path": "deep/er/f", "content": ""}, ...),
        ("workspaces.list_files", {}, {"files": ["deep/er/f"]}),
    ],
    "a paste": [
        ("workspaces.save_large_paste", {"content": "abc"}, {"saved": {"sizeBytes": 3}}),
        ("workspaces.list_files", {}, {"files": [...]}),
    ],
    "the workspace": [
        ("workspaces.get_workspace", {}, {"workspace": {"id": "{id}", "cwd": "{cwd}"}}),
    ],
    "no checkpoints": [
        ("workspaces.list_checkpoints", {}, {"checkpoints": []}),
        ("workspaces.read_checkpoint", {"number": 1}, {"content": None}),
    ],
    "checkpoints": [
        ("say",),
        ("say",),
        ("say",),
        ("history.compact", {}, {"success": True}),
        (
            "workspaces.list_checkpoints",
            {},
            {"checkpoints": [{"number": 1, "title": "Checkpoint"}]},
        ),
        ("workspaces.read_checkpoint", {"number": 1}, {"content": ...}),
    ],
    "differences of a session": [
        ("say", WRITE),
        (
            "workspaces.diff",
            {"mode": "session"},
            {
                "mode": "session",
                "isFallback": False,
                "changes": [{"changeType": "added", "path": "{cwd}/made.txt"}],
            },
        ),
    ],
    "no differences": [
        ("workspaces.diff", {"mode": "session"}, {"changes": []}),
        ("workspaces.diff", {"mode": "branch"}, {"isFallback": True, "mode": "session"}),
    ],
    "models": [
        ("model.get_current", {}, {"modelId": "scripted"}),
        ("model.list", {}, {"list": ...}),
        ("model.switch_to", {"modelId": "other-model"}, {"modelId": "other-model"}),
        ("model.get_current", {}, {"modelId": "other-model"}),
    ],
    "an effort": [
        ("model.set_reasoning_effort", {"reasoningEffort": "low"}, {"reasoningEffort": "low"}),
        ("model.get_current", {}, {"reasoningEffort": "low"}),
    ],
    "no model": [("model.switch_to", {"modelId": ""}, "empty")],
    "an endpoint without leave": [
        ("provider.get_endpoint", {}, "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"),
    ],
    "agents": [
        ("agent.list", {}, {"agents": [{"name": "mate"}]}),
        ("agent.get_current", {}, {}),
        ("agent.select", {"name": "mate"}, {"agent": {"name": "mate"}}),
        ("agent.get_current", {}, {"agent": {"name": "mate"}}),
        ("agent.deselect", {}, ...),
        ("agent.get_current", {}, {}),
    ],
    "an unknown agent": [("agent.select", {"name": "bosun"}, "bosun")],
    "agents again": [("agent.reload", {}, {"agents": [{"name": "mate"}]})],
    "skills": [
        ("skills.list", {}, {"skills": [{"name": "knots", "enabled": True}]}),
        ("skills.disable", {"name": "knots"}, ...),
        ("skills.list", {}, {"skills": [{"name": "knots", "enabled": False}]}),
        ("skills.enable", {"name": "knots"}, ...),
        ("skills.reload", {}, ...),
        ("skills.ensure_loaded", {}, ...),
        ("skills.list", {}, {"skills": [{"name": "knots", "enabled": True}]}),
    ],
    "an invoked skill": [
        ("skills.get_invoked", {}, {"skills": []}),
        ("say", use("skill", skill="knots")),
        ("skills.get_invoked", {}, {"skills": [{"name": "knots"}]}),
    ],
    "a skill that is not there yet": [
        ("skills.enable", {"name": "splices"}, ...),
        ("skills.disable", {"name": "splices"}, ...),
    ],
    "instructions": [("instructions.get_sources", {}, {"sources": []})],
    "tools": [
        ("tools.initialize_and_validate", {}, ...),
        ("tools.get_current_metadata", {}, {"tools": ...}),
    ],
    "tools of the server": [("server.tools.list", {}, {"tools": ...})],
    "a queue": [
        ("queue.pending_items", {}, {"items": [], "steeringMessages": []}),
        ("queue.remove_most_recent", {}, {"removed": False}),
        ("queue.clear", {}, ...),
    ],
    "taking back a prompt": [
        (
            "queue.withdraw_message",
            {"messageId": "none", "expectedPrompt": "x"},
            {"removed": False},
        ),
    ],
    "tasks": [
        ("tasks.list", {}, {"tasks": []}),
        ("tasks.cancel", {"id": "none"}, {"cancelled": False}),
        ("tasks.remove", {"id": "none"}, {"removed": False}),
        ("tasks.promote_to_background", {"id": "none"}, {"promoted": False}),
        ("tasks.send_message", {"id": "none", "message": "x"}, {"sent": False}),
        ("tasks.refresh", {}, ...),
        ("tasks.wait_for_pending", {}, ...),
    ],
    "usage": [
        ("usage.get_metrics", {}, {"totalUserRequests": 0, "currentModel": "scripted"}),
        ("say",),
        ("usage.get_metrics", {}, {"totalUserRequests": 1, "lastCallInputTokens": ...}),
    ],
    "code changes": [
        ("say", WRITE),
        ("usage.get_metrics", {}, {"codeChanges": {"linesAdded": 2, "filesModifiedCount": 1}}),
    ],
    "permissions": [
        ("permissions.pending_requests", {}, {"items": []}),
        ("permissions.set_approve_all", {"enabled": True}, {"success": True}),
        ("permissions.set_approve_all", {"enabled": False}, {"success": True}),
        ("permissions.reset_session_approvals", {}, {"success": True}),
    ],
    "paths": [("permissions.paths.list", {}, {"primary": "{cwd}", "directories": ["{cwd}"]})],
    "the event log": [
        ("event_log.tail", {}, {"cursor": ...}),
        ("event_log.read", {"max": 1}, {"events": [{"type": "session.start"}]}),
        ("event_log.read", {"types": ["user.message"]}, {"events": [], "cursorStatus": "ok"}),
        ("event_log.read", {"cursor": "999999"}, {"cursorStatus": "expired"}),
        ("event_log.release_interest", {"handle": "none"}, {"success": False}),
    ],
    "the log backwards": [
        ("log", {"message": "last"}, {"eventId": ...}),
        (
            "event_log.read",
            {"direction": "backward", "max": 1},
            {"events": [{"type": "session.info", "data": {"message": "last"}}]},
        ),
    ],
    "a note": [("log", {"message": "note", "level": "warning"}, {"eventId": ...})],
    "no servers": [
        ("mcp.list", {}, {"servers": []}),
        ("mcp.is_server_running", {"serverName": "none"}, {"running": False}),
        ("mcp.remove_git_hub", {}, {"removed": False}),
        ("mcp.reload", {}, ...),
    ],
    "an unknown server": [
        ("mcp.enable", {"serverName": "none"}, ...),
        ("mcp.disable", {"serverName": "none"}, ...),
        ("mcp.list_tools", {"serverName": "none"}, "none"),
        ("mcp.restart_server", {"serverName": "none"}, "none"),
    ],
    "commands": [
        ("commands.list", {}, {"commands": ...}),
        ("commands.invoke", {"name": "help"}, {"kind": "text"}),
        ("commands.invoke", {"name": "nonsense"}, "nonsense"),
        (
            "commands.execute",
            {"commandName": "none", "args": ""},
            {"error": "No client found for command: none"},
        ),
    ],
    "history": [
        ("say",),
        ("history.list_rewind_points", {}, {"points": [{"userMessage": ...}]}),
        ("history.summarize_for_handoff", {}, {"summary": ...}),
        ("history.cancel_background_compaction", {}, {"cancelled": False}),
        ("history.abort_manual_compaction", {}, {"aborted": False}),
    ],
    "an unknown event": [("history.truncate", {"eventId": "none"}, "Event none not found")],
    "a question that nobody can show": [
        (
            "ui.elicitation",
            {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
            "No client",
        ),
    ],
    "remote control": [
        ("server.sessions.get_remote_control_status", {}, {"status": {"state": "off"}}),
        ("server.sessions.stop_remote_control", {}, {"stopped": False}),
        ("remote.disable", {}, ...),
    ],
    "schedules": [
        ("schedule.list", {}, {"entries": []}),
        ("schedule.stop", {"id": 1}, ...),
    ],
    "visibility": [("visibility.get", {}, {"synced": False})],
    "telemetry": [
        ("telemetry.get_engagement_id", {}, ...),
        ("telemetry.set_feature_overrides", {"features": {"x": "true"}}, ...),
    ],
    "completions": [
        ("completions.get_trigger_characters", {}, {"triggerCharacters": []}),
        ("completions.request", {"text": "@", "offset": 1}, {"items": []}),
    ],
    "extensions": [
        ("extensions.list", {}, {"extensions": []}),
        ("extensions.reload", {}, "not available"),
        ("extensions.enable", {"id": "x"}, "not available"),
    ],
    "canvases": [
        ("canvas.list", {}, {"canvases": []}),
        ("canvas.list_open", {}, {"openCanvases": []}),
        ("canvas.close", {"instanceId": "x"}, "not open"),
    ],
    "a fleet": [("fleet.start", {"prompt": "go"}, {"started": True})],
    "language servers": [("lsp.initialize", {}, ...)],
    "plugins of a session": [
        ("plugins.list", {}, {"plugins": []}),
        ("plugins.reload", {}, ...),
    ],
    "accounts": [
        ("server.account.get_current_auth", {}, {}),
        ("git_hub_auth.get_status", {}, {"isAuthenticated": True}),
    ],
    "sessions": [
        ("say",),
        ("server.sessions.list", {}, {"sessions": [{"sessionId": "{id}"}]}),
        ("server.sessions.find_by_prefix", {"prefix": "{id}"}, {"sessionId": "{id}"}),
        ("server.sessions.find_by_prefix", {"prefix": "zzzzzz"}, {}),
        ("server.sessions.get_sizes", {}, {"sizes": {"{id}": ...}}),
        ("server.sessions.check_in_use", {"sessionIds": ["{id}", "none"]}, {"inUse": ["{id}"]}),
        ("server.sessions.get_last_for_context", {"context": {"cwd": "{cwd}"}}, {}),
        ("server.sessions.save", {"sessionId": "{id}"}, ...),
    ],
    "a fork": [
        ("say",),
        ("server.sessions.fork", {"sessionId": "{id}", "name": "copy"}, {"name": "copy"}),
        ("server.sessions.fork", {"sessionId": "{id}", "toEventId": "no"}, "not found"),
        ("server.sessions.fork", {"sessionId": "none"}, "none"),
    ],
    "deletion": [
        ("server.sessions.bulk_delete", {"sessionIds": ["none"]}, {"freedBytes": {}}),
        (
            "server.sessions.prune_old",
            {"olderThanDays": 1, "dryRun": True},
            {"deleted": [], "candidates": [], "dryRun": True},
        ),
    ],
    "closing twice": [
        ("server.sessions.close", {"sessionId": "{id}"}, ...),
        ("server.sessions.close", {"sessionId": "{id}"}, ...),
        ("name.get", {}, "Session not found"),
    ],
    "servers of a person": [
        ("server.mcp.config.list", {}, {"servers": {}}),
        (
            "server.mcp.config.add",
            {"name": "sea", "config": {"command": "true", "args": [], "tools": ["*"]}},
            ...,
        ),
        ("server.mcp.config.list", {}, {"servers": {"sea": {"command": "true"}}}),
        ("server.mcp.config.disable", {"names": ["sea"]}, ...),
        ("server.mcp.config.enable", {"names": ["sea"]}, ...),
        ("server.mcp.config.remove", {"name": "sea"}, ...),
        ("server.mcp.config.list", {}, {"servers": {}}),
    ],
    "a server of a person that does not exist": [
        ("server.mcp.config.remove", {"name": "none"}, "none"),
    ],
    "settings": [
        ("server.user.settings.get", {}, {"settings": {}}),
        ("server.user.settings.set", {"settings": {"theme": "dark"}}, ...),
    ],
    "discovery": [
        ("server.skills.discover", {}, {"skills": ...}),
        ("server.skills.get_discovery_paths", {}, {"paths": ...}),
        ("server.agents.discover", {}, {"agents": []}),
        ("server.agents.get_discovery_paths", {}, {"paths": ...}),
        ("server.instructions.discover", {}, {"sources": []}),
        ("server.instructions.get_discovery_paths", {}, {"paths": ...}),
        (
            "server.mcp.discover",
            {},
            {"servers": [{"name": "github-mcp-server", "enabled": False}]},
        ),
    ],
    "plugins": [
        ("server.plugins.list", {}, {"plugins": []}),
        ("server.plugins.marketplaces.list", {}, {"marketplaces": []}),
        ("server.plugins.update_all", {}, {"results": []}),
        ("server.plugins.uninstall", {"name": "none"}, "none"),
        ("server.plugins.marketplaces.browse", {"name": "none"}, "none"),
    ],
    "secrets": [
        ("server.secrets.add_filter_values", {"values": ["hunter2-hunter2"]}, {"ok": True}),
        ("log", {"message": "it is hunter2-hunter2"}, {"eventId": ...}),
        (
            "event_log.read",
            {"types": ["session.info"]},
            {"events": [{"data": {"message": "it is ******"}}]},
        ),
    ],
    "commands of a person": [
        (
            "shell.execute_user_requested",
            {"command": "echo aye", "requestId": "r1"},
            {"success": True, "output": "aye\n", "exitCode": 0},
        ),
        ("shell.cancel_user_requested", {"requestId": "r1"}, {"cancelled": False}),
        ("shell.kill", {"processId": "none"}, {"killed": False}),
    ],
}

NEWER = ("taking back a prompt",)
"""Scenarios with methods that the npm client does not have yet."""


def replies_of(steps: list[Step]) -> list[Any]:
    """Return what the model answers in a scenario."""
    replies: list[Any] = []
    for step in steps:
        if step[0] == "say":
            replies += [*step[1:], DONE]
    if any(step[0] == "history.compact" for step in steps):
        replies.append({"text": "<summary>It was so.</summary>"})
    return replies or [DONE]
