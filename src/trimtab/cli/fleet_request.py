"""Turns the flags of a run into a fleet: what it may spend, and the flags of its workers."""

import os
from collections.abc import Mapping

from trimtab.cli.flags import FLAGS
from trimtab.cli.inputs import build_options, find_mode_after_plan
from trimtab.cli.parse import Values
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import smallest_budget
from trimtab.customize.overview import gather
from trimtab.fleet.events import Resumed, Spent
from trimtab.fleet.fleets import WORKERS, FleetRequest
from trimtab.fleet.plan import Todo

PASSED_GROUPS = ("model", "mode", "permission", "customization")
SHARED = ("max_turns", "max_repeats", "log_level", "log_dir")
"""Flags of other groups that every worker gets. Other limits hold for the fleet as a whole."""
NOT_PASSED = ("plan",)
PATHS = ("add_dir", "plugin_dir", "log_dir")
"""Flags whose values are paths: workers start in another folder."""
ONLY_RUNS = (
    *("attachment", "share", "usage_output_file", "stream", "interactive", "resume", "continue"),
    *("session_id", "worktree", "worktree_changes", "no_auto_commit", "name", "plain"),
)


def build_request(
    values: Values, env: Mapping[str, str], goal: str, todos: tuple[Todo, ...] = ()
) -> FleetRequest:
    """Return the fleet that flags ask for. Raises `UsageError`."""
    options = build_options(values)
    gather(env, options).require_feature("FLEET_COMMAND", "A fleet")
    for name in ONLY_RUNS:
        if name in values:
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be used with a fleet; leave it out."
            )
    if options.mode == "plan" and find_mode_after_plan(values) is None:
        raise UsageError(
            "A fleet cannot work in plan mode; use --plan with --mode autopilot, or leave it out."
        )
    workers = values.get("workers", WORKERS)
    if workers < 1:
        raise UsageError(
            f"--workers needs a number from 1, not {workers}; for example --workers 2."
        )
    checks = tuple(values.get("check", ()))
    if not all(command.strip() for command in checks):
        raise UsageError("--check has no command; write one, such as --check 'make test'.")
    return FleetRequest(
        goal=goal,
        cwd=options.cwd,
        todos=todos,
        workers=workers,
        checks=checks,
        limits=find_limits(values),
        deadline=values.get("deadline"),
        flags=render_flags(values, options.cwd),
        land="land" in values,
    )


def build_resumption(values: Values, now: float) -> Resumed:
    """Return the limits of a fleet that goes on; those that are not given stay."""
    deadline = values.get("deadline")
    return Resumed(
        limits=find_limits(values), deadline=None if deadline is None else now + deadline
    )


def find_limits(values: Values) -> Spent:
    usd = smallest_budget(values.get("max_budget_usd"), values.get("max_ai_credits"))
    return Spent(tokens=values.get("max_tokens"), usd=usd)


def render_flags(values: Mapping[str, object], cwd: str) -> tuple[str, ...]:
    """Return the flags that workers get, each as one word."""
    words: list[str] = []
    for flag in FLAGS:
        passed = flag.group in PASSED_GROUPS or flag.key in SHARED
        if not passed or flag.key in NOT_PASSED or flag.key not in values:
            continue
        value, name = values[flag.key], flag.names[-1]
        for each in value if isinstance(value, list) else [value]:
            text = os.path.join(cwd, os.path.expanduser(str(each)))
            if flag.key == "additional_mcp_config" and str(each).startswith("@"):
                text = "@" + os.path.join(cwd, str(each)[1:])
            elif flag.key not in PATHS:
                text = str(each)
            words.append(name if each is True else f"{name}={text}")
    return tuple(words)
