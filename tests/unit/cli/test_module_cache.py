"""The cache of modules makes starts faster, and never changes which code runs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

START = """
import sys
sys.path[:0] = {path!r}
from trimtab.cli.module_cache import ModuleCache
cache = ModuleCache({file!r})
cache.open()
sys.meta_path.insert(0, cache)
import sample, sample.part
for module in (sample, sample.part):
    print(type(module.__spec__.loader).__name__, module.VALUE, module.__file__)
cache.save()
"""
PYTHON = ["SourceFileLoader", "SourceFileLoader"]
CACHE = ["CachedLoader", "CachedLoader"]


class Program:
    """A program with a package of two modules, started with a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder / "path", folder / "modules"
        self.write("sample/__init__.py", "VALUE = 'one'\n")
        self.write("sample/part.py", "VALUE = 'two'\n")

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def start(
        self, *path: Path, flags: tuple[str, ...] = (), more: str = ""
    ) -> tuple[list[str], list[str]]:
        """Return the loaders and the values of the two modules."""
        search = [str(folder) for folder in (*path, self.folder)]
        code = START.format(path=search, file=str(self.cache))
        argv = [sys.executable, "-I", *flags, "-c", code]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "MORE": more}
        done = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
        rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
        assert [row[2].endswith(name) for row, name in zip(rows, NAMES, strict=True)] == [True] * 2
        return [row[0] for row in rows], [row[1] for row in rows]

    def add_modules(self) -> str:
        """Add modules that a start loads if it is told to; return their names."""
        names = [f"more{number}" for number in range(6)]
        for name in names:
            self.write(f"more/{name}.py", "")
        loading = "import os\nfor name in os.environ.get('MORE', '').split(): __import__(name)\n"
        self.write("sample/part.py", f"{loading}VALUE = 'two'\n")
        return " ".join(names)


NAMES = ("sample/__init__.py", "sample/part.py")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_the_second_start_loads_the_modules_of_the_first(program: Program) -> None:
    assert program.start() == (PYTHON, ["one", "two"])
    written = program.cache.stat().st_mtime_ns
    assert program.start() == (CACHE, ["one", "two"])
    assert program.cache.stat().st_mtime_ns == written


def test_modules_that_a_later_start_needs_are_added(program: Program) -> None:
    names, folder = program.add_modules(), program.folder / "more"
    program.start(folder)
    assert b"more5.py" not in program.cache.read_bytes()
    program.start(folder, more=names)
    assert b"more5.py" in program.cache.read_bytes()


def test_modules_without_a_compiled_file_do_not_have_the_cache_written_each_time(
    program: Program,
) -> None:
    names, folder = program.add_modules(), program.folder / "more"
    program.write("more/__pycache__", "not a folder")
    program.start(folder, more=names)
    written = program.cache.stat().st_mtime_ns
    program.start(folder, more=names)
    assert program.cache.stat().st_mtime_ns == written


def test_a_changed_source_is_loaded_as_it_is_now_and_cached_again(program: Program) -> None:
    program.start()
    source = program.folder / "sample" / "part.py"
    before = source.stat()
    source.write_text("VALUE = 'new'\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert program.start() == (["CachedLoader", "SourceFileLoader"], ["one", "new"])
    assert program.start() == (CACHE, ["one", "new"])


def test_a_source_of_the_same_size_and_time_is_told_apart(program: Program) -> None:
    program.start()
    source = program.folder / "sample" / "part.py"
    before = source.stat()
    source.write_text("VALUE = 'TWO'\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert program.start()[0] == ["CachedLoader", "SourceFileLoader"]


def test_a_removed_module_is_not_loaded(program: Program) -> None:
    program.start()
    (program.folder / "sample" / "part.py").unlink()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        program.start()
    assert "No module named 'sample.part'" in failed.value.stderr


def test_a_module_that_comes_first_on_another_path_is_loaded(
    program: Program, tmp_path: Path
) -> None:
    program.start()
    other = Program(tmp_path / "other")
    other.write("sample/__init__.py", "VALUE = 'other'\n")
    assert program.start(other.folder) == (PYTHON, ["other", "two"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:0],
        lambda data: data[:5],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"\xff" * len(data),
        lambda data: bytes(len(data)),
        lambda data: data[: -len(data) // 2] + bytes(len(data) - len(data) // 2),
        lambda data: data + b"x",
    ],
)
def test_a_damaged_cache_is_replaced(program: Program, damage: Callable[[bytes], bytes]) -> None:
    program.start()
    program.cache.write_bytes(damage(program.cache.read_bytes()))
    assert program.start()[1] == ["one", "two"]
    assert program.start() == (CACHE, ["one", "two"])


def test_nothing_is_written_where_python_writes_no_compiled_files(program: Program) -> None:
    assert program.start(flags=("-B",)) == (PYTHON, ["one", "two"])
    assert not program.cache.exists()


def test_a_folder_that_cannot_be_written_is_no_error(program: Program) -> None:
    program.cache = program.folder / "nowhere" / "modules"
    assert program.start() == (PYTHON, ["one", "two"])


def test_modules_from_elsewhere_are_not_cached(program: Program, tmp_path: Path) -> None:
    tool = tmp_path / "tool" / "tool.py"
    tool.parent.mkdir()
    tool.write_text("VALUE = 1\n")
    program.write(
        "sample/part.py",
        f"import sys; sys.path.append({str(tool.parent)!r})\nVALUE = 'two'\nimport tool\n",
    )
    program.start()
    assert b"sample/part.py" in program.cache.read_bytes()
    assert bytes(tool) not in program.cache.read_bytes()
