"""Bytes that are not UTF-8, outputs that cannot be written, a folder that is gone."""

import json
import os

import pytest

from clikit import TRIMTAB, Cli, bash, serving

ODD = os.fsdecode(b"odd\xff")


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_prompt_and_a_folder_of_any_bytes_are_no_reason_to_fail(
    cli: Cli, form: str
) -> None:
    folder = cli.cwd / ODD
    folder.mkdir()
    replies = [{"tools": [bash("touch $'made\\xfe'; ls")]}, "Done."]
    async with serving(replies) as server:
        cli.use(server)
        outcome = await cli.run(
            *("-p", f"What is {ODD}?", "--output-format", form, "--allow-all"), cwd=folder
        )
    assert outcome.code == 0, outcome.notes
    assert "Internal error" not in outcome.notes
    assert (folder / os.fsdecode(b"made\xfe")).exists()
    (kept,) = cli.home.glob("session-state/*/host.json")
    metadata = json.loads(kept.read_bytes())
    assert metadata["cwd"] == str(folder)
    listed = await cli.run("sessions", "requests", kept.parent.name)
    assert listed.code == 0
    assert "Done." not in listed.notes
    undone = await cli.run("undo", cwd=folder)
    assert undone.code == 0, undone.notes
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_full_disk_behind_the_output_is_an_error_and_not_a_reader_that_left(
    cli: Cli, form: str
) -> None:
    async with serving(["Hello."]) as server:
        cli.use(server)
        with open("/dev/full", "wb") as full:
            outcome = await cli.run("-p", "hi", "--output-format", form, stdout=full)
    assert outcome.code == 1
    assert "Standard output cannot be written: No space left on device" in outcome.notes


@pytest.mark.parametrize("command", [("-p", "hi"), ("doctor",), ("undo",), ("flags",)])
async def test_a_folder_that_is_gone_is_named(cli: Cli, command: tuple[str, ...]) -> None:
    script = 'mkdir gone && cd gone && rmdir "$PWD" && exec trimtab "$@"'
    env = {"PATH": f"{os.path.dirname(TRIMTAB)}:{cli.env['PATH']}"}
    outcome = await cli.run("-c", script, "sh", *command, program="/bin/sh", env=env)
    assert outcome.code == 1
    assert "The current directory does not exist any more; change to another one." in outcome.notes
