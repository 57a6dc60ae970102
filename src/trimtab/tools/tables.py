"""Formats the results of SQL statements for a model."""

from collections.abc import Sequence

from trimtab.contracts.sql import Outcome
from trimtab.contracts.text import count
from trimtab.tools.database import MAX_ROWS

SCHEMA = frozenset(("CREATE", "DROP", "ALTER"))
MAX_CELL = 4000


def describe_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Return one result as it is, several as numbered blocks."""
    if len(outcomes) == 1:
        return describe_outcome(outcomes[0])
    blocks = [f"Executed {len(outcomes)} statement(s):"]
    for number, outcome in enumerate(outcomes, 1):
        lines = describe_outcome(outcome).split("\n")
        blocks.append("\n".join((f"{number}. {outcome.verb}", *(f"   {line}" for line in lines))))
    return "\n\n".join(blocks)


def describe_outcome(outcome: Outcome) -> str:
    if outcome.columns is not None:
        return draw_table(outcome.columns, outcome)
    match outcome.verb:
        case "INSERT" | "REPLACE":
            last = "" if outcome.last_id is None else f" Last inserted row ID: {outcome.last_id}."
            return f"{outcome.changed} row(s) inserted.{last}"
        case "UPDATE":
            return f"{outcome.changed} row(s) updated."
        case "DELETE":
            return f"{outcome.changed} row(s) deleted."
        case verb if verb in SCHEMA:
            return "Schema operation completed successfully."
        case _:
            return f"Query executed successfully. Rows affected: {outcome.changed}."


def draw_table(columns: Sequence[str], outcome: Outcome) -> str:
    """Return rows as a Markdown table."""
    if not outcome.rows:
        return "0 row(s) returned."
    lines = [
        f"{len(outcome.rows)} row(s) returned:",
        "",
        draw_row(columns),
        draw_row(["---"] * len(columns)),
        *map(draw_row, outcome.rows),
    ]
    if outcome.more:
        lines.append(f"<only the first {MAX_ROWS} rows; query fewer with LIMIT and OFFSET>")
    return "\n".join(lines)


def draw_row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(draw_cell, cells))} |"


def draw_cell(value: object) -> str:
    """Return a value on one line, with | escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<{count(len(value), 'byte')}>"
    text = str(value)
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]}… ({count(len(text), 'character')})"
    return text.replace("|", "\\|").replace("\r", "\\r").replace("\n", "\\n")
