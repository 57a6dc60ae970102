"""Goes on with the schedules of a resumed session."""

from typing import TYPE_CHECKING

from trimtab.session.open_schedules import has_schedules

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


def restore_schedules(live: "LiveSession") -> None:
    """Go on with the schedules of a session, if its log has any."""
    if has_schedules(live.folder.events):
        from trimtab.host.schedules import schedules_of

        schedules_of(live).restore()
