"""What a session keeps of a person's files is for that person alone, and in no export."""

import stat
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from trimtab.undo.blobs import PACK_BELOW
from trimtab.workspace.capture import IN_MEMORY
from trimtab.workspace.shell import MAX_ARGUMENT

SECRET = "the-words-nobody-else-may-read"
COMMANDS = (
    "echo changed > .env; rm large.txt; ln -sf .env link",
    f"head -c {2 * IN_MEMORY} /dev/zero | tr '\\0' x",
    f"echo changed again > .env # {'x' * MAX_ARGUMENT}",
)


def modes(folder: Path) -> dict[str, int]:
    """The permissions of everything below a folder, by name; links have none of their own."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode)
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


async def work(cli: Cli, umask: int) -> None:
    for name, count in ((".env", 1), ("large.txt", 2 * PACK_BELOW // len(SECRET))):
        (cli.cwd / name).write_text(f"{SECRET}\n" * count)
        (cli.cwd / name).chmod(0o644)
    replies = [*({"tools": [bash(command)]} for command in COMMANDS), {"text": "Done."}]
    detached = bash("echo done")
    detached["arguments"] |= {"mode": "async", "detach": True}
    async with serving([{"tools": [detached]}, *replies]) as server:
        outcome = await cli.use(server).ask("go", "--allow-destructive", umask=umask)
    assert outcome.code == 0, outcome.notes


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
async def test_every_copy_in_a_session_a_fork_and_the_trash_is_for_the_owner_alone(
    cli: Cli, umask: int
) -> None:
    await work(cli, umask)
    (session,) = (cli.home / "session-state").iterdir()
    kept = [path for path in session.rglob("*") if path.is_file()]
    copies = [path for path in kept if SECRET.encode() in path.read_bytes()]
    assert {path.parent.name for path in copies} == {"blobs", "backups"}
    assert (await cli.run("sessions", "fork", session.name, umask=umask)).code == 0
    assert (await cli.run("sessions", "delete", session.name, umask=umask)).code == 0
    (forked,) = (cli.home / "session-state").iterdir()
    (deleted,) = (cli.home / "trash").iterdir()
    for folder in (forked, deleted):
        found = modes(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert found.keys() >= {"blobs", "files", "rewind-file-snapshots/backups"}
        loose = {name: oct(mode) for name, mode in found.items() if mode not in (0o600, 0o700)}
        assert loose == {}
        assert {(folder / name).is_dir() for name, mode in found.items() if mode == 0o700} == {True}


@pytest.mark.parametrize("form", ["md", "html", "json"])
async def test_no_export_contains_what_a_snapshot_kept(cli: Cli, form: str) -> None:
    await work(cli, 0o022)
    (session,) = (cli.home / "session-state").iterdir()
    shown = await cli.run("sessions", "export", session.name, "--format", form)
    assert shown.code == 0
    assert "changed again" in shown.text
    assert SECRET not in shown.text
    written = cli.cwd / "out"
    saved = await cli.run(
        "sessions", "export", session.name, "--format", form, "-o", str(written), umask=0
    )
    assert saved.code == 0
    assert SECRET not in written.read_text()
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
