"""Secrets in runs of the installed program: where they are hidden, and where they must not be."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving

DONE = {"text": "Done."}
GITHUB = "ghp_" + "a1B2c3D4e5" * 4
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nabcd+/==\n-----END RSA PRIVATE KEY-----"
)
NAMED = "correct horse battery"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def run(cli: Cli, replies: list[Any], *args: str, **options: Any) -> tuple[Outcome, str]:
    """A run, and everything the model was sent."""
    async with serving([*replies, DONE]) as server:
        outcome = await cli.use(server).ask("go", *args, **options)
        return outcome, "".join(request.body.decode() for request in server.requests)


UNMASKED = "unmasked.jsonl"
"""Keeps for the model what the log hides; see the decision record on secrets."""


def everywhere(cli: Cli, outcome: Outcome) -> str:
    """All that a run showed, and all that it stored for others to read."""
    stored = [
        path.read_text()
        for path in cli.home.rglob("*")
        if path.suffix in (".jsonl", ".log") and path.name != UNMASKED
    ]
    return outcome.text + outcome.notes + "".join(stored)


@pytest.mark.parametrize(
    "secret", [GITHUB, JWT, PEM, "AKIAIOSFODNN7EXAMPLE", "sk-proj-" + "x9" * 20]
)
async def test_what_looks_like_a_secret_is_in_no_event_and_no_log(cli: Cli, secret: str) -> None:
    (cli.cwd / "file").write_text(f"before {secret} after")
    outcome, sent = await run(cli, [{"tools": [bash("cat file")]}], "--log-level", "all")
    shown = everywhere(cli, outcome)
    for line in secret.split("\n"):
        assert line not in shown
    assert "before ****** after" in shown
    assert json.dumps(secret)[1:-1] in sent, "the model must see what stands in a file"


async def test_a_named_variable_is_hidden_from_everybody(cli: Cli) -> None:
    (cli.cwd / "file").write_text(f"it is {NAMED}, or not")
    env = {"MY_WORDS": NAMED}
    calls = [{"tools": [bash("cat file; echo [$MY_WORDS]")]}]
    outcome, sent = await run(cli, calls, "--secret-env-vars", "MY_WORDS,OTHER", env=env)
    assert NAMED not in everywhere(cli, outcome)
    assert NAMED not in sent
    assert "it is ******, or not" in sent
    assert "[]" in sent


async def test_a_variable_named_like_a_secret_is_hidden_from_who_watches(cli: Cli) -> None:
    env = {"DB_PASSWORD": "hunter2hunter2", "APP_TOKEN_FILE": "/run/token-file", "X_TOKEN": "short"}
    calls = [{"tools": [bash("echo $DB_PASSWORD $APP_TOKEN_FILE $X_TOKEN")]}]
    outcome, _ = await run(cli, calls, env=env)
    assert "hunter2hunter2" not in everywhere(cli, outcome)
    assert "****** /run/token-file short" in outcome.text


async def test_files_are_written_with_what_the_model_wrote(cli: Cli) -> None:
    create = {"name": "create", "arguments": {"path": "made", "file_text": f"{GITHUB} {NAMED}\n"}}
    edit = {"name": "edit", "arguments": {"path": "made", "old_str": GITHUB, "new_str": JWT}}
    args = ("--secret-env-vars", "MY_WORDS")
    outcome, _ = await run(
        cli, [{"tools": [create]}, {"tools": [edit]}], *args, env={"MY_WORDS": NAMED}
    )
    assert (cli.cwd / "made").read_text() == f"{JWT} {NAMED}\n"
    assert not any(secret in everywhere(cli, outcome) for secret in (GITHUB, JWT, NAMED))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_a_secret_that_comes_in_pieces_is_hidden_too(cli: Cli, size: int) -> None:
    text = f"The token is {GITHUB} and {NAMED}; keep it. Also {JWT}"
    reply = {"text": text, "chunk": size}
    async with serving([reply]) as server:
        cli.use(server)
        args = ("-p", "go", "--secret-env-vars", "MY_WORDS", "-s")
        outcome = await cli.run(*args, env={"MY_WORDS": NAMED})
    assert outcome.text == "The token is ****** and ******; keep it. Also ******\n"


async def test_keys_and_names_are_never_touched(cli: Cli) -> None:
    env = {"A_TOKEN": "toolCallId", "B_TOKEN": "tool.execution_complete", "C_TOKEN": "exitCode"}
    outcome, _ = await run(cli, [{"tools": [bash("echo toolCallId exitCode")]}], env=env)
    assert outcome.result["exitCode"] == 0
    (end,) = outcome.of("tool.execution_complete")
    assert end["toolCallId"]
    assert end["result"]["content"].startswith("****** ******")


async def test_no_command_gets_a_key_of_this_program(cli: Cli) -> None:
    env = {"OPENAI_API_KEY": "openai-key-0123", "GH_TOKEN": "github-token-0123", "PLAIN": "plain"}
    outcome, sent = await run(cli, [{"tools": [bash("env")]}], env=env)
    assert "PLAIN=plain" in sent
    for value in ("openai-key-0123", "github-token-0123", "test-key-0123456789"):
        assert value not in sent + everywhere(cli, outcome)


def conversation(request: Any) -> Any:
    """What a model was shown, without the context that changes with the time of day."""
    return request.json["messages"]


async def test_a_resumed_model_reads_what_it_read_while_the_session_lived(cli: Cli) -> None:
    (cli.cwd / "file").write_text(f"{GITHUB}\n{JWT}\n{PEM}\n{NAMED}\nhunter2hunter2\n")
    env = {"MY_WORDS": NAMED, "DB_PASSWORD": "hunter2hunter2"}
    args = ("--secret-env-vars", "MY_WORDS")
    replies = [
        {"text": f"I use {GITHUB}.", "tools": [bash("cat file"), bash(f"echo {JWT}")]},
        {"text": f"It was {GITHUB}, and the password hunter2hunter2."},
        DONE,
    ]
    async with serving(replies) as server:
        cli.use(server)
        first = await cli.ask(f"Look at {GITHUB}", *args, env=env)
        session_id = first.result["sessionId"]
        await cli.ask("go on", *args, f"--resume={session_id}", env=env)
        _, live, resumed = map(conversation, server.requests)
    assert live == resumed[: len(live)], "the resumed request begins as the live one"
    sent = json.dumps(resumed)
    for text in (GITHUB, JWT, "hunter2hunter2", "MIIEpAIBAAKCAQEA7bq"):
        assert text in sent
    assert NAMED not in sent
    assert f"It was {GITHUB}, and the password hunter2hunter2." in sent
    for secret in (GITHUB, JWT, NAMED, "hunter2hunter2"):
        assert secret not in everywhere(cli, first)


async def test_what_the_log_hides_is_kept_for_the_owner_and_exported_nowhere(cli: Cli) -> None:
    (cli.cwd / "file").write_text(f"{GITHUB} {NAMED}")
    args = ("--secret-env-vars", "MY_WORDS", "--share=shared.md")
    outcome, _ = await run(cli, [{"tools": [bash("cat file")]}], *args, env={"MY_WORDS": NAMED})
    session_id = outcome.result["sessionId"]
    (kept,) = cli.home.rglob(UNMASKED)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert GITHUB in kept.read_text()
    assert NAMED not in kept.read_text(), "what a person named is stored nowhere"
    shown = (cli.cwd / "shared.md").read_text()
    for form in ("md", "html", "json"):
        shown += (await cli.run("sessions", "export", session_id, "--format", form)).text
    shown += (await cli.run("sessions", "show", session_id, "--events")).text
    assert GITHUB not in shown
    assert "******" in shown


async def test_a_session_without_secrets_keeps_no_such_file(cli: Cli) -> None:
    await run(cli, [{"tools": [bash("echo plain")]}])
    assert not list(cli.home.rglob(UNMASKED))


async def test_a_fork_reads_what_its_source_read(cli: Cli) -> None:
    async with serving([f"Take {GITHUB}.", DONE]) as server:
        first = await cli.use(server).ask("go")
        source = first.result["sessionId"]
        forked = json.loads((await cli.run("sessions", "fork", source, "--json")).text)["id"]
        await cli.ask("go on", f"--resume={forked}")
        assert f"Take {GITHUB}." in json.dumps(conversation(server.requests[-1]))


async def test_a_session_whose_kept_file_is_gone_or_damaged_can_still_be_resumed(cli: Cli) -> None:
    async with serving([f"Take {GITHUB}.", DONE, DONE]) as server:
        first = await cli.use(server).ask("go")
        (kept,) = cli.home.rglob(UNMASKED)
        kept.write_bytes(b'{"type":"torn\n\xff\xfe\n' + kept.read_bytes()[:40])
        session_id = first.result["sessionId"]
        for _ in range(2):
            outcome = await cli.ask("go on", f"--resume={session_id}")
            assert outcome.code == 0, outcome.notes
            assert "Take ******." in json.dumps(conversation(server.requests[-1]))
            kept.unlink(missing_ok=True)
