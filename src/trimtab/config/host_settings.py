"""The settings of a host of sessions, below `host.` in a settings file."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trimtab.config.settings import Settings


class HostSetting(msgspec.Struct, frozen=True):
    """A switch. `unused` says why it has no effect in this program, if it has none."""

    name: str
    default: bool
    help: str
    unused: str = ""


HOST_SETTINGS = {
    setting.name: setting
    for setting in (
        HostSetting(
            "mcp.enabled",
            True,
            "`trimtab mcp gateway` serves the configured MCP servers to other programs.",
        ),
        HostSetting(
            "branchSupport.enabled",
            False,
            "`/branch` lists, makes and switches branches of git.",
        ),
        HostSetting(
            "showExternalSessions",
            True,
            "The pickers of the terminal, editors and SDK clients list sessions that other "
            "programs made. In VS Code the default is false; see decision 0022.",
        ),
        HostSetting(
            "planExitMode.enabled",
            True,
            "A finished plan comes with choices how to go on; without them the session stays in "
            "plan mode until you change the mode.",
        ),
        HostSetting("planCommand.enabled", True, "`/plan` switches to plan mode."),
        HostSetting(
            "aiGenerateBranchNames.enabled",
            True,
            "The model names the branch of a pull request and of a worktree that you did not name; "
            "without it the name is made from your words, or from the id of the session.",
        ),
        HostSetting(
            "forkSessions.enabled",
            True,
            "Sessions can be copied: `trimtab sessions fork ID`, editors, SDK clients.",
        ),
        HostSetting(
            "isolationOption.enabled",
            True,
            "`/worktree` starts a session in a git worktree of its own. The flag `--worktree` "
            "works in any case.",
        ),
        HostSetting(
            "autoCommit.enabled",
            True,
            "The changes of each turn are committed in the session's worktree, as without "
            "`--no-auto-commit`.",
        ),
        HostSetting(
            "sessionController.enabled",
            False,
            "VS Code's newer interface for sessions.",
            "it chooses between two interfaces inside VS Code",
        ),
        HostSetting(
            "thinkingEffort.enabled",
            True,
            "The reasoning effort can be chosen for each model: `/effort`, and the option of "
            "editors.",
        ),
        HostSetting(
            "sessionControllerForSessionsApp.enabled",
            False,
            "The same for VS Code's Sessions window.",
            "it chooses between two interfaces inside VS Code",
        ),
        HostSetting(
            "terminalLinks.enabled",
            True,
            "Addresses and paths in the terminal are links (OSC 8), where the terminal has them.",
        ),
    )
}


def is_enabled(settings: "Settings | None", name: str) -> bool:
    """Return the value of a switch; its default if there are no settings."""
    default = HOST_SETTINGS[name].default
    return default if settings is None else settings.get(f"host.{name}", bool, default)
