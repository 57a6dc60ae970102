"""Slash commands of Copilot CLI that Trimtab does not have, and what to do instead."""

_GITHUB = "needs a service of GitHub"
_KEYS = (
    "Trimtab has no account of its own: it uses the keys and logins of your environment, which "
    "`trimtab models` lists; /model switches between them."
)
_UPDATE = "Trimtab does not update itself; use the program that you installed it with."
_LOGS = "`trimtab doctor` checks the installation, and /session names the log of this session."

ABSENT = {
    "ahp": "Agents on other hosts are not supported; see /tasks for those of this session.",
    "app": f"/app {_GITHUB}; `trimtab attach ID` opens this session in another terminal.",
    "blame": "Ask in your shell: !!trimtab blame PATH shows which prompt wrote each line.",
    "chronicle": "Earlier sessions: /resume finds them, and `trimtab sessions` shows them.",
    "collect-debug-logs": _LOGS,
    "computer": "Trimtab does not control the desktop; connect an MCP server that does.",
    "delegate": f"/delegate {_GITHUB}; /fleet splits a goal among agents on this machine.",
    "diagnose": _LOGS,
    "downgrade": _UPDATE,
    "experimental": "`trimtab flags` lists the feature flags; /settings feature_flags sets them.",
    "extensions": "There are no extensions; write a plugin, a hook, a skill or an MCP server.",
    "feedback": "Trimtab sends nothing home; write to the maintainers where you got it from.",
    "ide": "Editors start Trimtab themselves: let yours run `trimtab --acp`.",
    "keep-alive": "Trimtab does not keep the machine awake; use `systemd-inhibit` or `caffeinate`.",
    "login": _KEYS,
    "logout": _KEYS,
    "lsp": "Language servers start by themselves; !!trimtab lsp lists them.",
    "memory": "Instructions are files: edit AGENTS.md, or let /init write them.",
    "move": "Uncommitted changes stay where they are; /worktree starts in a worktree of its own.",
    "plugin": "/customizations plugin lists the plugins; `trimtab plugins` changes them.",
    "pr": "Use /create-pr, /create-draft-pr or /update-pr.",
    "refine": "Ctrl-G opens the draft in your editor; to have it improved, send it and say so.",
    "remote": f"/remote {_GITHUB}; `trimtab attach ID` opens this session in another terminal.",
    "restart": "Leave with /exit and start again with `trimtab --continue`.",
    "sandbox": 'Start with --sandbox, or set it: /settings sandbox {"enabled": true}.',
    "statusline": 'Set a command that prints it: /settings statusLine {"command": "PROGRAM"}.',
    "streamer-mode": "Nothing is hidden by itself; choose what stands in the status line with the "
    "setting statusLine.",
    "subagents": "/agent lists the agents, and /tasks those that work; the setting subagents "
    "chooses their models.",
    "terminal-setup": "Nothing needs to be set up: Alt-Enter, Ctrl-J and a backslash before Enter "
    "begin a new line in every terminal.",
    "update": _UPDATE,
    "user": _KEYS,
    "voice": "Trimtab does not listen; use the dictation of your system, which types for you.",
}
"""Name → a sentence that says what to do instead. A skill of the same name is called as ever."""
