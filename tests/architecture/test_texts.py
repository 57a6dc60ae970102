"""Texts for people are written as people write them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "trimtab"
PLURAL = re.compile(
    r" (?:more |new |tool |model |input |output )?(?:agents|approvals|bytes|calls|changes"
    r"|characters|commands|conflicts|continuations|entries|errors|events|files|hooks|hunks|images"
    r"|items|lines|messages|models|paths|patterns|problems|prompts|questions|requests|results"
    r"|rows|rules|servers|sessions|skills|things|times|tokens|tools|turns|words)\b"
)
OTHERS_WORDS = {
    "prompts/transform.py",  # the tagged files of Copilot's user messages
    "tools/create/tool.py",  # what Copilot's tool says
    "tools/schema.py",  # validation as JSON Schema has it
    "tools/splice.py",  # only said of two and more
    "session/repair.py",  # only said of two and more
    "transports/rpc/framing.py",  # only said of very many
}


def uncounted(tree: ast.AST) -> Iterator[str]:
    """Numbers in texts that are followed by a plural whatever they are."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            words = str(text.value)
            number = ast.unparse(value.value)
            is_constant = number.rpartition(".")[2].isupper()
            if not is_constant and PLURAL.match(words) and "limit" not in number:
                yield f"{{{number}}}{words}"


def test_a_number_and_its_noun_agree() -> None:
    """`1 files` and `1 model calls` were printed: `count` gives the right form."""
    found = {
        f"{path.relative_to(SOURCE)}: {text}"
        for path in SOURCE.rglob("*.py")
        if str(path.relative_to(SOURCE)) not in OTHERS_WORDS
        for text in uncounted(ast.parse(path.read_text()))
    }
    assert not found
