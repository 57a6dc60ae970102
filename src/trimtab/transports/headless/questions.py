"""Questions to a person as text: everything foreign in them is shown as what it is."""

from typing import TYPE_CHECKING, Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.questions import TrustQuestion
from trimtab.contracts.text import neutralise

if TYPE_CHECKING:
    from trimtab.contracts.questions import Question

LONGEST = 4000
LISTED = 20


def describe_request(request: JsonObject) -> str:
    """A permission question: what would happen, and what each answer would allow."""
    lines = [*_describe_access(request), ""]
    if warning := request.get("warning"):
        lines.insert(-1, f"  ! {_show(warning)}")
    lines.append("  y  yes, this once")
    if rules := request.get("suggestedRules"):
        named = ", ".join(_show(rule) for rule in rules)
        lines.append(f"  s  yes, and allow {named} for this session")
        lines.append(f"  a  yes, and allow {named} always in this place")
        lines.append(f"     that covers {_show(request.get('suggestedRulesCover', ''))}")
    lines.append("  n  no; or type what to do instead")
    return "\n".join(lines) + "\n? "


def _describe_access(request: JsonObject) -> list[str]:
    match request.get("kind"):
        case "shell":
            return ["Run this command?", *_indent(request.get("fullCommandText"), "$ ")]
        case "write":
            changes = _indent(request.get("diff") or request.get("newFileContents") or "")
            return [f"Write {_show(request.get('fileName'))}?", *changes]
        case "read":
            return [f"Read {_show(request.get('path'))}?"]
        case "url":
            return [f"Open {_show(request.get('url'))}?"]
        case "mcp":
            server = _show(request.get("serverName"))
            head = f"Call {_show(request.get('toolName'))} of the MCP server {server}?"
            return [head, *_arguments(request)]
        case _:
            return [f"Use the tool {_show(request.get('toolName'))}?", *_arguments(request)]


def describe_question(question: "Question") -> str:
    """A question of the agent's, with its choices by number."""
    choices = [f"  {n}  {_show(choice)}" for n, choice in enumerate(question.choices, 1)]
    return "\n".join([_show(question.text), *choices]) + "\n? "


def describe_trust(question: TrustQuestion) -> str:
    """The question whether a folder may configure the agent."""
    head = f"Do you trust {_show(question.folder)}? It would load:"
    if question.changed:
        head = f"In {_show(question.folder)}, which you trusted, this is new or changed:"
    items = [f"  {item.kind:<10} {_show(item.path)}" for item in question.items[:LISTED]]
    if len(question.items) > LISTED:
        items.append(f"  … and {len(question.items) - LISTED} more")
    answers = "  y  yes, and remember it\n  o  yes, for now\n  n  no, go on without it\n? "
    return "\n".join([head, *items, "", answers])


def _arguments(request: JsonObject) -> list[str]:
    import msgspec

    arguments = request.get("args")
    if not arguments:
        return []
    return _indent(msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode())


def _indent(text: Any, mark: str = "") -> list[str]:
    lines = _show(text).split("\n")
    if lines == [""]:
        return []
    return [
        f"  {mark if index == 0 else ' ' * len(mark)}{line}" for index, line in enumerate(lines)
    ]


def _show(text: Any) -> str:
    shown = neutralise(str(text or ""), "approval")
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[:LONGEST]}\n… {len(shown) - LONGEST} more characters"
