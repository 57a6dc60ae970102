"""The editor of prompts: folded pastes, attached images, the stash."""

from pathlib import Path

import pytest

from trimtab.transports.tui.editor import Editor
from trimtab.transports.tui.history import History

LONG = "\n".join(f"row {number}" for number in range(12))
OTHER = "\n".join(f"line {number}" for number in range(12))


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    history = History(str(tmp_path / "history.jsonl"), "/here", lambda text: text)
    return Editor(history, lambda: None)


def test_a_stashed_draft_keeps_its_pastes_and_images(editor: Editor) -> None:
    editor.paste(LONG)
    editor.attach_image("/x/shot.png", "8x8")
    shown = editor.text
    editor.stash()
    assert editor.text == ""
    editor.stash()
    assert editor.text == shown == "[paste 1: 12 lines][image 1: 8x8]"
    assert editor.images == ["/x/shot.png"]
    assert editor.expanded == f"{LONG}[image 1: 8x8]"


def test_a_draft_that_made_room_for_words_keeps_its_pastes(editor: Editor) -> None:
    editor.paste(LONG)
    draft = editor.save()
    editor.set("my reason")
    editor.clear()
    editor.restore(draft)
    assert editor.expanded == LONG


def test_a_recalled_prompt_has_its_images_in_this_run_and_the_next(tmp_path: Path) -> None:
    path = str(tmp_path / "history.jsonl")
    editor = Editor(History(path, "/here", lambda text: text), lambda: None)
    editor.buffer.insert_text("compare ")
    editor.attach_image("/x/one.png", "8x8")
    editor.attach_image("/x/two.png", "8x8")
    editor.remember()
    editor.clear()
    editor.go_up()
    assert editor.images == ["/x/one.png", "/x/two.png"]
    later = Editor(History(path, "/here", lambda text: text), lambda: None)
    later.go_up()
    assert later.text == "compare [image 1: 8x8][image 2: 8x8]"
    assert later.images == ["/x/one.png", "/x/two.png"]


def test_a_recalled_draft_has_its_pastes_folded_and_its_images(editor: Editor) -> None:
    editor.paste(LONG)
    editor.attach_image("/x/one.png", "8x8")
    editor.remember()
    editor.clear()
    editor.go_up()
    assert editor.text == "[paste 1: 12 lines][image 1: 8x8]"
    assert editor.images == ["/x/one.png"]


def test_pastes_of_one_size_have_names_of_their_own(editor: Editor) -> None:
    editor.paste(LONG)
    editor.paste(OTHER)
    editor.buffer.cursor_position = 0
    assert editor.expand_paste()
    editor.buffer.cursor_position = len(editor.text)
    editor.paste(LONG)
    assert editor.expanded == LONG + OTHER + LONG


def test_undoing_the_expansion_of_a_paste_keeps_its_text(editor: Editor) -> None:
    editor.paste(LONG)
    editor.expand_paste()
    editor.buffer.undo()
    assert editor.text == "[paste 1: 12 lines]"
    assert editor.expanded == LONG


def test_a_prompt_that_is_edited_again_has_its_images(editor: Editor) -> None:
    editor.load("look at [image 1: 8x8] and [image 2: 9x9]", ["/x/a.png", "/x/b.png"])
    assert editor.images == ["/x/a.png", "/x/b.png"]
    editor.attach_image("/x/c.png", "9x9")
    assert editor.images == ["/x/a.png", "/x/b.png", "/x/c.png"]


def test_a_prompt_with_a_paste_comes_back_folded_and_the_draft_keeps_its_own(
    tmp_path: Path,
) -> None:
    history = History(str(tmp_path / "history.jsonl"), "/here", lambda text: text)
    editor = Editor(history, lambda: None)
    editor.paste(LONG)
    history.add(editor.take())
    editor.paste(OTHER)
    editor.buffer.cursor_position = 0
    editor.go_up()
    assert editor.text == "[paste 1: 12 lines]"
    assert editor.expanded == LONG
    editor.go_down()
    assert editor.expanded == OTHER


def test_a_draft_that_a_recalled_prompt_replaces_is_in_the_history_with_its_paste(
    tmp_path: Path,
) -> None:
    """The history had the placeholder of the paste in place of its text."""
    history = History(str(tmp_path / "history.jsonl"), "/here", lambda text: text)
    editor = Editor(history, lambda: None)
    history.add("earlier")
    editor.paste(LONG)
    editor.buffer.cursor_position = 0
    editor.go_up()
    assert editor.text == "earlier"
    editor.buffer.insert_text(" and more")
    assert [entry.text for entry in history.entries] == ["earlier", LONG]
