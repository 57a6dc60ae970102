"""The flags of a run as data, for parsing, help and reference documentation."""

from typing import Literal

import msgspec

Kind = Literal["switch", "value", "optional", "list", "number", "money", "duration"]


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag. `optional` may stand without a value; `list` may be repeated.

    `refused` is the reason why a flag of Copilot CLI cannot be used; `ignored` the reason why it
    has no effect, which an event reports.
    """

    names: tuple[str, ...]
    group: str
    help: str
    kind: Kind = "switch"
    choices: tuple[str, ...] = ()
    metavar: str = ""
    hidden: bool = False
    refused: str = ""
    ignored: str = ""

    @property
    def key(self) -> str:
        return self.names[-1].lstrip("-").replace("-", "_")


REFUSED: tuple[tuple[str, Kind, str], ...] = (
    ("--share-gist", "switch", "gists need GitHub's service; use --share=FILE"),
    ("--connect", "optional", "remote sessions need GitHub's service; use --resume"),
    ("--remote", "switch", "remote steering needs GitHub's service; leave it out"),
    ("--banner", "switch", "there is no banner; leave it out"),
    ("--mouse", "optional", "there is no full-screen interface; leave it out"),
    ("--bash-env", "optional", "commands never read BASH_ENV; leave it out"),
)
"""Flags of Copilot CLI that this program knows and cannot serve, each with the reason."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
RUNTIMES = ("claude", "codex", "copilot", "opencode", "gemini", "pi", "trimtab")
"""The last means our own loop, for a session that a runtime answered before."""
LEVELS = ("none", "error", "warning", "info", "debug", "all", "default")
FLAGS: tuple[Flag, ...] = (
    Flag(names=("-h", "--help"), group="prompt", help="Show this help."),
    Flag(names=("-v", "--version"), group="prompt", help="Print the version."),
    Flag(
        names=("-p", "--prompt"),
        group="prompt",
        kind="value",
        metavar="TEXT",
        help="Answer TEXT without asking any questions, then exit. Stdin is not read.",
    ),
    Flag(
        names=("-i", "--interactive"),
        group="prompt",
        kind="value",
        metavar="TEXT",
        help="Answer TEXT, then continue in the terminal.",
    ),
    Flag(
        names=("--screen-reader", "--plain"),
        group="prompt",
        help="Converse line by line, without live rows: for screen readers and logs.",
    ),
    Flag(
        names=("--attachment",),
        group="prompt",
        kind="list",
        metavar="PATH",
        help="Attach a file, directory or image, or the clipboard. May be repeated.",
    ),
    Flag(
        names=("-s", "--silent"),
        group="prompt",
        help="Print only the answer: no tool calls, no statistics.",
    ),
    Flag(
        names=("--output-format",),
        group="prompt",
        kind="value",
        choices=("text", "json"),
        help="text (default), or json: one event per line, ending with a result.",
    ),
    Flag(
        names=("--stream",),
        group="prompt",
        kind="value",
        choices=("on", "off"),
        help="Stream answers as they are generated (default on).",
    ),
    Flag(
        names=("--share",),
        group="prompt",
        kind="optional",
        metavar="PATH",
        help="Write the session as Markdown to PATH at the end.",
    ),
    Flag(
        names=("--usage-output-file",),
        group="prompt",
        kind="value",
        metavar="PATH",
        help="Write the usage figures as JSON to PATH at the end.",
    ),
    Flag(
        names=("--no-ask-user",),
        group="prompt",
        help="Never ask the user; deny whatever would need an answer.",
    ),
    Flag(
        names=("--model",),
        group="model",
        kind="value",
        metavar="ID",
        help="The model to use: its id, or provider/id (see trimtab models).",
    ),
    Flag(
        names=("--fallback-model",),
        group="model",
        kind="list",
        metavar="IDS",
        help="Models to fall back to when the first cannot answer (comma-separated or repeated).",
    ),
    Flag(
        names=("--offline",),
        group="model",
        help="Contact nothing but this machine, or fail.",
    ),
    Flag(
        names=("--reasoning-effort", "--effort"),
        group="model",
        kind="value",
        choices=EFFORTS,
        help="How much the model reasons; max is the highest level that the model has.",
    ),
    Flag(
        names=("--agent-runtime",),
        group="model",
        kind="value",
        choices=RUNTIMES,
        help="Let another agent's program do the work, with our log, limits, undo and rules.",
    ),
    Flag(
        names=("--runtime-models",),
        group="model",
        kind="value",
        choices=("own", "host"),
        help="Models that the runtime uses: its own (default), or those of trimtab models.",
    ),
    Flag(
        names=("--enable-reasoning-summaries",),
        group="model",
        help="Request reasoning summaries, even without --effort (OpenAI Responses).",
    ),
    Flag(
        names=("--mode",),
        group="mode",
        kind="value",
        choices=("interactive", "plan", "autopilot"),
        help="How the agent works.",
    ),
    Flag(
        names=("--plan",),
        group="mode",
        help="Same as --mode plan: investigate, change nothing. With --mode autopilot: plan first, "
        "then carry the plan out.",
    ),
    Flag(
        names=("--autopilot",),
        group="mode",
        help="Same as --mode autopilot: continue until the task is complete.",
    ),
    Flag(
        names=("--fleet",),
        group="fleet",
        help="Split the prompt into todos and do them in parallel, each in a git worktree, merged "
        "into one branch (see trimtab fleet).",
    ),
    Flag(
        names=("--workers",),
        group="fleet",
        kind="number",
        metavar="N",
        help="With --fleet: the number of agents that work at the same time (default 4).",
    ),
    Flag(
        names=("--check",),
        group="fleet",
        kind="list",
        metavar="CMD",
        help="With --fleet: a command that must pass after each merge. May be repeated.",
    ),
    Flag(
        names=("--land",),
        group="fleet",
        help="With --fleet: fast-forward your branch when everything is merged and green.",
    ),
    Flag(
        names=("--max-autopilot-continues",),
        group="mode",
        kind="number",
        metavar="N",
        help="How often autopilot may send the model back to work (default 5).",
    ),
    Flag(
        names=("--max-turns",),
        group="limit",
        kind="number",
        metavar="N",
        help="End after N model calls (exit code 6).",
    ),
    Flag(
        names=("--max-tokens",),
        group="limit",
        kind="number",
        metavar="N",
        help="Spend at most N tokens, input and output together (exit code 5).",
    ),
    Flag(
        names=("--max-budget-usd",),
        group="limit",
        kind="money",
        metavar="USD",
        help="Spend at most this much, by the price table (exit code 5).",
    ),
    Flag(
        names=("--max-ai-credits",),
        group="limit",
        kind="money",
        metavar="N",
        help="Spend at most N AI credits, each worth 0.01 USD (exit code 5).",
    ),
    Flag(
        names=("--deadline",),
        group="limit",
        kind="duration",
        metavar="TIME",
        help="End when TIME is up: 90s, 20m, 1h30m or seconds (exit code 6).",
    ),
    Flag(
        names=("--max-repeats",),
        group="limit",
        kind="number",
        metavar="N",
        help="End when one call had one result N times and nothing changed (exit code 3; default "
        "25 where nobody watches and in autopilot; 0 for never).",
    ),
    Flag(
        names=("--resume",),
        group="session",
        kind="optional",
        metavar="ID",
        help="Resume a session by its id, at least 7 characters of it, or its name.",
    ),
    Flag(
        names=("--continue",),
        group="session",
        help="Resume the latest session of this directory.",
    ),
    Flag(
        names=("--session-id",),
        group="session",
        kind="value",
        metavar="UUID",
        help="Resume the session with this id, or create it.",
    ),
    Flag(
        names=("-w", "--worktree"),
        group="session",
        kind="optional",
        metavar="NAME",
        help="Work in a git worktree and branch of its own.",
    ),
    Flag(
        names=("--worktree-changes",),
        group="session",
        kind="value",
        choices=("leave", "copy"),
        help="Leave uncommitted changes out of a new worktree (default), or copy them.",
    ),
    Flag(
        names=("--no-auto-commit",),
        group="session",
        help="With --worktree: leave the changes of each turn uncommitted.",
    ),
    Flag(
        names=("-n", "--name"),
        group="session",
        kind="value",
        metavar="NAME",
        help="Name the new session.",
    ),
    Flag(names=("-C", "--cwd"), group="session", kind="value", metavar="DIR", help="Work in DIR."),
    Flag(
        names=("--allow-all", "--yolo"),
        group="permission",
        help="Allow all tools, paths and addresses.",
    ),
    Flag(names=("--allow-all-tools",), group="permission", help="Allow all tools without asking."),
    Flag(names=("--allow-all-paths",), group="permission", help="Allow every path."),
    Flag(names=("--allow-all-urls",), group="permission", help="Allow every address."),
    Flag(
        names=("--allow-tool",),
        group="permission",
        kind="list",
        metavar="RULE",
        help="Allow what a rule covers, such as 'shell(git:*)' or write. May be repeated.",
    ),
    Flag(
        names=("--deny-tool",),
        group="permission",
        kind="list",
        metavar="RULE",
        help="Forbid what a rule covers, whatever else is allowed. May be repeated.",
    ),
    Flag(
        names=("--allow-url",),
        group="permission",
        kind="list",
        metavar="PATTERN",
        help="Allow addresses: example.com or 'https://*.example.com'. May be repeated.",
    ),
    Flag(
        names=("--deny-url",),
        group="permission",
        kind="list",
        metavar="PATTERN",
        help="Forbid addresses, in commands too. May be repeated.",
    ),
    Flag(
        names=("--allow-destructive",),
        group="permission",
        help="Allow what cannot be undone, such as recursive deletion or rewriting history.",
    ),
    Flag(
        names=("--add-dir",),
        group="permission",
        kind="list",
        metavar="DIR",
        help="Also allow paths in DIR. May be repeated.",
    ),
    Flag(
        names=("--disallow-temp-dir",),
        group="permission",
        help="Do not allow paths in the temp directory.",
    ),
    Flag(
        names=("--trust-folder",),
        group="permission",
        help="Use the hooks, servers, skills and settings of this folder in this run.",
    ),
    Flag(
        names=("--sandbox",),
        group="permission",
        help="Run commands in a sandbox: only the workspace and temp are writable, no network.",
    ),
    Flag(
        names=("--no-sandbox",),
        group="permission",
        help="Turn the sandbox off, whatever the settings say.",
    ),
    Flag(
        names=("--secret-env-vars",),
        group="permission",
        kind="list",
        metavar="NAMES",
        help="Hide these variables from commands, and their values in all output.",
    ),
    Flag(
        names=("--available-tools",),
        group="permission",
        kind="list",
        metavar="NAMES",
        help="Offer only these tools (comma-separated or repeated).",
    ),
    Flag(
        names=("--excluded-tools",),
        group="permission",
        kind="list",
        metavar="NAMES",
        help="Do not offer these tools (comma-separated or repeated).",
    ),
    Flag(
        names=("--agent",),
        group="customization",
        kind="value",
        metavar="NAME",
        help="Work as this custom agent: its prompt, its tools, its model (see trimtab agents).",
    ),
    Flag(
        names=("--additional-mcp-config",),
        group="customization",
        kind="list",
        metavar="JSON",
        help="Add MCP servers, as JSON or @FILE; they override all others. May be repeated.",
    ),
    Flag(
        names=("--plugin-dir",),
        group="customization",
        kind="list",
        metavar="DIR",
        help="Use the plugin in DIR in this session. May be repeated.",
    ),
    Flag(
        names=("--no-custom-instructions",),
        group="customization",
        help="Do not load AGENTS.md or other instruction files.",
    ),
    Flag(
        names=("--disable-builtin-mcps",),
        group="customization",
        help="Do not use the built-in MCP server (GitHub's).",
    ),
    Flag(
        names=("--disable-mcp-server",),
        group="customization",
        kind="list",
        metavar="NAME",
        help="Do not use an MCP server in this session. May be repeated.",
    ),
    Flag(
        names=("--add-github-mcp-tool",),
        group="customization",
        kind="list",
        metavar="NAME",
        help="Add a tool of GitHub's MCP server. May be repeated.",
    ),
    Flag(
        names=("--add-github-mcp-toolset",),
        group="customization",
        kind="list",
        metavar="NAME",
        help="Add a group of tools of GitHub's MCP server. May be repeated.",
    ),
    Flag(
        names=("--enable-all-github-mcp-tools",),
        group="customization",
        help="Use all tools of GitHub's MCP server, including those that make changes.",
    ),
    Flag(
        names=("--log-level",),
        group="output",
        kind="value",
        choices=LEVELS,
        help="How much to write to the log file (default: errors).",
    ),
    Flag(
        names=("--log-dir",),
        group="output",
        kind="value",
        metavar="DIR",
        help="Write log files to DIR.",
    ),
    Flag(names=("--no-color",), group="output", help="Print without colours."),
    Flag(names=("--plain-diff",), group="output", help="Show diffs without colours."),
    Flag(
        names=("--config-dir",),
        group="output",
        kind="value",
        metavar="DIR",
        hidden=True,
        help="Same as COPILOT_HOME=DIR.",
    ),
    Flag(
        names=("--no-auto-update",),
        group="output",
        hidden=True,
        help="Accepted for compatibility.",
        ignored="this program never updates itself",
    ),
    Flag(names=("--experimental",), group="mode", help="Turn experimental features on."),
    Flag(names=("--no-experimental",), group="mode", help="Turn experimental features off."),
    Flag(
        names=("--feature",),
        group="mode",
        kind="list",
        metavar="NAME=on|off",
        help="Turn a feature on or off by name (see trimtab flags). May be repeated.",
    ),
    Flag(
        names=("--server", "--headless"),
        group="server",
        help="Serve the Copilot SDK protocol instead of answering a prompt.",
    ),
    Flag(
        names=("--acp",),
        group="server",
        help="Serve an editor on the standard streams by the Agent Client Protocol.",
    ),
    Flag(names=("--stdio",), group="server", help="Serve on the standard streams."),
    Flag(
        names=("--port",),
        group="server",
        kind="number",
        metavar="N",
        help="Serve on this port of this machine (default: any free one).",
    ),
    Flag(
        names=("--auth-token-env",),
        group="server",
        kind="value",
        metavar="NAME",
        help="Take the GitHub token from this variable.",
    ),
    Flag(
        names=("--no-auto-login",),
        group="server",
        help="Do not use GitHub tokens found on this machine.",
    ),
    Flag(
        names=("--session-idle-timeout",),
        group="server",
        kind="number",
        metavar="SECONDS",
        help="Close sessions that have been idle this long.",
    ),
    *(
        Flag(names=(name,), group="other", kind=kind, hidden=True, help="", refused=reason)
        for name, kind, reason in REFUSED
    ),
)
