"""Permissions at work: every tool call is judged before it runs.

What judges is imported with the first call: a run that needs no tool starts without it.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.permission import Answer, Ask, CommandFence, Decision, Policy, Rule
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.permissions.approvals import ApprovalKeeper, generalise, to_rules
from trimtab.permissions.standing import CanRestore, FindExcluded, Standing, Track

SEARCHES = ("glob", "grep", "rg")
LEFT_OUT = "\n<files that a rule or content exclusion keeps from being read are left out>"
UNAVAILABLE = "Permission denied and could not request permission from user"
AskHook = Callable[[PendingCall, JsonObject], Awaitable[Answer | None]]
"""Given a call and the request about it, gives an answer; None leaves it to a person."""
MANY_QUESTIONS = 5
"""Questions about commands in a session after which a person is offered the sandbox."""
_STRICTNESS = ("allow", "ask", "deny")


class Permissions(Processor):
    """Allows, asks or denies. With nobody to ask, what would be asked is denied and counted.

    It is the last to see a call before it runs, so it judges what runs. An answer for more than
    once becomes rules of this session; `keeper` keeps those for a location or for always.
    """

    def __init__(
        self,
        policy: Policy,
        ask: Ask | None = None,
        keeper: ApprovalKeeper | None = None,
        hook: AskHook | None = None,
        fence: CommandFence | None = None,
    ) -> None:
        self._standing = Standing(policy)
        self._ask = ask
        self._keeper = keeper
        self._hook = hook
        self.fence = fence
        if fence is not None and policy.writable is not None:
            fence.follow(self.policy)
        self.fenced: set[str] = set()
        """Calls whose commands nobody approved: they run behind the fence."""
        self.git_by_rule: set[str] = set()
        """Calls that run git by a rule, which nobody has looked at."""
        self.let_out: set[str] = set()
        """Calls that run outside the sandbox, by a person's answer."""
        self.pins: dict[str, dict[str, str]] = {}
        """By call, where the paths it names led when it was judged."""

    @property
    def policy(self) -> Policy:
        """The current policy, with the answers of this session."""
        return self._standing.policy

    @property
    def given(self) -> Policy:
        """The current policy without the folders that its rules open for work."""
        return self._standing.given

    @given.setter
    def given(self, policy: Policy) -> None:
        self._standing.change(policy)
        if self.fence is not None:
            self.fence.follow(self.policy)

    def find_hidden(self, call_id: str = "") -> tuple[str, ...]:
        """Return patterns for the files that a search leaves out, because rules deny reading.

        A call that searches a folder by a rule for reading leaves out the secrets in it.
        """
        secrets = self._find_secrets(call_id)
        if not self.policy.deny and not secrets:
            return ()
        from trimtab.permissions.rules import to_globs

        return to_globs((*self.policy.deny, *secrets), self.policy.cwd)

    def _find_secrets(self, call_id: str) -> tuple[Rule, ...]:
        paths = self.pins.get(call_id, {}).values()
        if not paths or not self._has_read_rules():
            return ()
        from trimtab.permissions.read_folders import find_granted, find_secret_rules

        return tuple(find_secret_rules(find_granted(paths, self.policy)))

    def _has_read_rules(self) -> bool:
        policy = self.policy
        return not policy.allow_all_paths and any(
            rule.kind == "read" and rule.argument for rule in policy.allow
        )

    def move(self, moved: "Permissions") -> None:
        """Judge by the policy of another folder, and keep approvals for a location there."""
        self._keeper = moved._keeper
        self.adopt(moved.given)

    def adopt(self, policy: Policy) -> None:
        """Judge by another policy, for all agents; what came up in the session still counts."""
        before = self.policy
        self.given = msgspec.structs.replace(
            policy, deny=(*policy.deny, *before.late), late=before.late, images=before.images
        )

    def forbid(self, rules: tuple[Rule, ...]) -> None:
        """Have rules deny from now on; a sandbox that is there already does not know them."""
        policy = self.given
        self.given = msgspec.structs.replace(
            policy, deny=(*policy.deny, *rules), late=(*policy.late, *rules)
        )

    def grant(self, rules: tuple[Rule, ...]) -> None:
        """Allow what rules cover, until the session ends or they are revoked."""
        new = tuple(rule for rule in rules if rule not in self.policy.allow)
        allow = (*self.policy.allow, *new)
        self.given = msgspec.structs.replace(self.given, allow=allow)

    def revoke(self, covered: Callable[[Rule], bool], sources: Sequence[str]) -> None:
        """Take back rules of some sources; those of flags and files stay."""
        allow = tuple(
            rule for rule in self.policy.allow if rule.source not in sources or not covered(rule)
        )
        self.given = msgspec.structs.replace(self.given, allow=allow)

    def find_objection(self, path: str) -> str:
        """Why a rule keeps a path from being read; nothing if none does."""
        if not self.policy.deny:
            return ""
        decision = self._decide(Access(kind="read", target=path, mutates=False), "view")
        return decision.reason if decision.verdict == "deny" and decision.rule else ""

    def trust_image(self, path: str) -> None:
        """Let a file that a person attached be read unasked, as long as it is an image."""
        from trimtab.permissions.paths import resolve

        if (real := resolve(path)) not in self.policy.images:
            images = (*self.policy.images, real)
            self.given = msgspec.structs.replace(self.given, images=images)

    def for_agent(self) -> "Permissions":
        """The same judge for another agent: what is approved for one is approved for all.

        Calls are told apart by ids that a model chooses, so each agent's are kept apart.
        """
        other = Permissions(self.policy, self._ask, self._keeper, self._hook, self.fence)
        other._standing = self._standing
        return other

    def may_change(self, access: Access) -> bool:
        """Return True if an access may change anything but the session's own files."""
        from trimtab.permissions.effects import may_change

        return may_change(access, self.policy)

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        self.let_out.discard(pending.call.id)  # a model may use an id twice
        for access in pending.touches(run):
            decision = self._heed(pending, self._judge(access, pending), access)
            decision = self._hold_to_reading(pending, access, decision)
            if access.kind == "shell" and decision.verdict == "allow" and self.policy.undone:
                decision = await self._confirm_undo(access, decision)
            if decision.rule is not None and pending.args.get("mode") == "async":
                # Nobody waits for its end, so nobody would see that the fence stopped it.
                decision = msgspec.structs.replace(decision, harmless=False)
            decision = self._confine(decision, pending, access)
            if decision.verdict == "ask":
                refusal = await self._question(run, pending, access, decision)
            elif decision.verdict == "deny":
                refusal = self._deny(run, pending, access, decision)
            else:
                self._note_git(pending, access, decision)
                if decision.harmless and decision.plain is None:
                    pending = self._put_behind_fence(run, pending, access, decision)
                continue
            if refusal is not None:
                return refusal
        return pending

    def follow_exclusions(self, find: FindExcluded, known: Iterable[str]) -> None:
        """Deny what is excluded in folders that rules open, now and later, besides known ones."""
        self._standing.follow_exclusions(find, known)

    def rely_on_undo(self, can_restore: CanRestore, track: Track) -> None:
        """Let commands destroy by their rules what undo surely brings back."""
        self._standing.rely_on_undo(can_restore, track)

    async def _confirm_undo(self, access: Access, decision: Decision) -> Decision:
        """Ask about a command that destroys something if undo does not cover that."""
        from trimtab.permissions.recoverable import find_at_risk

        paths = find_at_risk(access.target, self.policy, access.interpreter)
        if paths is None or self.policy.allow_destructive:
            return decision
        can_restore = self._standing.can_restore
        if can_restore is not None and await can_restore(paths):
            return decision
        reason = "It cannot be undone: undo does not keep all that it would destroy."
        return Decision(verdict="ask", reason=reason)

    def _hold_to_reading(
        self, pending: PendingCall, access: Access, decision: Decision
    ) -> Decision:
        """Put the commands of a planning or read-only agent behind the fence, whatever allows them.

        A command that writes a file of the session, which such an agent may do, runs outside.
        """
        fits = pending.only_reads and access.kind == "shell" and decision.verdict == "allow"
        if not fits or decision.harmless:
            return decision
        from trimtab.permissions.assess import read_script
        from trimtab.permissions.plain import find_plain_programs

        analysis = read_script(access.target, self.policy, access.interpreter)
        if not analysis.read_only:
            return decision
        plain = find_plain_programs(access.target, analysis)
        held = msgspec.structs.replace(decision, harmless=True, plain=plain, rule=None)
        return self._require_fence(held, access)

    def _confine(self, decision: Decision, pending: PendingCall, access: Access) -> Decision:
        """Prepare what a command is to run in: the fence, or the shield."""
        if decision.harmless and decision.plain is None:
            decision = self._prepare_fence(decision, pending, access)
        if access.kind != "shell" or decision.verdict == "deny":
            return decision
        if not decision.harmless:
            return self._shield(decision)
        if decision.plain is not None:
            self.renew_shield()
        return decision

    def _prepare_fence(self, decision: Decision, pending: PendingCall, access: Access) -> Decision:
        reading = self._standing.reading
        reading[id(self), pending.call.id] = self._find_granted(access)
        granted = tuple(dict.fromkeys(path for paths in reading.values() for path in paths))
        policy = msgspec.structs.replace(self.policy, granted=granted)
        problem = self.fence.prepare(policy) if self.fence else "no fence was set up"
        if not problem:
            return decision
        return _without_fence(decision, problem)

    def _find_granted(self, access: Access) -> tuple[str, ...]:
        """Return what a command reads outside the allowed directories by rules for reading."""
        if not self._has_read_rules():
            return ()
        from trimtab.permissions.assess import read_script
        from trimtab.permissions.read_folders import find_granted

        reads = read_script(access.target, self.policy, access.interpreter).reads
        return find_granted(reads, self.policy)

    def _shield(self, decision: Decision) -> Decision:
        """Keep what rules forbid to read from a command that may do anything else."""
        problem = self.renew_shield()
        if not problem or decision.verdict == "ask":
            return decision
        return Decision(verdict="ask", reason=f"{problem[:1].upper()}{problem[1:]}.")

    def renew_shield(self) -> str:
        """Find again what commands must be kept from: files may have come while a person was asked.

        Returns why that is not possible, or an empty text.
        """
        if not any(rule.kind in ("read", "write") and rule.argument for rule in self.policy.deny):
            return ""
        return self.fence.shield(self.policy) if self.fence else "no shield was set up"

    def _put_behind_fence(
        self, run: Run, pending: PendingCall, access: Access, decision: Decision
    ) -> PendingCall:
        """Have a command run fenced, and a person asked if the fence stops it.

        A command that a rule allows runs again outside instead: the first time it had no effect.
        If part of it has no rule, and it tried what it seemed not to do, a person is asked.
        """
        from trimtab.permissions.assess import read_script
        from trimtab.permissions.fence_stops import Attempt, describe, find_attempts, may_leave
        from trimtab.permissions.fenced_tool import FencedTool

        call_id, policy = pending.call.id, self.policy
        analysis = read_script(access.target, policy, access.interpreter)

        def find(output: str, exit_code: int) -> Sequence[Attempt]:
            readable = (*policy.roots, *policy.readable, *self._find_granted(access))
            readable = ("/",) if policy.allow_all_paths else readable
            failed = exit_code or int(analysis.is_trial)  # then an error in a pipe counts, too
            return find_attempts(output, failed, analysis.programs, policy.cwd, readable)

        async def ask(attempts: Sequence[Attempt]) -> ToolResult:
            reason = f"It would {describe(attempts)}, which it may not do without a permission."
            if pending.only_reads:
                return ToolResult(text=f"Permission denied: {reason}", kind="denied")
            self.fenced.discard(call_id)
            outside = Decision(verdict="ask", reason=reason)
            if decision.rule is not None and may_leave(attempts, analysis, policy):
                outside = self._shield(msgspec.structs.replace(decision, harmless=False))
            if outside.verdict == "ask":
                refusal = await self._question(run, pending, access, outside, warning=reason)
                if refusal is not None:
                    return refusal
            return await pending.tool.run(pending.args, run.tool_context(call_id))

        self.fenced.add(call_id)
        return msgspec.structs.replace(pending, tool=FencedTool(pending.tool, find, ask))

    def _note_git(self, pending: PendingCall, access: Access, decision: Decision) -> None:
        if access.kind != "shell" or not decision.rule:
            return
        from trimtab.permissions.assess import read_script

        analysis = read_script(access.target, self.policy, access.interpreter)
        if "git" in analysis.programs:
            self.git_by_rule.add(pending.call.id)

    def _heed(self, pending: PendingCall, decision: Decision, access: Access) -> Decision:
        """Apply the verdict of a preToolUse hook, unless a rule or lasting damage forbids it."""
        if pending.hook_verdict == "ask" and decision.verdict == "allow":
            return Decision(verdict="ask", reason="A preToolUse hook wants to be asked about it.")
        if pending.hook_verdict != "allow" or decision.verdict != "ask":
            return decision
        from trimtab.permissions.decide import complete, decide

        generous = msgspec.structs.replace(
            complete(self.policy, access, self.fence),
            allow_all_tools=True,
            allow_all_paths=True,
            allow_all_urls=True,
            always_ask=False,
        )
        return decide(access, generous)

    def _judge(self, access: Access, pending: PendingCall) -> Decision:
        """A path leads from now on where it led when it was judged."""
        if access.kind not in ("read", "write"):
            return self._decide(access, pending.tool.spec.name, pending.granted)
        from trimtab.permissions.paths import resolve

        real = resolve(access.target)
        self.pins.setdefault(pending.call.id, {})[access.target] = real
        return self._judge_path(access, real, pending.tool.spec.name, pending.granted)

    def judge(self, access: Access, tool: str) -> Decision:
        """Return the decision about what a tool would touch, before hooks and people are asked."""
        if access.kind not in ("read", "write"):
            return self._decide(access, tool)
        from trimtab.permissions.paths import resolve

        return self._judge_path(access, resolve(access.target), tool)

    def _judge_path(
        self, access: Access, real: str, tool: str, granted: tuple[Rule, ...] = ()
    ) -> Decision:
        """Judge a path by its name and by where it leads, and take the stricter verdict."""
        decision = self._decide(access, tool, granted, real)
        if real == access.target:
            return decision
        there = msgspec.structs.replace(access, target=real)
        both = decision, self._decide(there, tool, granted, real)
        return max(both, key=lambda decision: _STRICTNESS.index(decision.verdict))

    def describe_fence(self, decision: Decision) -> str:
        """Return in which fence a command would run after a decision, and why."""
        if decision.verdict != "allow":
            return "none: it would not run unasked"
        if not decision.harmless:
            sandbox = "the sandbox" if self.policy.writable is not None else "none"
            return f"{sandbox}: {decision.reason[:1].lower()}{decision.reason[1:].rstrip('.')}"
        if decision.plain is not None or self.fence is None:
            return "none: it is harmless as it is written"
        if decision.rule is not None:
            return (
                f"{self.fence.name}: it only reads; what that stops, {decision.rule} allows outside"
            )
        return f"{self.fence.name}: nobody approved it, so it may change nothing"

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        hidden = pending.tool.spec.name in SEARCHES and self.find_hidden(pending.call.id)
        self.pins.pop(pending.call.id, None)
        if pending.call.id in self.fenced and self.fence is not None:
            result = msgspec.structs.replace(result, fence=self.fence.name)
        self.fenced.discard(pending.call.id)
        self.git_by_rule.discard(pending.call.id)
        self._standing.reading.pop((id(self), pending.call.id), None)
        if result.kind == "success" and hidden:
            return msgspec.structs.replace(result, text=result.text + LEFT_OUT)
        return result

    def _decide(
        self, access: Access, tool: str, granted: tuple[Rule, ...] = (), real: str | None = None
    ) -> Decision:
        from trimtab.permissions.decide import complete, decide

        policy = complete(self.policy, access, self.fence)
        if granted:
            policy = msgspec.structs.replace(policy, allow=(*policy.allow, *granted))
        for rule in self.policy.deny:
            if rule.kind == tool and rule.argument is None:
                named = Access(kind="custom-tool", target=tool, mutates=access.mutates)
                return decide(named, policy)
        decision = decide(access, policy, real)
        return self._require_fence(decision, access) if decision.harmless else decision

    def _require_fence(self, decision: Decision, access: Access) -> Decision:
        """Let a command that nobody approved run only if it can do no harm."""
        if access.detail.get("detached") is True:
            if decision.rule is not None:
                return msgspec.structs.replace(decision, harmless=False)
            reason = "It would outlive the session, out of reach of the fence."
            return Decision(verdict="ask", reason=reason)
        fence = self.fence
        problem = fence.find_problem() if fence else "no fence was set up"
        if not problem:
            return msgspec.structs.replace(decision, plain=None)
        if fence and decision.plain is not None and fence.trusts(decision.plain, self.policy):
            return decision
        return _without_fence(decision, problem)

    def _deny(
        self, run: Run, pending: PendingCall, access: Access, decision: Decision
    ) -> ToolResult:
        request = self._build_request(access, pending)
        request_id = self._announce(run, request, settled=True)
        rule = decision.rule
        rules = [{"kind": rule.kind, "argument": rule.argument}] if rule else []
        result: JsonObject = {"kind": "denied-by-rules", "rules": rules}
        if rule and rule.root:
            kind, message = "denied-by-content-exclusion-policy", decision.reason
            result = {"kind": kind, "path": access.target, "message": message}
        run.session.emit(
            PermissionCompleted(
                request_id=request_id,
                tool_call_id=pending.call.id,
                result=result,
                decision_source="host_policy",
            )
        )
        return ToolResult(text=f"Permission denied: {decision.reason}", kind="denied")

    def _build_request(self, access: Access, pending: PendingCall) -> JsonObject:
        from trimtab.permissions.requests import build_request

        return build_request(access, pending, self.policy)

    def _announce(self, run: Run, request: JsonObject, *, settled: bool) -> str:
        """Say what is asked for; clients answer all but what is `settled` already."""
        request_id = new_id()
        run.session.emit(
            PermissionRequested(
                request_id=request_id,
                permission_request=request,
                resolved_by_hook=settled or None,
            )
        )
        return request_id

    async def _question(
        self,
        run: Run,
        pending: PendingCall,
        access: Access,
        decision: Decision,
        *,
        warning: str = "",
    ) -> ToolResult | None:
        from trimtab.permissions.requests import HOOK_DENIED, name_source
        from trimtab.permissions.sandbox_bypass import warn_of_release

        request = self._build_request(access, pending)
        request["reason"] = decision.reason
        if access.kind == "shell" and request.get("suggestedRules"):
            self._offer_bundle(request, access.target)
        if warning:
            request["warning"] = warning
        request |= warn_of_release(access, self.policy)
        answer = await self._hook(pending, request) if self._hook else None
        request_id = self._announce(run, request, settled=answer is not None)
        by_person = answer is None and self._ask is not None
        if answer is None:
            answer = await self.ask_person(request_id, request)
        approved = answer.kind.startswith("approve")
        result = self.settle(access, answer)
        run.session.emit(
            PermissionCompleted(
                request_id=request_id,
                tool_call_id=pending.call.id,
                result=result,
                decision_source=name_source(answer),
            )
        )
        if by_person and access.kind == "shell":
            self._count_question()
        if approved:
            if access.kind == "shell":
                self.renew_shield()
            if by_person and warn_of_release(access, self.policy):
                self.let_out.add(pending.call.id)
            return self._check_unchanged(request, pending)
        if answer.kind == "reject":
            said = f" They said: {answer.feedback}" if answer.feedback else ""
            return ToolResult(text=f"The user rejected this tool call.{said}", kind="rejected")
        if answer.kind == HOOK_DENIED:
            text = f"Denied by permissionRequest hook: {answer.feedback}"
            return ToolResult(text=text, kind="denied")
        return ToolResult(
            text=f"{UNAVAILABLE} ({decision.reason})", summary=UNAVAILABLE, kind="denied"
        )

    def _count_question(self) -> None:
        """Count an answered question about a command; after many, offer the sandbox."""
        self._standing.commands_asked += 1
        if self._standing.commands_asked == MANY_QUESTIONS and self.fence is not None:
            self.fence.offer_sandbox()

    def _offer_bundle(self, request: JsonObject, command: str) -> None:
        """Offer rules for commands that belong together with the first question about one."""
        from trimtab.permissions.bundles import find_bundle, find_everyday

        standing, keeper = self._standing, self._keeper
        if keeper is None:
            return
        suggested, checks = request["suggestedRules"], keeper.find_checks()
        for field, find in (("bundle", find_bundle), ("everyday", find_everyday)):
            bundle = find(command, suggested, checks, self.policy, standing.offered)
            if bundle is not None:
                request[field] = {"title": bundle.title, "rules": list(bundle.rules)}
                request[field] |= {"parts": list(bundle.parts)} if bundle.parts else {}
                standing.offered += (bundle.title,)

    def find_hosts(self) -> Sequence[str]:
        """Return the hosts from which the project is fetched and built, if it is trusted."""
        return self._keeper.find_hosts() if self._keeper is not None else ()

    async def ask_person(self, request_id: str, request: JsonObject) -> Answer:
        """Return a person's answer to a request that was announced."""
        if self._ask is None:
            return Answer(kind="user-not-available")
        return await self._ask(request_id, request)

    def _check_unchanged(self, request: JsonObject, pending: PendingCall) -> ToolResult | None:
        """An approval is for exactly one call; what is approved is what runs."""
        from trimtab.permissions.requests import digest

        if digest(pending) == request["digest"]:
            return None
        return ToolResult(text="The call was changed after it was approved.", kind="denied")

    def settle(self, access: Access, answer: Answer) -> JsonObject:
        """Remember what an answer approves for longer, and return the outcome for the event."""
        from trimtab.permissions.requests import OUTCOMES

        approved = answer.kind.startswith("approve")
        result = self._approve(access, answer) if approved else {"kind": OUTCOMES[answer.kind]}
        if answer.feedback:
            result["feedback"] = answer.feedback
        return result

    def _approve(self, access: Access, answer: Answer) -> JsonObject:
        from trimtab.permissions.requests import remembered

        approval = answer.approval or self._offer(access)
        scope = answer.kind.removeprefix("approve-")
        rules = to_rules(remembered(access, approval), scope) if scope != "once" else ()
        if not rules:
            return {"kind": "approved"}
        allow = (*self.policy.allow, *rules)
        self.given = msgspec.structs.replace(self.given, allow=allow)
        if approval is None:
            return {"kind": "approved"}
        kept = remembered(access, approval) or approval
        if self._keeper is not None and scope in ("for-location", "permanently"):
            self._keeper.keep(kept, always=scope == "permanently")
            location = self._keeper.location
            return {"kind": "approved-for-location", "approval": kept, "locationKey": location}
        return {"kind": "approved-for-session", "approval": kept}

    def _offer(self, access: Access) -> JsonObject | None:
        from trimtab.permissions.assess import read_script

        shell = access.kind == "shell"
        analysis = read_script(access.target, self.policy, access.interpreter) if shell else None
        return generalise(access, analysis, self.policy)


def _without_fence(decision: Decision, problem: str) -> Decision:
    """Decide about a command that seems to only read, where no fence works."""
    if decision.rule is not None:
        return msgspec.structs.replace(decision, harmless=False, plain=None)
    reason = f"It seems to only read, but nothing can hold it to that: {problem}."
    return Decision(verdict="ask", reason=reason)
