"""Questions to the person: their text, their choices with fixed keys, and the answers."""

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import TrustQuestion
from trimtab.contracts.text import count, neutralise
from trimtab.host.answers import PLAN_TITLE, STAY
from trimtab.host.parts import Question
from trimtab.host.plan_actions import PLAN_ACTIONS, SHORT_ACTIONS, list_actions
from trimtab.permissions.approvals import (
    BUNDLES,
    approve_bundle,
    describe_bundle,
    holds_everywhere,
    offer_rules,
)
from trimtab.permissions.kinds import show_request
from trimtab.transports.tui.cells import Line, line_width, plain, width, wrap
from trimtab.transports.tui.diff import render_diff
from trimtab.transports.tui.transcript import new_stream

GUARD = 0.4
"""Seconds that a question must stand, with nothing typed, before a key answers it."""
MAX_ITEMS = 20


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `keys` choose it. With `words` the person types a text, which goes with it."""

    label: str
    keys: tuple[str, ...]
    short: str = ""
    """The label for a narrow window; the notes name what it leaves out."""
    value: Any = None
    words: bool = False
    edits: bool = False
    """True if it opens the plan in the person's editor; the question stays."""
    rule: str = ""
    """The rule to edit, for a choice that does that; the question stays."""

    def fit(self, cells: int) -> str:
        """Return the label, or its short form if that is too wide."""
        return self.label if not self.short or width(self.label) <= cells else self.short


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is shown. `on_escape` is the answer that Esc gives."""

    id: str
    title: str
    body: tuple[Line, ...] = ()
    """A command, a diff, paths: lines that are shown as they are."""
    notes: tuple[Line, ...] = ()
    """Prose below the body; it wraps at words."""
    choices: tuple[Choice, ...] = ()
    on_escape: Any = None
    words_only: bool = False
    """True if the answer is a text and there is nothing to choose from."""
    agent: str = ""
    kind: str = ""
    diff: str = ""
    """The diff in its body."""
    part: Question | None = None
    """The question of the session behind it."""

    def render(self, columns: int) -> list[Line]:
        """Return the whole text of the question, without its choices."""
        return [*wrap((("warning bold", self.title),), columns), *self.render_body(columns)]

    def render_body(self, columns: int) -> list[Line]:
        """Return what stands below the title."""
        notes = (wrap(note, columns, _indent(note)) for note in self.notes)
        return [*self.body, *(row for rows in notes for row in rows)]

    def render_long(self, columns: int, rows: int) -> list[Line]:
        """Return the whole question for the scrollback; empty if it fits into half a window."""
        labels: list[Line] = []
        if self.kind == "input":  # our own labels are short, or the notes name what they leave out
            labels = [(("", f"  {'/'.join(one.keys)}  {one.label}"),) for one in self.choices]
        text = self.render(columns - 1)
        widest = max(map(line_width, (*self.body, *labels)), default=0)
        room = max(1, rows // 2 - len(self.choices) - 2)
        return [*text, *labels] if len(text) > room or widest >= columns else []

    def find(self, key: str) -> Choice | None:
        """Return the choice that a key chooses."""
        return next((choice for choice in self.choices if key in choice.keys), None)

    def with_words(self, choice: Choice | None, text: str) -> Any:
        """Return the answer for a choice and the person's words."""
        match self.kind:
            case "permission":
                return Answer(kind="reject", feedback=text)
            case "plan":
                return {"approved": False, "feedback": text}
            case _:
                return {"answer": text, "wasFreeform": True}


def _indent(note: Line) -> str:
    """Return what stands before the second row of a note: an indented one hangs."""
    text = plain(note)
    lead = len(text) - len(text.lstrip())
    return " " * (lead + 2) if lead else ""


def build_question(part: Question, columns: int, agent: str = "") -> Asked:
    """Return what to show for a question of the session."""
    build = {"permission": _permission, "input": _input, "plan": _plan}.get(part.kind, _other)
    return msgspec.structs.replace(
        build(part, columns), agent=agent, id=part.request_id, kind=part.kind, part=part
    )


def edit_rules(asked: Asked, text: str) -> Asked:
    """Return a question that offers other rules for commands. Raises `UsageError`."""
    assert asked.part is not None
    request, approval = offer_rules(asked.part.request, text)
    part = msgspec.structs.replace(asked.part, request=request)
    return msgspec.structs.replace(
        _permission(part, 0, approval), agent=asked.agent, id=asked.id, kind=asked.kind, part=part
    )


def build_trust(question: TrustQuestion) -> Asked:
    """Return the question whether to trust a folder."""
    title, loads = f"Do you trust {show(question.folder)}?", "It would load:"
    if question.changed:
        title = f"Do you still trust {show(question.folder)}?"
        loads = "This is new or changed since you did:"
    body = [_text(f"  {loads}")]
    body += [_text(f"  {item.kind:<10} {show(item.path)}") for item in question.items[:MAX_ITEMS]]
    if len(question.items) > MAX_ITEMS:
        body.append(_text(f"  … and {len(question.items) - MAX_ITEMS} more"))
    return Asked(
        id="trust",
        kind="trust",
        title=title,
        body=tuple(body),
        on_escape="no",
        choices=(
            Choice(label="yes, and remember it", keys=("1", "y"), value="always"),
            Choice(label="yes, for now", keys=("2",), value="once"),
            Choice(label="no, go on without it", keys=("4", "n"), value="no"),
        ),
    )


def _permission(part: Question, _: int, approval: JsonObject | None = None) -> Asked:
    request = part.request
    title, body = describe_access(request)
    notes: list[Line] = []
    if reason := request.get("reason"):
        notes.append((("dim", f"  why: {show(reason)}"),))
    warning = str(request.get("warning") or "")
    if warning and warning not in str(request.get("reason") or ""):
        notes.append((("warning", f"  ! {show(warning)}"),))
    choices = [Choice(label="yes, once", keys=("1", "y"), value=Answer(kind="approve-once"))]
    if rules := request.get("suggestedRules"):
        named = ", ".join(show(rule) for rule in rules)
        cover = show(request.get("suggestedRulesCover"))
        notes.append((("dim", f"  2 and 3 allow {named}{': ' if cover else ''}{cover}"),))
        choices += _lasting_choices(request, named, approval)
        if request.get("kind") == "shell" and not request.get("sandboxBypass"):
            choices.append(Choice(label="edit the rule", keys=("e",), words=True, rule=named))
    for key, field in BUNDLES.items():
        if bundle := request.get(field):
            together = show(bundle["title"])
            if described := describe_bundle(bundle):
                notes.append((("dim", f"  {key} allows {show(described)}"),))
            choices.append(
                Choice(
                    label=f"yes, allow {together} always in this folder",
                    short=f"yes, {together} always",
                    keys=(key,),
                    value=approve_bundle(request, field),
                )
            )
    reject = Answer(kind="reject")
    choices.append(Choice(label="no", keys=("4", "n"), value=reject))
    choices.append(Choice(label="no, and say why", keys=("5",), words=True))
    return Asked(
        id="",
        title=title,
        body=tuple(body),
        notes=tuple(notes),
        choices=tuple(choices),
        on_escape=reject,
        diff=str(request.get("diff") or ""),
    )


def _lasting_choices(
    request: JsonObject, named: str, approval: JsonObject | None
) -> Iterator[Choice]:
    """Yield the answers that create rules: for the session, for here and perhaps everywhere."""
    answers = [
        ("approve-for-session", "in this session", ("2", "!")),
        ("approve-for-location", "always in this folder", ("3",)),
    ]
    if holds_everywhere(request):
        answers.append(("approve-permanently", "always in every folder", ("6",)))
    for kind, until, keys in answers:
        yield Choice(
            label=f"yes, allow {named} {until}",
            short=f"yes, {until}",
            keys=keys,
            value=Answer(kind=kind, approval=approval),
        )


def explain(asked: Asked) -> list[tuple[str, str]]:
    """Return what is known about a permission question."""
    request = asked.part.request if asked.part is not None else {}
    commands = [
        f"{show(command.get('identifier'))}{' (only reads)' if command.get('readOnly') else ''}"
        for command in request.get("commands") or ()
    ]
    addresses = [show(found.get("url")) for found in request.get("possibleUrls") or ()]
    why, remarks = show(request.get("reason")), show(request.get("warning"))
    rules = ", ".join(show(rule) for rule in request.get("suggestedRules") or ())
    cover = show(request.get("suggestedRulesCover"))
    facts = (
        ("asked by", asked.agent or "the main agent"),
        ("its intention", show(request.get("intention"))),
        ("programs", ", ".join(commands)),
        ("paths", ", ".join(show(path) for path in request.get("possiblePaths") or ())),
        ("addresses", ", ".join(addresses)),
        ("why", why),
        ("remarks", remarks if remarks != why else ""),
        ("2 and 3 allow", f"{rules}: {cover}" if rules else "nothing: it is asked every time"),
        *(
            (f"{key} allows", ", ".join(show(rule) for rule in request[field]["rules"]))
            for key, field in BUNDLES.items()
            if request.get(field)
        ),
    )
    return [(name, text) for name, text in facts if text]


def describe_access(request: JsonObject) -> tuple[str, list[Line]]:
    """Return what would happen: a question and the whole command, diff or arguments."""
    shown = show_request(request)
    title = show(shown.question)
    if shown.form == "diff":
        return title, render_diff(neutralise(shown.text, "approval"))
    return title, _block(shown.text, "$ " if shown.form == "command" else "")


def _input(part: Question, _: int) -> Asked:
    choices = [
        Choice(
            label=show(choice),
            keys=(str(number),) if number < 10 else (),
            value={"answer": choice, "wasFreeform": False},
        )
        for number, choice in enumerate(part.request["choices"], 1)
    ]
    free = bool(part.request["allowFreeform"]) or not choices
    if choices and free:
        key = (str(len(choices) + 1),) if len(choices) < 9 else ()
        choices.append(Choice(label="something else, in your own words", keys=key, words=True))
    first, *rest = show(part.request["question"]).split("\n")
    return Asked(
        id="",
        title=first,
        notes=tuple(_text(line) for line in rest),
        choices=tuple(choices),
        on_escape={},
        words_only=not choices,
    )


def _plan(part: Question, columns: int) -> Asked:
    request = part.request
    stream = new_stream()
    stream.feed(neutralise(str(request.get("planContent") or request.get("summary") or "")))
    stream.end()
    recommended = request.get("recommendedAction")
    choices: list[Choice] = []
    for action in list_actions(request.get("actions") or ()):
        mark = " (recommended)" if action == recommended else ""
        choices.append(
            Choice(
                label=f"{PLAN_ACTIONS[action]}{mark}",
                short=f"{SHORT_ACTIONS[action]}{mark}",
                keys=(str(len(choices) + 1), "y") if not choices else (str(len(choices) + 1),),
                value={"approved": True, "selectedAction": action},
            )
        )
    stay = {"approved": False}
    choices.append(Choice(label=STAY, keys=(str(len(choices) + 1), "n"), value=stay))
    choices.append(Choice(label="say what to change", keys=(str(len(choices) + 1),), words=True))
    choices.append(Choice(label="edit it in your editor", keys=("e",), edits=True))
    return Asked(
        id="",
        title=PLAN_TITLE,
        body=tuple(stream.take(columns)),
        choices=tuple(choices),
        on_escape=stay,
    )


def _other(part: Question, _: int) -> Asked:
    message = show(part.request.get("message") or part.request.get("question") or "")
    return Asked(id="", title=message, choices=(), on_escape={}, words_only=True)


def _block(text: Any, mark: str = "") -> list[Line]:
    lines = show(text).split("\n")
    if lines == [""]:
        return []
    return [
        (("accent", f"  {mark if index == 0 else ' ' * len(mark)}"), ("bold", line))
        for index, line in enumerate(lines)
    ]


def _text(text: str) -> Line:
    return (("", text),)


def show(text: Any) -> str:
    """Return foreign text with everything invisible in it made visible."""
    return neutralise(str(text or ""), "approval")


def describe_answer(asked: Asked, choice: Choice | None, words: str) -> str:
    """Return the remark that stays in the transcript."""
    if words:
        return f"{asked.title} — {words}"
    return f"{asked.title} — {choice.label if choice else 'no'}"


def describe_position(position: int, total: int) -> str:
    """Return where a question stands among those that wait; empty if it is alone."""
    return f" ({position} of {count(total, 'question')})" if total > 1 else ""
