"""Fuzzy completion of files: what matches, and how fast with many files."""

import time
from pathlib import Path

from trimtab.transports.tui.files import FileIndex, list_files


def test_names_come_before_folders_and_letters_match_in_order() -> None:
    index = FileIndex("/")
    index.set_paths(["parser/readme.md", "src/parser.py", "src/other_parts_serial.py", "x.txt"])
    assert index.match("parser") == ["src/parser.py", "parser/readme.md"]
    assert index.match("opser") == ["src/other_parts_serial.py"]
    assert index.match("zzz") == []


def test_a_key_takes_at_most_50_ms_among_100_000_files() -> None:
    paths = [f"folder{n % 300}/module{n % 77}/file_number_{n}.py" for n in range(100_000)]
    index = FileIndex("/")
    index.set_paths(paths)
    spent = []
    for end in range(1, 12):
        best = min(_seconds(index, "number_4242"[:end]) for _ in range(3))
        spent.append(best)
    assert sorted(spent)[len(spent) // 2] <= 0.05
    assert index.match("number_42424")[0].endswith("file_number_42424.py")


def _seconds(index: FileIndex, query: str) -> float:
    began = time.process_time()
    index.match(query)
    return time.process_time() - began


def test_ignored_folders_are_left_out_without_a_repository(tmp_path: Path) -> None:
    for name in ("src/a.py", "node_modules/b.js", ".venv/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list_files(str(tmp_path)) == ["src/", "src/a.py"]
