"""Reads the settings of the interface."""

from collections.abc import Mapping

from trimtab.config.host_settings import is_enabled
from trimtab.config.settings import Settings
from trimtab.transports.tui.app import Preferences
from trimtab.transports.tui.links import has_links
from trimtab.transports.tui.theme import NONE, THEMES, choose_theme

NOTIFICATIONS = ("off", "bell", "notification")
EDITOR_MODES = ("emacs", "vi", "vim")


def read_preferences(
    settings: Settings, env: Mapping[str, str], *, no_color: bool, plain_diff: bool, may_ask: bool
) -> Preferences:
    """Return the preferences of the person's settings; unknown values are told and not used."""
    names = {
        "theme": (settings.get("theme", str, "auto"), tuple(THEMES)),
        "notifications": (settings.get("notifications", str, "bell"), NOTIFICATIONS),
        "editorMode": (settings.get("editorMode", str, "emacs"), EDITOR_MODES),
    }
    theme = choose_theme(names["theme"][0], env)
    if no_color or env.get("NO_COLOR"):
        theme = NONE
    status = settings.get("statusLine", dict, {})
    command = status.get("command")
    return Preferences(
        theme=theme,
        vi=names["editorMode"][0] in ("vi", "vim"),
        enter_queues=settings.get("enterQueues", bool, False),
        notify=names["notifications"][0],
        status_command=command if isinstance(command, str) else "",
        may_ask=may_ask,
        plain_diff=plain_diff,
        links=is_enabled(settings, "terminalLinks.enabled") and has_links(env),
        title=not env.get("COPILOT_DISABLE_TERMINAL_TITLE"),
        problems=(
            *(problem.sentence for problem in settings.problems if not problem.note),
            *(
                f"The setting {name} has no value {value!r}; use one of {', '.join(known)}."
                for name, (value, known) in names.items()
                if value not in known
            ),
        ),
    )
