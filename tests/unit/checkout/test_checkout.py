"""The checkout of a session: one value for folders, repository and worktree."""

from pathlib import Path

import pytest

from gitkit import git
from livekit import opened
from trimtab.contracts.options import Isolation, PermissionOptions


def make_repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")
    return folder


@pytest.mark.proves("VSC-22")
async def test_folders_repository_worktree_and_trust_are_in_one_value(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    plain = tmp_path / "plain"
    plain.mkdir()
    (project / "mine.txt").write_text("not committed")
    permissions = PermissionOptions(add_dirs=(str(plain),))
    async with opened(
        tmp_path,
        [],
        cwd=str(project),
        permissions=permissions,
        isolation=Isolation(name="fix"),
        trust_folder=True,
    ) as (live, watch, _):
        around = live.controls.setup.checkout
        top = str(tmp_path / "project.worktrees" / "fix")
        assert (around.cwd, around.git_root, around.branch) == (top, top, "trimtab/fix")
        assert around.trusted
        assert around.worktree is not None
        assert around.worktree.repository == str(project)
        assert around.worktree.uncommitted == 1
        assert [(folder.path, folder.git_root) for folder in around.folders] == [
            (top, top),
            (str(plain), None),
        ]
        (used,) = watch.of("trimtab.worktree")
        assert used.path == around.worktree.path
        more = tmp_path / "more"
        more.mkdir()
        live.controls.set_permissions(PermissionOptions(add_dirs=(str(plain), str(more))))
        assert live.controls.setup.checkout.folders[-1].path == str(more)
        assert live.controls.setup.checkout.worktree == around.worktree
