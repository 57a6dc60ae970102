"""The file of earlier prompts."""

from pathlib import Path

from trimtab.transports.tui.history import History


def _open(path: Path) -> History:
    return History(str(path), "/project", lambda text: text)


def test_a_prompt_is_not_appended_to_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    _open(path).add("first")
    with path.open("ab") as file:
        file.write(b'{"text": "cut o\xff\x00')
    _open(path).add("second")
    history = _open(path)
    assert [entry.text for entry in history.entries] == ["first", "second"]
    assert history.problem == "The history of prompts has 1 damaged line; the others are used."
