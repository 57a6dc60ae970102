"""Commands confined to a policy, with every backend of this machine."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitkit import git, make_repository
from toolkit import Bench, open_bench, processes_with
from trimtab.workspace.sandbox import detection, seccomp
from trimtab.workspace.sandbox.bubblewrap import EMPTY
from trimtab.workspace.sandbox.confinement import Backend, Confinement
from trimtab.workspace.sandbox.deeper import find_deeper
from trimtab.workspace.sandbox.policy import SandboxPolicy, find_git, find_protected

FOUND = detection.detect(os.environ)
BACKENDS = [
    pytest.param(name, marks=pytest.mark.needs(name, "git")) for name in ("bubblewrap", "landlock")
]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as opened:
        make_repository(opened.root)
        opened.write("known.txt", "known\n")
        yield opened


def confine(bench: Bench, backend: Backend, **choices: object) -> SandboxPolicy:
    os.makedirs(bench.files, exist_ok=True)
    given = {"roots": (str(bench.root),), "session": (bench.files,), **choices}
    policy = SandboxPolicy(**given)  # type: ignore[arg-type]
    bench.workspace.shells.confinement = Confinement(backend, policy, FOUND.program)
    return policy


def says_it_cannot(bench: Bench) -> bool:
    """Return True if the backend cannot protect files in the workspace, and says so."""
    confinement = bench.workspace.shells.confinement
    assert confinement is not None
    assert bool(confinement.reservation) == (confinement.backend == "landlock")
    return bool(confinement.reservation)


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


@pytest.mark.parametrize("backend", BACKENDS)
async def test_commands_write_in_the_workspace_and_nowhere_else(
    bench: Bench, tmp_path: Path, backend: Backend
) -> None:
    confine(bench, backend)
    text = await bench.bash(f"echo in > made.txt; echo out > {tmp_path}/out; echo $?; ls known.txt")
    assert bench.path("made.txt").read_text() == "in\n"
    assert not (tmp_path / "out").exists()
    assert "known.txt" in text


@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_is_denied_cannot_be_read_by_any_command(
    bench: Bench, tmp_path: Path, backend: Backend
) -> None:
    bench.write("secret/key", "hidden-1")
    bench.write("token", "hidden-2")
    outside = tmp_path / "outside"
    outside.write_text("hidden-3")
    os.symlink(outside, bench.path("link"))
    denied = (str(bench.path("secret")), str(bench.path("token")), str(outside))
    confine(bench, backend, denied=denied)
    text = await bench.bash(
        f"cat secret/key token link {outside}; cp token t2; ln token t3; cat t2 t3; mv token t4; "
        "cat t4; python3 -c 'print(open(\"token\").read())'; grep -r hidden .; cat known.txt"
    )
    assert "hidden" not in text
    assert "known" in text


@pytest.mark.parametrize("backend", BACKENDS)
async def test_no_connection_leaves_the_sandbox(bench: Bench, backend: Backend) -> None:
    confine(bench, backend)
    text = await bench.bash(
        "python3 - <<'END'\n"
        "import socket\n"
        "for family, kind in ((2, 1), (2, 2), (10, 1), (40, 1), (17, 3)):\n"
        "    try:\n"
        "        one = socket.socket(family, kind)\n"
        "        one.settimeout(2)\n"
        "        one.connect(('192.0.2.1', 9) if family == 2 else ('2001:db8::1', 9))\n"
        "        print('connected')\n"
        "    except (OSError, TypeError) as error:\n"
        "        print('refused')\n"
        "END\n"
    )
    assert text.count("refused") == 5
    assert "connected" not in text


@pytest.mark.parametrize("backend", BACKENDS)
async def test_settings_of_the_kernel_cannot_be_changed(bench: Bench, backend: Backend) -> None:
    confine(bench, backend)
    path = Path("/proc/sys/kernel/core_pattern")
    before = path.read_bytes()
    text = await bench.bash(f"cat {path} | tee {path} > /dev/null")
    assert "Permission denied" in text or "Read-only file system" in text
    assert path.read_bytes() == before


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_folder_can_be_opened_and_closed_while_the_session_lives(
    bench: Bench, backend: Backend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    confine(bench, backend)
    confinement = bench.workspace.shells.confinement
    assert confinement is not None
    for number, folders in enumerate(((), (str(other),), ())):
        confinement.let_write(folders)
        await bench.bash(f"echo x > {other}/{number}; echo x > own{number}")
    assert names(other) == {"1"}
    assert {"own0", "own1", "own2"} <= names(bench.root)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_ways_out_are_closed(bench: Bench, backend: Backend) -> None:
    confine(bench, backend)
    text = await bench.bash(
        f"unshare -Ur true || echo no-namespace; mount -t tmpfs x . || echo no-mount; "
        f"tr '\\0' '\\n' < /proc/{os.getpid()}/environ | grep -q PATH || echo no-environment; "
        f"kill -0 {os.getpid()} || echo no-signal"
    )
    for closed in ("no-namespace", "no-mount", "no-environment", "no-signal"):
        assert closed in text


@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_a_command_leaves_running_is_found_and_ended(
    bench: Bench, backend: Backend
) -> None:
    confine(bench, backend)
    text = await bench.bash(
        "echo late > >(sleep 0.05; cat > late.txt); (setsid sleep 54321 &); echo end"
    )
    assert bench.path("late.txt").read_text() == "late\n"
    assert "sleep" in text
    assert "bwrap" not in text
    assert processes_with("sleep\x0054321") == []


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_terminal_works_in_the_sandbox(bench: Bench, backend: Backend) -> None:
    confine(bench, backend)
    assert "a terminal" in await bench.bash("test -t 0 && test -t 1 && echo a terminal", pty=True)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_protected_names_stay_as_they_are_also_missing_ones(
    bench: Bench, backend: Backend
) -> None:
    bench.write(".github/workflows/ci.yml", "on: push\n")
    confine(bench, backend)
    before = names(bench.root)
    await bench.bash(
        "echo x > .git/hooks/pre-commit; git config core.pager evil; mkdir .claude; "
        "echo {} > .mcp.json; mv .git away; mv .github gone; mkdir -p .github/hooks; "
        "echo x > .github/hooks/h.json; rm -rf .git/hooks; ln -s /tmp .vscode"
    )
    if says_it_cannot(bench):
        return
    assert names(bench.root) == before
    assert names(bench.path(".github")) == {"workflows"}
    assert not bench.path(".git/hooks/pre-commit").exists()
    assert "evil" not in bench.path(".git/config").read_text()


@pytest.mark.parametrize("backend", BACKENDS)
async def test_protected_names_that_exist_deeper_stay_as_they_are(
    bench: Bench, backend: Backend
) -> None:
    deeper = ("a/b/.vscode/tasks.json", "a/b/.mcp.json", "a/.github/hooks/h.json", "a/.idea/x")
    inner = ".git/modules/m/build"
    modules = ("sub/.git/hooks/x", f"{inner}/config", f"{inner}/modules/n/hooks/x")
    for path in (*deeper, *modules, f"{inner}/HEAD", f"{inner}/modules/n/HEAD"):
        bench.write(path, "kept\n")
    confine(bench, backend)
    paths = " ".join((*deeper, *modules))
    await bench.bash(f"for x in {paths}; do echo lost > $x; rm -f $x; rm -rf $x; done")
    await bench.bash(
        'echo written > free; python3 -c \'import os; os.rename("free", "a/b/free")\'; '
        "echo written > sub/.git/free"
    )
    if says_it_cannot(bench):
        return
    assert [bench.path(path).read_text() for path in (*deeper, *modules)] == ["kept\n"] * 7
    assert bench.path("a/b/free").read_text() == "written\n"
    assert bench.path("sub/.git/free").read_text() == "written\n"


def test_looking_for_protected_names_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    (tmp_path / "a" / ".vscode").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / ".vscode").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert find_deeper(str(tmp_path)) == [str(tmp_path / "a" / ".vscode")]
    (tmp_path / "a" / ".idea").mkdir()
    assert len(find_deeper(str(tmp_path))) == 2, "a folder that has changed is read again"
    with pytest.raises(OSError, match="too many folders"):
        find_deeper(str(tmp_path), max_entries=0)


def test_a_folder_put_in_the_place_of_another_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "b" / ".vscode").mkdir(parents=True)
    assert find_deeper(str(tmp_path)) == [str(tmp_path / "b" / ".vscode")]
    seen = (tmp_path / "a").stat().st_mtime_ns
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rename(tmp_path / "a")
    os.utime(tmp_path / "a", ns=(seen, seen))
    assert find_deeper(str(tmp_path)) == [str(tmp_path / "a" / ".vscode")]


@pytest.mark.parametrize("backend", BACKENDS)
async def test_git_works_in_the_sandbox(bench: Bench, backend: Backend) -> None:
    confine(bench, backend)
    text = await bench.bash(
        "git add -A && git commit -qm first && git status --short && git log --oneline"
    )
    assert text.split("\n")[0].endswith("first")
    assert "?? " not in text


@pytest.mark.parametrize("backend", BACKENDS)
async def test_the_agents_own_folder_is_not_writable_even_inside_the_workspace(
    bench: Bench, backend: Backend
) -> None:
    home = bench.path("home")
    files = home / "session" / "files"
    files.mkdir(parents=True)
    confine(bench, backend, own=(str(home),), session=(str(files),))
    await bench.bash("echo x > home/settings.json; echo y > home/session/files/artifact")
    if says_it_cannot(bench):
        return
    assert names(home) - {EMPTY} == {"session"}
    assert (files / "artifact").read_text() == "y\n"


def test_the_filter_has_whole_instructions_and_bounded_jumps() -> None:
    program = seccomp.build_filter((seccomp.INET,))
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096


def test_the_repository_of_a_linked_worktree_is_found_with_its_main_one(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-qm", "x", "--allow-empty")
    git(main, "worktree", "add", "-q", str(linked))
    found = find_git(str(linked))
    assert found is not None
    assert found.common == str(main / ".git")
    assert found.folder == str(main / ".git" / "worktrees" / "linked")


def test_a_repository_elsewhere_counts_if_it_leads_back(tmp_path: Path) -> None:
    main, sub, apart = tmp_path / "main", tmp_path / "main/sub", tmp_path / "apart"
    for folder in (main, apart):
        folder.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-qm", "x", "--allow-empty")
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(main), "sub")
    git(apart, "init", "-q", "--separate-git-dir", str(tmp_path / "apart.git"))
    for folder, kept in ((sub, main / ".git/modules/sub"), (apart, tmp_path / "apart.git")):
        found = find_git(str(folder))
        assert found is not None
        assert found.folder == found.common == str(kept)


def test_a_workspace_cannot_name_a_folder_of_its_choice_as_its_repository(tmp_path: Path) -> None:
    work, keys, other = (tmp_path / name for name in ("work", "keys", "other"))
    for folder in (work, keys, other):
        folder.mkdir()
    git(other, "init", "-q")
    git(other, "init", "-q", "--bare", str(tmp_path / "bare.git"))
    for target in (keys, other / ".git", tmp_path / "bare.git"):
        (work / ".git").write_text(f"gitdir: {target}\n")
        assert find_git(str(work)) is None
        (work / ".git").unlink()
        (work / ".git").symlink_to(target)
        assert find_git(str(work)) is None
        (work / ".git").unlink()
    (work / "own").mkdir()
    (work / ".git").write_text("gitdir: own\n")
    (work / "own/gitdir").write_text(str(work / ".git"))
    (work / "own/commondir").write_text(str(other / ".git"))
    assert find_git(str(work)) is None


def test_start_up_files_are_protected_in_a_home_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(tmp_path / ".bashrc") not in find_protected(str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(tmp_path / ".bashrc") in find_protected(str(tmp_path))


def test_without_any_backend_the_reasons_are_given() -> None:
    found = detection.try_all("/nowhere")
    assert found.backend in ("landlock", None)
    assert "bubblewrap is not installed" in found.reasons


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_search_does_not_read_what_is_denied(bench: Bench, backend: Backend) -> None:
    bench.write("token", "hidden")
    bench.write("open.txt", "hidden, not")
    confine(bench, backend, denied=(str(bench.path("token")),))
    text = await bench.text("grep", pattern="hidden", output_mode="content")
    assert "open.txt" in text
    assert text.count("hidden") == 1


@pytest.mark.parametrize("backend", BACKENDS)
async def test_an_empty_workspace_is_still_there_afterwards(
    tmp_path: Path, backend: Backend
) -> None:
    async with open_bench(tmp_path) as bench:
        confine(bench, backend)
        await bench.bash("true")
        assert names(bench.root) == set()


@pytest.mark.needs("bubblewrap", "git")
async def test_the_folder_of_hooks_that_a_setting_names_is_protected(bench: Bench) -> None:
    git(bench.root, "config", "core.hooksPath", "hooks")
    bench.write("hooks/pre-commit", "#!/bin/sh\n")
    confine(bench, "bubblewrap")
    await bench.bash("echo evil > hooks/pre-commit; echo evil > hooks/post-commit; echo x > other")
    assert bench.path("hooks/pre-commit").read_text() == "#!/bin/sh\n"
    assert not bench.path("hooks/post-commit").exists()
    assert bench.path("other").exists()
