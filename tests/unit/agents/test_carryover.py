from pathlib import Path

from trimtab.agents.carryover import SessionCarryover, fit
from trimtab.loop.side_calls import Writer
from trimtab.session.folder import SessionFolder
from trimtab.session.projections.changes import CodeChanges
from trimtab.session.todos import Todos


async def no_summarizer() -> Writer | None:
    return None


def test_the_index_of_checkpoints_is_titled_and_lists_each_summary(tmp_path: Path) -> None:
    folder = SessionFolder("s", str(tmp_path))
    carryover = SessionCarryover(folder, Todos(folder.database), CodeChanges(), "", no_summarizer)
    for title in ("Fix the parser", "Add a | test"):
        carryover.file(f"<checkpoint_title>{title}</checkpoint_title>\nIt is done.")
    heading, _, *table = Path(folder.checkpoints, "index.md").read_text().splitlines()
    assert heading == "# Checkpoints"
    assert [row.split(" | ")[:3] for row in table[2:]] == [
        ["| 1", "Fix the parser", "001-fix-the-parser.md"],
        ["| 2", "Add a   test", "002-add-a-test.md"],
    ]


def test_messages_that_do_not_fit_leave_the_first_the_last_and_a_note() -> None:
    text = fit(["first", *("x" * 300 for _ in range(9)), "last"], 1000)
    lines = text.split("\n")
    assert lines[0] == "1. first"
    assert lines[1] == "[see the session's log for 6 messages in between]"
    assert lines[-1] == "11. last"
