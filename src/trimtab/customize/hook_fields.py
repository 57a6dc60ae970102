"""The fields a hook may have in a file, and why some of other vendors have no effect."""

KNOWN = frozenset(
    (
        *("type", "matcher", "hooks", "description", "comment", "statusMessage", "name"),
        *("command", "bash", "powershell", "exec", "args", "cwd", "env", "timeoutSec", "timeout"),
        *("url", "headers", "allowedEnvVars", "prompt"),
    )
)
NO_EFFECT = {
    "if": "a hook runs for everything its matcher names",
    "async": "a hook is waited for until its time is over",
    "asyncRewake": "a hook is waited for until its time is over",
    "once": "a hook runs every time",
    "shell": "commands run in bash",
    "model": "no model is asked by a hook",
    "continueOnBlock": "what a hook says is final",
    "sequential": "hooks of a kind run one after another",
}
