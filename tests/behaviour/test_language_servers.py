"""Language servers: questions about code, renames that can be undone, and servers that fail."""

import json
import os
import sys
from typing import Any

import pytest

import languageserver
from clikit import Cli, Outcome, bash, serving
from trimtab.workspace import process_tracking

FIRST = "def price\nprice use\ndef other\n"
SECOND = "🚀 price\nname\n"


def configure(cli: Cli, mode: str = "honest", file: str = ".github/lsp.json") -> None:
    (cli.cwd / "a.toy").write_text(FIRST)
    (cli.cwd / "b.toy").write_text(SECOND)
    server = {
        "command": sys.executable,
        "args": [languageserver.__file__, mode],
        "env": {"TOY_PIDS": str(cli.home / "pids")},
        "fileExtensions": {".toy": "toy"},
    }
    path = cli.cwd / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"lspServers": {"toy": server}}))


def lsp(action: str, **args: Any) -> dict[str, Any]:
    return {"name": "lsp", "arguments": {"action": action, **args}}


async def ask(cli: Cli, *calls: dict[str, Any], flags: tuple[str, ...] = ()) -> Outcome:
    """One call a turn, in a trusted folder."""
    async with serving([*({"tools": [call]} for call in calls), {"text": "done"}]) as server:
        outcome = await cli.use(server).ask("go", "--trust-folder", *flags)
        tools = server.requests[0].json["tools"]
    cli.offered = [tool["function"]["name"] for tool in tools]  # type: ignore[attr-defined]
    return outcome


def results(outcome: Outcome) -> list[str]:
    """What the model was told, in order."""
    done = outcome.of("tool.execution_complete")
    return [
        data["result"]["content"] if data["success"] else data["error"]["message"] for data in done
    ]


def survivors(cli: Cli) -> list[int]:
    pids = (cli.home / "pids").read_text().split()
    return [int(pid) for pid in pids if process_tracking.is_alive(int(pid))]


async def test_questions_are_answered_and_the_server_ends_with_the_session(cli: Cli) -> None:
    configure(cli)
    outcome = await ask(
        cli,
        lsp("definition", path="b.toy", symbol="price"),
        lsp("references", path="a.toy", line=2, symbol="price"),
        lsp("hover", path="a.toy", line=2, symbol="use"),
        lsp("symbols", path="a.toy"),
        lsp("symbols", symbol="oth"),
        lsp("callers", path="a.toy", symbol="price"),
        lsp("diagnostics", path="a.toy"),
    )
    assert results(outcome) == [
        "a.toy:1: def price",
        "a.toy:1: def price\na.toy:2: price use\nb.toy:1: 🚀 price",
        "the toy use",
        "1: function price\n3: function other",
        "function other a.toy:1",
        "other a.toy:3",
        "No diagnostics.",
    ]
    started = [data for data in outcome.of("session.info")
               if data["infoType"] == "language_server_started"]  # fmt: skip
    assert len(started) == 1
    assert survivors(cli) == []


async def test_a_rename_changes_all_files_and_is_undone_exactly(cli: Cli) -> None:
    configure(cli)
    outcome = await ask(cli, lsp("rename", path="a.toy", symbol="price", new_name="cost"))
    assert "in 2 files" in results(outcome)[0]
    assert (cli.cwd / "a.toy").read_text() == FIRST.replace("price", "cost")
    assert (cli.cwd / "b.toy").read_text() == SECOND.replace("price", "cost")
    assert (await cli.run("undo")).code == 0
    assert (cli.cwd / "a.toy").read_text() == FIRST
    assert (cli.cwd / "b.toy").read_text() == SECOND


async def test_a_rename_over_several_files_reports_nothing_that_it_did_not_break(cli: Cli) -> None:
    configure(cli, "linked")
    (cli.cwd / "a.toy").write_text("use price\nBROKEN before\n")
    (cli.cwd / "b.toy").write_text("def price\n")
    outcome = await ask(
        cli,
        lsp("symbols", path="b.toy"),
        lsp("rename", path="b.toy", symbol="price", new_name="cost"),
    )
    assert (cli.cwd / "a.toy").read_text() == "use cost\nBROKEN before\n"
    renamed = results(outcome)[-1]
    assert "in 2 files" in renamed
    assert "New diagnostics" not in renamed


async def test_diagnostics_follow_what_commands_changed_in_other_files(cli: Cli) -> None:
    configure(cli, "linked")
    (cli.cwd / "a.toy").write_text("use price\n")
    (cli.cwd / "b.toy").write_text("def price\n")
    outcome = await ask(
        cli,
        lsp("diagnostics", path="b.toy"),
        lsp("diagnostics", path="a.toy"),
        bash("echo 'def cost' > b.toy"),
        lsp("diagnostics", path="a.toy"),
        bash("rm b.toy; echo 'use price' > c.toy"),
        lsp("references", path="a.toy", symbol="price"),
    )
    found = results(outcome)
    assert found[1] == "No diagnostics."
    assert "undefined: use price" in found[3]
    assert "b.toy" not in found[5]


async def test_symbols_of_a_project_are_asked_of_all_servers_and_before_a_file_is_open(
    cli: Cli,
) -> None:
    configure(cli, "linked")
    config = json.loads((cli.cwd / ".github/lsp.json").read_text())
    server = config["lspServers"]["toy"]
    other = {**server, "args": [languageserver.__file__, "dead"], "fileExtensions": {".x": "x"}}
    config["lspServers"] = {"other": other, "toy": server}
    (cli.cwd / ".github/lsp.json").write_text(json.dumps(config))
    (cli.cwd / "x.x").touch()
    (found,) = results(await ask(cli, lsp("symbols", symbol="pri")))
    assert "function price a.toy:1" in found
    assert "\nother cannot be used: it exited: no licence." in found


async def test_a_rename_is_held_to_the_rules_for_every_file(cli: Cli) -> None:
    configure(cli)
    outcome = await ask(
        cli,
        lsp("rename", path="a.toy", symbol="price", new_name="cost"),
        flags=("--deny-tool", "write(b.toy)"),
    )
    assert outcome.of("tool.execution_complete")[0]["success"] is False
    assert (cli.cwd / "a.toy").read_text() == FIRST
    assert (cli.cwd / "b.toy").read_text() == SECOND


async def test_an_edit_says_what_it_broke_if_a_server_runs(cli: Cli) -> None:
    configure(cli)
    (cli.cwd / "a.toy").write_text(FIRST + "old BROKEN\n")
    change = {"path": "a.toy", "old_str": "def other", "new_str": "def other\nnew BROKEN"}
    again = {"path": "a.toy", "old_str": "use", "new_str": "used"}
    outcome = await ask(
        cli,
        {"name": "edit", "arguments": {"path": "b.toy", "old_str": "name", "new_str": "BROKEN"}},
        lsp("hover", path="a.toy", symbol="price"),
        {"name": "edit", "arguments": change},
        {"name": "edit", "arguments": again},
    )
    cold, _, warm, harmless = results(outcome)
    assert "diagnostics" not in cold
    assert warm.endswith(
        f"New diagnostics since this change:\n{cli.cwd}/a.toy:4: error: broken: new BROKEN"
    )
    assert "diagnostics" not in harmless


@pytest.mark.parametrize(
    ("mode", "said"),
    [("dead", "no licence"), ("garbage", "does not speak the language server protocol")],
)
async def test_a_server_that_cannot_work_is_an_event_and_is_not_tried_for_ever(
    cli: Cli, mode: str, said: str
) -> None:
    configure(cli, mode)
    call = lsp("hover", path="a.toy", symbol="price")
    outcome = await ask(cli, call, call, call)
    first, _, third = results(outcome)
    assert said in first
    assert "does not work here; use grep instead" in third
    warned = [data for data in outcome.of("session.warning")
              if data["warningType"] == "language_server_failed"]  # fmt: skip
    assert len(warned) == 2
    assert warned[0]["message"] == f"The language server {first}"
    assert outcome.code == 0


async def test_a_server_that_dies_at_work_is_started_once_more(cli: Cli) -> None:
    configure(cli, "crash")
    call = lsp("hover", path="a.toy", symbol="price")
    outcome = await ask(cli, call, call, call)
    assert "it exited" in results(outcome)[0]
    assert "does not work here" in results(outcome)[2]
    assert len((cli.home / "pids").read_text().split()) == 2


async def test_answers_that_make_no_sense_are_told_and_change_nothing(cli: Cli) -> None:
    configure(cli, "liar")
    place = {"path": "a.toy", "symbol": "price"}
    outcome = await ask(
        cli,
        lsp("definition", **place),
        lsp("references", **place),
        lsp("hover", **place),
        lsp("symbols", path="a.toy"),
        lsp("callees", **place),
        lsp("rename", new_name="x", **place),
        lsp("symbols", symbol="x"),
    )
    assert results(outcome) == [
        "the server named 'http://example.com/x', which is not a file.",
        "the server named '7', which is not a file.",
        "The server knows nothing about this.",
        "the server sent a position that makes no sense.",
        "No function stands there.",
        "Nothing was renamed: the server sent an edit without a range or a text.",
        "No symbols.",
    ]
    assert (cli.cwd / "a.toy").read_text() == FIRST


async def test_wrong_questions_say_what_is_missing(cli: Cli) -> None:
    configure(cli)
    outcome = await ask(
        cli,
        lsp("hover"),
        lsp("hover", path="a.toy"),
        lsp("hover", path="a.toy", line=99),
        lsp("hover", path="a.toy", symbol="nowhere"),
        lsp("hover", path="missing.toy", symbol="x"),
        lsp("hover", path="a.txt", symbol="x"),
        lsp("rename", path="a.toy", symbol="price"),
    )
    said = results(outcome)
    assert said[0] == "hover needs path; add it."
    assert said[1] == "name a symbol or a line of the file."
    assert said[2] == "the file has 4 lines, so there is no line 99."
    assert said[3] == "'nowhere' is not in the file; view it to find the line."
    assert "no such file" in said[4]
    assert said[5] == "there is no language server for .txt files; use grep."
    assert "rename needs path, symbol and new_name" in said[6]


@pytest.mark.parametrize("trust", [True, False])
async def test_a_folder_that_is_not_trusted_starts_no_server(cli: Cli, trust: bool) -> None:
    configure(cli)
    async with serving([{"text": "done"}]) as server:
        await cli.use(server).ask("go", *(["--trust-folder"] if trust else []))
        tools = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert ("lsp" in tools) is trust
    assert not (cli.home / "pids").exists()


async def test_the_flag_and_the_rules_switch_the_tool_off(cli: Cli) -> None:
    configure(cli)
    await ask(cli, flags=("--feature", "LSP_TOOLS=off"))
    assert "lsp" not in cli.offered  # type: ignore[attr-defined]
    outcome = await ask(
        cli, lsp("hover", path="a.toy", symbol="price"), flags=("--deny-tool", "read(secret.toy)")
    )
    assert "rules keep files from being read" in results(outcome)[0]
    assert not (cli.home / "pids").exists()


async def test_known_servers_are_found_in_the_project_and_on_the_path(cli: Cli) -> None:
    (cli.cwd / "x.py").write_text("x = 1\n")
    program = cli.cwd / ".venv/bin/basedpyright-langserver"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    await ask(cli)
    assert "lsp" in cli.offered  # type: ignore[attr-defined]
    os.remove(program)
    cli.env["PATH"] = "/usr/bin:/bin"
    await ask(cli)
    assert "lsp" not in cli.offered  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ('{"lspServers": {"x": {"command": "x"}}}', "`fileExtensions` must name languages"),
        ('{"lspServers": {"x": {"fileExtensions": {".toy": "toy"}}}}', "`command` must be"),
        ('{"lspServers": []}', "does not contain servers by name"),
    ],
)
async def test_wrong_configuration_is_listed_as_a_problem(
    cli: Cli, content: str, said: str
) -> None:
    (cli.cwd / "a.toy").write_text("")
    (cli.cwd / ".github").mkdir()
    (cli.cwd / ".github/lsp.json").write_text(content)
    outcome = await cli.run("lsp", env={"COPILOT_ALLOW_ALL": "true"})
    assert said in outcome.text


async def test_the_command_lists_servers_and_tries_them(cli: Cli) -> None:
    configure(cli)
    untrusted = await cli.run("lsp")
    assert "not trusted" in untrusted.text
    trusting = {"COPILOT_ALLOW_ALL": "true"}
    listed = json.loads((await cli.run("lsp", "--json", env=trusting)).text)
    assert [server["name"] for server in listed["servers"]] == ["toy"]
    assert not (cli.home / "pids").exists()
    assert "works" in (await cli.run("lsp", "--check", env=trusting)).text
    configure(cli, "dead")
    failed = await cli.run("lsp", "--check", env=trusting)
    assert failed.code == 1
    assert "no licence" in failed.text
