"""An answer lets a folder elsewhere be read for good, and the kernel keeps its secrets."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash
from trimtab.contracts.options import PermissionOptions, SandboxSettings
from trimtab.contracts.permission import Answer
from trimtab.host.parts import Question
from trimtab.testing.playing import Played, play, texts
from trimtab.transports.acp.questions import build_options
from trimtab.transports.headless.questions import describe_request, name_answers, read_answer
from trimtab.transports.tui.questions import build_question

BACKENDS = [
    pytest.param("landlock", marks=pytest.mark.needs("landlock")),
    pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
]


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside the workspace, the home and the temp directory, with a secret in it."""
    folder = Path(tempfile.mkdtemp(prefix="trimtab-elsewhere-", dir="/var/tmp"))
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("a plan for later\n")
    (folder / "credentials.json").write_text("a plan that is secret\n")
    yield folder
    shutil.rmtree(folder)


class Person:
    """Gives every question the same answer and keeps the questions."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.requests: list[Any] = []

    async def __call__(self, request_id: str, request: Any) -> Answer:
        self.requests.append(request)
        return Answer(kind=self.kind)


async def run(home: Path, person: Person, *calls: Any, fence: Any = "auto") -> Played:
    """A session of its own in the same folder: what was answered for good is known to it."""
    work = home.parent / "work"
    work.mkdir(exist_ok=True)
    return await play(
        [*({"tools": [call]} for call in calls), "done"],
        "go",
        cwd=str(work),
        home=str(home),
        ask=person,
        permissions=PermissionOptions(),
        sandbox_settings=SandboxSettings(fence=fence),
    )


@pytest.mark.parametrize("fence", BACKENDS)
@pytest.mark.parametrize("kind", ["approve-for-location", "approve-permanently"])
async def test_one_answer_lets_a_folder_be_read_in_every_later_session(
    fence: str, kind: str, tmp_path: Path, elsewhere: Path
) -> None:
    home, person = tmp_path / "home", Person(kind)
    command = bash(f"cat {elsewhere}/notes/a.md")
    played = await run(home, person, command, bash(f"ls {elsewhere}/notes"), fence=fence)
    (request,) = person.requests
    assert request["suggestedRules"] == [f"read({elsewhere}/)"]
    assert "a plan for later" in "".join(texts(played.requests))
    kept = json.loads((home / "permissions-config.json").read_text())
    (entry,) = [kept["always"]] if kind == "approve-permanently" else kept["locations"].values()
    assert entry["tool_approvals"] == [{"kind": "read", "readsFolders": [str(elsewhere)]}]
    again = Person("reject")
    search = {"name": "grep", "arguments": {"pattern": "plan", "path": str(elsewhere)}}
    look = {"name": "view", "arguments": {"path": f"{elsewhere}/notes/a.md"}}
    played = await run(home, again, bash(f"grep -r plan {elsewhere}/notes"), search, look)
    assert not again.requests
    told = "".join(texts(played.requests))
    assert told.count("a plan for later") == 2
    assert told.count("notes/a.md") == 2
    assert "credentials" not in told


@pytest.mark.parametrize("fence", BACKENDS)
@pytest.mark.parametrize(
    "command",
    ["grep -r plan {0}", "cat {0}/cred*", "cat {0}/*.json", "find {0} -type f -exec cat {{}} +"],
)
async def test_the_fence_keeps_the_secrets_of_a_folder_that_may_be_read(
    fence: str, command: str, tmp_path: Path, elsewhere: Path
) -> None:
    home = tmp_path / "home"
    await run(home, Person("approve-for-location"), bash(f"ls {elsewhere}/notes"), fence=fence)
    refuses = Person("reject")
    played = await run(home, refuses, bash(command.format(elsewhere)), fence=fence)
    assert "a plan that is secret" not in "".join(map(repr, played.events))
    (request,) = refuses.requests
    assert "credentials.json" in request["reason"]


async def test_a_folder_that_has_become_a_link_is_asked_about_again(
    tmp_path: Path, elsewhere: Path
) -> None:
    home = tmp_path / "home"
    await run(home, Person("approve-for-location"), bash(f"ls {elsewhere}/notes"))
    shutil.rmtree(elsewhere)
    elsewhere.symlink_to("/etc/ssl")
    try:
        refuses = Person("reject")
        await run(home, refuses, bash(f"ls {elsewhere}/"))
        assert len(refuses.requests) == 1
    finally:
        elsewhere.unlink()
        elsewhere.mkdir()


@pytest.mark.needs("landlock")
async def test_the_reason_and_the_fence_of_such_a_command_are_explained(
    tmp_path: Path, elsewhere: Path
) -> None:
    cli = Cli(tmp_path)
    command = f"cat {elsewhere}/notes/a.md"
    asked = await cli.run("permissions", "explain", command, "--json")
    assert json.loads(asked.text)["decisions"] == {"given": "ask"}
    rule = f"read({elsewhere}/)"
    given = await cli.run("permissions", "explain", command, "--json", "--allow-tool", rule)
    said = json.loads(given.text)
    assert said["decisions"] == {"given": "allow"}
    assert said["reasons"]["given"].endswith(f"below {elsewhere}, where a rule allows that.")
    assert said["fences"]["given"].startswith("Landlock")


def test_every_face_offers_the_folder_for_here_and_for_everywhere() -> None:
    request = {"kind": "shell", "fullCommandText": "ls /srv/a", "suggestedRules": ["read(/srv/a/)"]}
    assert "6  the same always in every folder" in describe_request(request)
    assert name_answers(request).endswith("6")
    answer = read_answer("6", request, None)
    assert answer is not None
    assert answer.kind == "approve-permanently"
    names = [option["name"] for option in build_options(request)]
    assert "Always allow read(/srv/a/) in this folder" in names
    assert "Always allow read(/srv/a/) in every folder" in names
    part = Question(key="1", request_id="1", kind="permission", request=request)
    labels = {choice.keys[0]: choice.label for choice in build_question(part, 80).choices}
    assert labels["3"] == "yes, allow read(/srv/a/) always in this folder"
    assert labels["6"] == "yes, allow read(/srv/a/) always in every folder"
    commands = {**request, "suggestedRules": ["shell(make)"]}
    assert read_answer("6", commands, None) is None
    assert not [option for option in build_options(commands) if "every" in option["name"]]


def test_every_face_offers_all_everyday_work_beside_the_narrower_bundle() -> None:
    rules = ["write", "shell(git add)", "shell(make test)"]
    everyday = {"title": "everyday work", "rules": rules, "parts": ["files", "git"]}
    request = {
        "kind": "shell",
        "fullCommandText": "git add a",
        "suggestedRules": ["shell(git add)"],
        "bundle": {"title": "git", "rules": rules[1:2]},
        "everyday": everyday,
    }
    assert "  d  yes, allow everyday work always in this folder:\n     files, git\n" in (
        describe_request(request)
    )
    assert name_answers(request) == "1, 2, 3, 4, c, d"
    names = {"kind": "commands", "commandIdentifiers": ["git add", "make test"]}
    expected = Answer(kind="approve-for-location", approval={**names, "writesFiles": True})
    assert read_answer("d", request, None) == expected
    asked = build_question(
        Question(key="1", request_id="1", kind="permission", request=request), 80
    )
    assert {choice.keys[0]: choice.value for choice in asked.choices}["d"] == expected
    options = {option["optionId"]: option["name"] for option in build_options(request)}
    assert options["allow_everyday"].endswith("files, git")


@pytest.mark.needs("landlock", "bubblewrap")
async def test_in_the_sandbox_one_answer_does_too_and_secrets_stay_closed(
    tmp_path: Path, elsewhere: Path
) -> None:
    person = Person("approve-for-location")
    commands = ("cat {0}/notes/a.md", "cp {0}/notes/a.md . && ls", "grep -r plan {0}/notes")
    confined = SandboxSettings(enabled=True, auto_allow=True)
    options: Any = {"permissions": PermissionOptions(), "sandbox": True}
    options |= {"home": str(tmp_path), "sandbox_settings": confined}
    replies = [{"tools": [bash(command.format(elsewhere))]} for command in commands]
    played = await play([*replies, "done"], "go", ask=person, **options)
    (request,) = person.requests
    assert request["suggestedRules"] == [f"read({elsewhere}/)"]
    assert (Path(played.cwd) / "a.md").read_text() == "a plan for later\n"
    refuses, search = Person("reject"), {"tools": [bash(f"grep -r plan {elsewhere}")]}
    played = await play([search, "done"], "go", cwd=played.cwd, ask=refuses, **options)
    assert "credentials.json" in refuses.requests[0]["reason"]
    assert "a plan that is secret" not in "".join(map(repr, played.events))
