"""The actions that may follow a finished plan, in the order in which people choose among them."""

from collections.abc import Collection

PLAN_ACTIONS = {
    "interactive": "accept it and carry it out; ask before changes",
    "autopilot": "accept it and carry it out without asking, until it is done (autopilot)",
    "exit_only": "accept it and stop here",
    "autopilot_fleet": "accept it and carry it out with several agents at once (autopilot fleet)",
}
SHORT_ACTIONS = {
    "interactive": "carry it out; ask before changes",
    "autopilot": "carry it out in autopilot",
    "exit_only": "accept it and stop here",
    "autopilot_fleet": "carry it out with an autopilot fleet",
}
"""The same for a narrow window."""


def list_actions(offered: Collection[str]) -> list[str]:
    """Return the known actions among those that are offered."""
    return [action for action in PLAN_ACTIONS if action in offered]
