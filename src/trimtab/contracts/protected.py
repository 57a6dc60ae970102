"""Names of files and folders that can cause code to run later."""

AGENT_FOLDERS = frozenset(
    (
        *(".claude", ".agents", ".copilot", ".codex", ".cursor", ".gemini", ".windsurf"),
        *(".continue", ".opencode", ".kiro"),
    )
)
"""Folders in which coding agents keep their configuration, in a project and in the home."""

NAMES = AGENT_FOLDERS | frozenset(
    (
        *(".git", ".gitmodules", ".gitconfig", ".mcp.json", ".vscode", ".idea", ".husky", ".envrc"),
        *(".lsp.json",),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"),
        *(".login", ".logout", ".inputrc", ".xprofile", ".xinitrc", ".xsessionrc"),
        *(".aider.conf.yml", ".devcontainer", ".ssh", ".netrc", ".pam_environment"),
        *(".exrc", ".gdbinit", ".lldbinit"),
    )
)
"""Protected in any folder."""

TAILS = frozenset(
    (
        *((".github", "hooks"), (".github", "copilot"), (".github", "agents")),
        *((".github", "skills"), (".github", "prompts"), (".github", "extensions")),
        *(
            (".github", "lsp.json"),
            (".github", "mcp.json"),
            (".github", "tools"),
            (".github", "plugins"),
        ),
        *((".config", "git"), (".config", "fish")),
        *((".config", "autostart"), (".config", "systemd"), ("etc", "profile")),
        *(("etc", "profile.d"), ("etc", "bash.bashrc"), ("etc", "environment")),
    )
)
"""Protected only directly below this folder."""
