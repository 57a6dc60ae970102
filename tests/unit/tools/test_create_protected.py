"""Files that a person protected, and files that change while tools work on them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolkit import Bench, open_bench
from trimtab.contracts.tool import ToolContext
from trimtab.tools.create.tool import Create
from trimtab.workspace.local import LocalWorkspace

NOBODY = 65534
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Whoever runs the tests, as somebody who may not do everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user reaches."""
    path = Path(tempfile.mkdtemp(prefix="trimtab-protected-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("edit", {"path": "a.txt", "old_str": "one", "new_str": "two"}),
        ("apply_patch", {"input": PATCH}),
    ],
)
async def test_a_write_protected_file_is_not_replaced(
    folder: Path, tool: str, args: dict[str, str]
) -> None:
    async with open_bench(folder) as bench:
        bench.root.chmod(0o777)
        path = bench.write("a.txt", "one\n")
        assert (await bench.tools[tool].run(args, bench)).kind == "success"
        path.write_text("one\n")
        path.chmod(0o444)
        with ordinary_user():
            result = await bench.tools[tool].run(args, bench)
        assert result.kind == "failure"
        assert "write-protected" in result.text
        assert "chmod u+w" in result.text
        assert path.read_text() == "one\n"


class Racing(LocalWorkspace):
    """A workspace in which another program is always faster with a new file."""

    async def write(self, path: str, data: bytes, **options: Any) -> None:
        os.mkfifo(path)
        raise FileExistsError(17, "File exists", path)


async def test_what_comes_into_being_while_a_file_is_created_is_left_alone(
    bench: Bench, tmp_path: Path
) -> None:
    bench.workspace = Racing(root=str(bench.root), files=str(tmp_path / "files"))
    ctx: ToolContext = bench
    result = await Create().run({"path": "a.txt", "file_text": "x"}, ctx)
    assert result.kind == "failure"
    assert result.text == "a.txt: Not a regular file."


class Failing(LocalWorkspace):
    """A workspace whose disk is full after some writes."""

    left = 0

    async def write(self, path: str, data: bytes, **options: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(28, "No space left on device", path)
        await super().write(path, data, **options)


@pytest.mark.parametrize(
    ("left", "said"), [(1, "a part of it remains"), (0, "Nothing was changed")]
)
async def test_a_patch_that_cannot_be_taken_back_says_so(
    bench: Bench, tmp_path: Path, left: int, said: str
) -> None:
    bench.write("a.txt", "one\n")
    bench.write("b.txt", "one\n")
    workspace = Failing(root=str(bench.root), files=str(tmp_path / "files"))
    workspace.left = left
    bench.workspace = workspace
    both = PATCH.replace("*** End", "*** Update File: b.txt\n@@\n-one\n+two\n*** End")
    result = await bench.tools["apply_patch"].run({"input": both}, bench)
    assert result.kind == "failure"
    assert said in result.text
    assert "No space left" in result.text
    assert bench.path("a.txt").read_text() == ("two\n" if left else "one\n")
