"""Images that a person attached lie where nothing else may be read, and are read unasked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, serving
from customizekit import write
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide

PIXEL = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def view(path: Path) -> dict[str, Any]:
    return {"tools": [{"name": "view", "arguments": {"path": str(path)}}]}


async def look(cli: Cli, prompt: str, *paths: Path, flags: tuple[str, ...] = ()) -> Outcome:
    """What comes of looking at files outside the workspace, one after another."""
    async with serving([*map(view, paths), "done"]) as server:
        return await cli.use(server).run(
            *("-p", prompt, "--output-format", "json", "--disallow-temp-dir", *flags)
        )


def successes(outcome: Outcome) -> list[bool]:
    return [data["success"] for data in outcome.of("tool.execution_complete")]


def refusals(outcome: Outcome) -> list[str]:
    """What the model is told of calls that were not allowed."""
    ends = outcome.of("tool.execution_complete")
    return [str(data["error"]) for data in ends if not data["success"]]


@pytest.mark.proves("PERM-15")
@pytest.mark.parametrize("by", ["flag", "mention"])
async def test_an_attached_image_is_read_unasked_and_nothing_beside_it(
    cli: Cli, tmp_path: Path, by: str
) -> None:
    image = write(tmp_path / "pictures/a.png", PIXEL)
    other = write(tmp_path / "pictures/b.png", PIXEL)
    text = write(tmp_path / "pictures/notes.txt", "secret")
    flags = ("--attachment", str(image)) if by == "flag" else ()
    prompt = "look" if by == "flag" else f"look at @{image}"
    outcome = await look(cli, prompt, image, other, text, image.parent, flags=flags)
    assert successes(outcome) == [True, False, False, False]
    assert all("could not request permission" in told for told in refusals(outcome))


async def test_the_copy_that_a_session_keeps_of_an_image_is_read_unasked(
    cli: Cli, tmp_path: Path
) -> None:
    image = write(tmp_path / "pictures/a.png", PIXEL)
    first = await look(cli, f"look at @{image}", image)
    (kept,) = first.of("user.message")[0]["attachments"]
    assert kept["path"].startswith(str(cli.home))
    async with serving([view(Path(kept["path"])), view(image), "done"]) as server:
        again = await cli.use(server).run(
            *("-p", "again", "--continue", "--output-format", "json", "--disallow-temp-dir")
        )
    # Approvals are never restored from a log.
    assert successes(again) == [True, False]


@pytest.mark.parametrize("rule", ["read({})", "view"])
async def test_a_rule_that_denies_beats_the_attachment(cli: Cli, tmp_path: Path, rule: str) -> None:
    image = write(tmp_path / "pictures/a.png", PIXEL)
    flags = ("--deny-tool", rule.format(image))
    outcome = await look(cli, f"look at @{image}", image, flags=flags)
    assert successes(outcome) == [False]
    (told,) = refusals(outcome)
    assert "The rule " in told


async def test_a_text_that_was_attached_is_asked_about(cli: Cli, tmp_path: Path) -> None:
    text = write(tmp_path / "pictures/picture.png", "no image")
    outcome = await look(cli, f"look at @{text}", text)
    assert successes(outcome) == [False]


def swap_by_link(image: Path, secret: Path) -> None:
    image.unlink()
    image.symlink_to(secret)


def swap_content(image: Path, secret: Path) -> None:
    image.write_bytes(secret.read_bytes())


def move_folder(image: Path, secret: Path) -> None:
    image.parent.rename(image.parent.with_name("moved"))
    image.parent.symlink_to(secret.parent)


def leave(image: Path, secret: Path) -> None:
    assert image.exists(), secret


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(leave, "allow"), (swap_by_link, "ask"), (swap_content, "ask"), (move_folder, "ask")],
)
def test_a_file_that_became_another_is_asked_about(
    tmp_path: Path, change: Callable[[Path, Path], None], verdict: str
) -> None:
    image = write(tmp_path / "pictures/a.png", PIXEL)
    secret = write(tmp_path / "secrets/a.png", "a secret that is no image")
    policy = Policy(cwd="/srv", roots=("/srv",), images=(str(image.resolve()),))
    change(image, secret)
    assert decide(Access(kind="read", target=str(image)), policy).verdict == verdict


def test_a_link_to_another_image_is_not_the_attached_one(tmp_path: Path) -> None:
    image = write(tmp_path / "a.png", PIXEL)
    other = write(tmp_path / "b.png", PIXEL)
    policy = Policy(cwd="/srv", roots=("/srv",), images=(str(image.resolve()),))
    swap_by_link(image, other)
    assert decide(Access(kind="read", target=str(image)), policy).verdict == "ask"
    assert decide(Access(kind="read", target=str(other)), policy).verdict == "ask"


def test_what_is_attached_may_be_read_but_not_written(tmp_path: Path) -> None:
    image = write(tmp_path / "a.png", PIXEL)
    policy = Policy(cwd="/srv", roots=("/srv",), images=(str(image),), allow=(Rule("write"),))
    assert decide(Access(kind="read", target=str(image)), policy).verdict == "allow"
    assert decide(Access(kind="write", target=str(image)), policy).verdict == "ask"
