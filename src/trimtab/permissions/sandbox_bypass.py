"""Lets commands out of the sandbox, by a person's answer and by nothing else."""

from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.permission import Answer, Ask, Policy, Rule
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.agent_folders import is_guarded, name_agent_folder
from trimtab.permissions.approvals import (
    OUTSIDE,
    approve_bundle,
    describe_cover,
    generalise,
    to_rules,
)
from trimtab.permissions.assess import read_script
from trimtab.permissions.bundles import Bundle, find_bundle
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.fence_stops import find_attempts
from trimtab.permissions.file_commands import find_copied
from trimtab.permissions.paths import is_inside, is_own_file
from trimtab.permissions.places_elsewhere import TERMINALS
from trimtab.permissions.requests import build_request
from trimtab.permissions.rules import parse_rules

if TYPE_CHECKING:
    from trimtab.permissions.processor import Permissions

SIGNS = (
    "<the sandbox refused a connection to ",
    "Read-only file system",
    "Operation not permitted",
    "Permission denied",
    "Network is unreachable",
    "Could not resolve",
    "ame resolution",
    "Address family not supported",
    "Device or resource busy",
    "Failed to connect to localhost",  # a server outside is not reached from inside
    "Failed to connect to 127.0.0.1",
    "ECONNREFUSED 127.0.0.1",
    "ECONNREFUSED ::1",
    "/.git/description': Not a directory",  # `git init`: a .git that is not there yet is protected
)
REFUSED = "the person did not allow it>"
"""Ends the line about a host that a person has just refused; to ask again would be nagging."""
NOTE = (
    "\n<the command ran in a sandbox, which may be why it failed: it can write only the workspace "
    "and the temp directory, and what is protected there not at all; see what it reached before "
    "trying another way>"
)
WORKING_INSIDE = ("everyday work with git",)
"""Bundles of commands that the sandbox has all it takes for: one that fails is an exception."""
QUESTION = (
    "The sandbox may have stopped this command. To approve is to run it again, outside the sandbox"
)


class SandboxBypass(Processor):
    """Asks about a command that failed in the sandbox. Nobody to ask: the model is told.

    No argument of a tool, no rule for commands and no hook leads here. An approval counts once;
    where commands need no permission, it may also last, for all commands of that name.
    """

    def __init__(
        self, policy: Policy, ask: Ask | None, permissions: "Permissions | None" = None
    ) -> None:
        """`permissions` remember answers that last."""
        self._given = policy
        self._ask = ask
        self._permissions = permissions
        self.released: set[str] = permissions.let_out if permissions else set()
        """Calls that a person let out."""

    @property
    def _policy(self) -> Policy:
        return self._permissions.policy if self._permissions else self._given

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        access = self._find_command(run, pending)
        if access is not None and runs_outside(access, self._policy):
            self.released.add(pending.call.id)
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        access = self._find_command(run, pending)
        if access is None:
            return result
        if pending.call.id in self.released:
            self.released.discard(pending.call.id)
            return msgspec.structs.replace(result, sandboxed=False)
        result = msgspec.structs.replace(result, sandboxed=True)
        if not was_stopped(result.text, self._policy):
            return result
        answer = await self._question(run, pending, access)
        if answer is None or not answer.kind.startswith("approve"):
            return msgspec.structs.replace(result, text=result.text + NOTE)
        self.released.add(pending.call.id)
        if self._permissions is not None:
            self._permissions.renew_shield()
        try:
            outside = await pending.tool.run(pending.args, run.tool_context(pending.call.id))
            return msgspec.structs.replace(outside, sandboxed=False)
        finally:
            self.released.discard(pending.call.id)

    def _find_command(self, run: Run, pending: PendingCall) -> Access | None:
        accesses = pending.touches(run)
        return next((access for access in accesses if access.kind == "shell"), None)

    async def _question(self, run: Run, pending: PendingCall, access: Access) -> Answer | None:
        if self._ask is None:
            return None
        request_id = new_id()
        request = build_request(access, pending, self._policy)
        request |= {"warning": QUESTION, "sandboxBypass": True, "canOfferSessionApproval": False}
        request.pop("suggestedRules", None)
        approval = self._offer(access)
        if approval is not None:
            rules = to_rules(approval, "session")
            request["suggestedRules"] = [str(rule) for rule in rules]
            request["suggestedRulesCover"] = describe_cover(rules)
        bundle = find_outside_bundle(access.target, approval, self._policy) if approval else None
        if bundle is not None:
            title = f"{bundle.title}, outside the sandbox,"
            request["bundle"] = {"title": title, "rules": list(bundle.rules)}
        run.session.emit(PermissionRequested(request_id=request_id, permission_request=request))
        answer = await self._ask(request_id, request)
        approved = answer.kind.startswith("approve")
        result: JsonObject = {"kind": "approved" if approved else "denied-interactively-by-user"}
        if approved and approval is not None and self._permissions is not None:
            if bundle is not None and answer == approve_bundle(request):
                approval |= {"commandIdentifiers": name_commands(bundle)}
            given = msgspec.structs.replace(answer, approval=approval)
            result = self._permissions.settle(access, given)
        run.session.emit(
            PermissionCompleted(
                request_id=request_id,
                tool_call_id=pending.call.id,
                result=result,
                decision_source="human_response",
            )
        )
        return answer

    def _offer(self, access: Access) -> JsonObject | None:
        """Return the approval by which commands of this name run outside from now on."""
        policy = self._policy
        if self._permissions is None or not policy.confined:
            return None
        approval = generalise(access, read_script(access.target, policy, access.interpreter))
        if approval is None or approval["kind"] != "commands":
            return None
        return approval | {"outsideSandbox": True}


def find_closed_path(access: Access, policy: Policy) -> str:
    """Return a path that a command would surely change and the sandbox keeps closed, if any."""
    writable = policy.writable or ()
    analysis = read_script(access.target, policy, access.interpreter)
    copied = find_copied(analysis.commands, analysis.touched)
    changed = [path for path in analysis.touched if path not in copied]
    for path in (*analysis.targets, *changed, *analysis.deleted):
        if path is None or path in TERMINALS or is_own_file(path, policy.session_folder):
            continue
        if is_guarded(path, policy) or not is_inside(path, writable):
            return path
    return ""


def warn_of_release(access: Access, policy: Policy) -> JsonObject:
    """Return the fields of a request whose approval lets a command out of the sandbox.

    Only where commands need no permission is a question about one due to what the sandbox refuses.
    """
    confined = access.kind == "shell" and policy.confined
    path = find_closed_path(access, policy) if confined else ""
    if not path:
        return {}
    warning = (
        f"The sandbox does not let {path} be changed. To approve is to run this command outside it."
    )
    return {"warning": warning, "sandboxBypass": True}


def find_outside_bundle(command: str, approval: JsonObject, policy: Policy) -> Bundle | None:
    """Return the bundle that a command belongs to which must run outside, as far as it is new."""
    suggested = [str(Rule("shell", name)) for name in approval["commandIdentifiers"]]
    let_out = tuple(Rule("shell", rule.argument) for rule in policy.allow if rule.kind == OUTSIDE)
    bundle = find_bundle(command, suggested, None, msgspec.structs.replace(policy, allow=let_out))
    if bundle is None or bundle.title in WORKING_INSIDE or not name_commands(bundle):
        return None
    return bundle


def name_commands(bundle: Bundle) -> list[str]:
    """Return the commands that the rules of a bundle name; none if it has other rules."""
    names = [rule.argument for rule in parse_rules(bundle.rules) if rule.kind == "shell"]
    return [name for name in names if name] if len(names) == len(bundle.rules) else []


def runs_outside(access: Access, policy: Policy) -> bool:
    """Return True if a person's answer lets every command of a script out of the sandbox.

    Commands that only read may be among them. It is judged as it would be without a sandbox.
    """
    allowed = [rule for rule in policy.allow if rule.kind == OUTSIDE]
    opened = [rule for rule in policy.allow if name_agent_folder(rule)]
    if not (allowed or opened) or not policy.confined:
        return False
    rules = [Rule("shell", rule.argument, rule.source) for rule in allowed]
    # The sandbox keeps the folders of agents read-only, also those that a rule opens.
    written = [rule for rule in policy.allow if rule.kind == "write"] if allowed else opened
    unconfined = msgspec.structs.replace(
        policy, allow=(*rules, *written), confined=False, allow_all_tools=False
    )
    decision = decide_shell(access.target, unconfined, access.interpreter)
    return decision.verdict == "allow" and decision.rule is not None and not decision.harmless


def was_stopped(text: str, policy: Policy) -> bool:
    """Return True if the sandbox seems to be the reason why a command failed."""
    failed = "<exited with exit code " in text and not text.endswith("exit code 0>")
    if not failed or REFUSED in text:
        return False
    return any(sign in text for sign in SIGNS) or bool(
        find_attempts(text, 1, (), policy.cwd, policy.writable or policy.roots)
    )
