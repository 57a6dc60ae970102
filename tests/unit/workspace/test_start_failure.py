"""A program that cannot be started is reported in a sentence that ends with what to do."""

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit import Bench, open_bench
from trimtab.contracts.hooks import Program
from trimtab.workspace import process_tracking
from trimtab.workspace.fed_program import FedProgram
from trimtab.workspace.git import Git, GitError
from trimtab.workspace.sandbox.confinement import Confinement
from trimtab.workspace.sandbox.policy import SandboxPolicy
from trimtab.workspace.start_failure import explain


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        yield opened


def reason_for(program: str, cwd: str = "/", argument: str = "") -> str:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        with pytest.raises(OSError, match=r"; ") as caught:
            process_tracking.spawn(
                [program, argument],
                cwd=cwd,
                env={"PATH": "/usr/bin:/bin"},
                streams=(null, null, null),
                tag=None,
            )
    finally:
        os.close(null)
    return caught.value.strerror or ""


def write_program(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_each_way_a_program_fails_to_start_has_its_reason_and_its_remedy(tmp_path: Path) -> None:
    plain = write_program(tmp_path / "plain", "echo\n", 0o644)
    script = write_program(tmp_path / "script", "#!/no/such/interpreter\n")
    assert reason_for("") == "no program is named; correct the command"
    assert reason_for("no-such-program") == (
        "no-such-program is not installed; install it or add its folder to PATH"
    )
    assert reason_for("/no/such") == "no such program: /no/such; check the path"
    assert reason_for(plain) == (
        f"{plain} is not an executable file; check the path and its permissions"
    )
    assert reason_for(script) == (
        f"{script} needs an interpreter that is not installed; see its first line"
    )
    assert reason_for("true", cwd="/no/such") == (
        "no such file or directory: /no/such; make it again or work in another folder"
    )
    assert reason_for("true", cwd=plain) == f"not a directory: {plain}; work in another folder"
    assert reason_for("true", argument="x" * 300_000) == (
        "the arguments or the environment are too long; make them shorter"
    )


@pytest.mark.parametrize("number", [errno.ENOEXEC, errno.EMFILE, errno.EIO])
def test_every_other_reason_names_the_program_or_the_system(number: int) -> None:
    reason = explain(OSError(number, os.strerror(number), "rg"), ["rg"], "/").strerror or ""
    assert "rg" in reason or "the system" in reason
    assert "; " in reason
    assert "Errno" not in reason


@pytest.mark.parametrize("program", ["", "/no/such/bwrap", "/etc/passwd"])
async def test_a_sandbox_without_its_backend_says_what_to_install(
    bench: Bench, program: str
) -> None:
    policy = SandboxPolicy(roots=(str(bench.root),), denied=("/no/such",))
    bench.workspace.shells.confinement = Confinement("bubblewrap", policy, program)
    expected = (
        "could not be started: bubblewrap, which the sandbox needs, is not installed; "
        "install bubblewrap, or run with --no-sandbox"
    )
    assert await bench.bash("true") == f"The command {expected}."
    assert f"the search {expected}" in await bench.text("grep", pattern="x")
    assert f"the search {expected}" in await bench.text("glob", pattern="*")


async def test_a_command_in_a_folder_that_is_gone_says_so(bench: Bench) -> None:
    bench.root.rmdir()
    assert await bench.bash("true") == (
        f"The command could not be started: no such file or directory: {bench.root}; "
        "make it again or work in another folder."
    )


async def test_a_hook_without_its_program_says_so(bench: Bench) -> None:
    hook = Program(argv=("no-such",), cwd="/", env={"PATH": "/bin"}, input=b"", seconds=5, limit=9)
    with pytest.raises(OSError, match="no-such is not installed; install it"):
        await FedProgram(hook).finish()


def test_git_in_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"^no such file or directory: .*; make it again"):
        Git(str(tmp_path / "gone")).run("status")
