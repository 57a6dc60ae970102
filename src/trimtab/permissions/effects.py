"""Whether an access may change anything but the session's own files: the test of plan mode."""

from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.assess import read_script
from trimtab.permissions.paths import is_own_file


def may_change(access: Access, policy: Policy) -> bool:
    """True unless it is certain that nothing changes; unknown effects count as changes."""
    if not access.mutates:
        return False
    if access.kind == "write":
        return not is_own_file(access.target, policy.session_folder)
    if access.kind == "shell":
        return _command_may_change(access, policy)
    return access.kind not in ("none", "read")


def _command_may_change(access: Access, policy: Policy) -> bool:
    analysis = read_script(access.target, policy, access.interpreter)
    if analysis.hazards or analysis.destructive or not analysis.is_known:
        return True
    if not all(found.read_only for found in analysis.commands):
        return True
    return not all(
        path is not None and is_own_file(path, policy.session_folder) for path in analysis.targets
    )
