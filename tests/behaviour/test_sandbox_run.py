"""The sandbox as a person switches it on: flags, settings, what tools and commands can do then."""

import json
import os
import shutil
from asyncio import StreamReader, StreamWriter
from pathlib import Path

import pytest

from clikit import Cli, bash, serving
from gitkit import make_repository
from netkit import OK, Listener, listening
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import PermissionOptions, SandboxSettings
from trimtab.contracts.permission import Answer
from trimtab.testing.playing import play
from trimtab.workspace.sandbox.detection import try_all

HERE = try_all(os.environ["PATH"])


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The temp directory is one beside the project, for what is outside both to be outside."""
    cli = Cli(tmp_path)
    temp = tmp_path / "temp"
    temp.mkdir()
    cli.env["TMPDIR"] = str(temp)
    return cli


def create(path: Path | str) -> dict[str, object]:
    return {"name": "create", "arguments": {"path": str(path), "file_text": "x"}}


async def test_allow_all_leaves_the_sandbox_on_for_commands_and_for_file_tools(
    cli: Cli, tmp_path: Path
) -> None:
    places = tmp_path / "by-bash", tmp_path / "by-create"
    replies = [
        {"tools": [bash(f"echo x > {places[0]}; echo y > inside; echo status $?")]},
        {"tools": [create(places[1])]},
        "done",
    ]
    async with serving(replies) as server:
        ran = await cli.use(server).ask("go", "--sandbox")
    assert not any(map(os.path.exists, places))
    assert (cli.cwd / "inside").read_text() == "y\n"
    (decision,) = ran.of("sandbox.decision")
    assert decision["outcome"] == "engaged"
    assert decision.get("backend") == ("bubblewrap" if HERE.backend == "bubblewrap" else None)
    refused = ran.of("tool.execution_complete")[1]
    assert "The sandbox does not let" in refused["error"]["message"]


async def test_the_setting_denies_reading_to_commands_and_tools_alike(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("hidden-words")
    settings = {"sandbox": {"enabled": True, "denied": ["~/private"]}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    replies = [
        {"tools": [bash(f"cat {tmp_path}/private/key")]},
        {"tools": [{"name": "view", "arguments": {"path": f"{tmp_path}/private/key"}}]},
        {"tools": [{"name": "grep", "arguments": {"pattern": "hidden", "path": str(tmp_path)}}]},
        "done",
    ]
    async with serving(replies) as server:
        ran = await cli.use(server).ask("go")
        sent = json.dumps([request.body for request in server.requests], default=str)
    assert "hidden-words" not in ran.text + sent
    assert "private/key" in ran.text


async def test_a_tool_argument_cannot_leave_the_sandbox(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = bash(f"echo x > {out}")["arguments"] | {
        "sandbox": False,
        "confined": False,
        "dangerouslyDisableSandbox": True,
    }
    async with serving([{"tools": [{"name": "bash", "arguments": arguments}]}, "done"]) as server:
        await cli.use(server).ask("go", "--sandbox")
    assert not out.exists()


async def test_no_sandbox_wins_over_the_setting(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (cli.home / "settings.json").write_text('{"sandbox": {"enabled": true}}')
    async with serving([{"tools": [bash(f"echo x > {out}")]}, "done"]) as server:
        ran = await cli.use(server).ask("go", "--no-sandbox")
    assert out.exists()
    assert ran.of("sandbox.decision") == []


async def test_a_repository_cannot_switch_the_sandbox_off(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (cli.home / "settings.json").write_text('{"sandbox": {"enabled": true}}')
    folder = cli.cwd / ".github" / "copilot"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text('{"sandbox": {"enabled": false}}')
    async with serving([{"tools": [bash(f"echo x > {out}")]}, "done"]) as server:
        await cli.use(server).ask("go", "--trust-folder")
    assert not out.exists()


async def test_a_wrong_setting_stops_the_run_rather_than_the_sandbox(cli: Cli) -> None:
    (cli.home / "settings.json").write_text('{"sandbox": {"enabled": true, "network": "some"}}')
    async with serving(["done"]) as server:
        ran = await cli.use(server).ask("go")
    assert ran.code == 2
    assert "The setting sandbox.network has no value 'some'; use off or on." in ran.text


async def greet(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
    await listener.read(reader)
    writer.write(OK)
    await writer.drain()


@pytest.mark.needs("bubblewrap", "git")
async def test_git_does_not_complain_of_names_that_the_sandbox_protects(cli: Cli) -> None:
    """`.gitmodules`, which is not there and must not be made, could not be opened."""
    make_repository(cli.cwd)
    (cli.home / "settings.json").write_text(json.dumps({"sandbox": {"enabled": True}}))
    command = "git fetch . 2>&1; git submodule status 2>&1; echo x > .gitmodules; echo end"
    async with serving([{"tools": [bash(command)]}, "done"]) as server:
        await cli.use(server).ask("go", "--allow-all-tools")
        told = json.dumps(server.requests[1].body, default=str)
    assert "end" in told
    assert "unable to access" not in told
    assert not (cli.cwd / ".gitmodules").exists()


@pytest.mark.needs("bubblewrap", "curl")
async def test_without_a_list_a_refusal_reaches_the_model_though_the_output_hides_it(
    cli: Cli,
) -> None:
    """`pip install x 2>&1 | tail -1` said that there is no such package."""
    (cli.home / "settings.json").write_text(json.dumps({"sandbox": {"enabled": True}}))
    command = "curl -sS http://packages.test/x >/dev/null 2>&1 | tail -1; true"
    async with serving([{"tools": [bash(command)]}, "done"]) as server:
        ran = await cli.use(server).ask("go", "--allow-all-tools")
        told = json.dumps(server.requests[1].body, default=str)
    (refused,) = ran.of("trimtab.connection_refused")
    assert (refused["host"], refused["port"]) == ("packages.test", 80)
    assert "the sandbox refused a connection to packages.test:80" in told


@pytest.mark.needs("bubblewrap", "curl")
async def test_hosts_are_reached_by_a_list_and_refusals_reach_the_model_and_the_log(
    cli: Cli,
) -> None:
    async with listening(greet) as listed, listening(greet) as other:
        settings = {"enabled": True, "allowedHosts": [f"127.0.0.1:{listed.port}"]}
        (cli.home / "settings.json").write_text(json.dumps({"sandbox": settings}))
        command = f"curl -sS {listed.url}/; curl -sS {other.url}/; curl --noproxy '*' {other.url}/"
        async with serving([{"tools": [bash(command)]}, "done"]) as server:
            ran = await cli.use(server).ask("go")
            told = json.dumps(server.requests[1].body, default=str)
    assert (listed.connections, other.connections) == (1, 0)
    (refused,) = ran.of("trimtab.connection_refused")
    assert refused["host"] == "127.0.0.1"
    assert refused["port"] == other.port
    assert refused["toolCallId"] == ran.of("tool.execution_complete")[0]["toolCallId"]
    assert (
        f"the sandbox refused a connection to 127.0.0.1:{other.port}: {refused['reason']}" in told
    )


@pytest.mark.needs("bubblewrap", "curl")
async def test_a_flag_for_an_address_opens_its_host_and_one_that_denies_closes_it(
    cli: Cli,
) -> None:
    async with listening(greet) as server_of_web:
        url, commands = server_of_web.url, [bash(f"curl -sS {server_of_web.url}/")]
        async with serving([{"tools": commands}, "done"] * 3) as server:
            cli.use(server)
            await cli.ask("go", "--sandbox", "--allow-url", url)
            assert server_of_web.connections == 1
            await cli.ask("go", "--sandbox", "--allow-url", f"{url}/docs")
            await cli.ask("go", "--sandbox", "--allow-url", url, "--deny-url", "https://127.0.0.1")
    assert server_of_web.connections == 1


@pytest.mark.needs("bubblewrap", "curl")
@pytest.mark.parametrize("by_file", [True, False])
async def test_a_denied_address_is_closed_where_the_network_is_on_as_well(
    cli: Cli, by_file: bool
) -> None:
    settings: dict[str, object] = {"sandbox": {"enabled": True, "network": "on"}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    denied = "url(https://127.0.0.1)"
    async with listening(greet) as server_of_web:
        (cli.cwd / "get.sh").write_text(f"curl -sS {server_of_web.url}/\n")
        async with serving([{"tools": [bash("sh get.sh")]}, "done"] * 2) as server:
            await cli.use(server).ask("go")
            assert server_of_web.connections == 1
            if by_file:
                settings["permissions"] = {"deny": [denied]}
                (cli.home / "settings.json").write_text(json.dumps(settings))
            await cli.ask("go", *(() if by_file else ("--deny-tool", denied)))
    assert server_of_web.connections == 1


async def test_events_say_whether_a_command_ran_in_the_sandbox(cli: Cli) -> None:
    view = {"name": "view", "arguments": {"path": "."}}
    replies = [{"tools": [bash("true"), view]}, "done"] * 2
    async with serving(replies) as server:
        inside = await cli.use(server).ask("go", "--sandbox")
        outside = await cli.ask("go")
    ends = [data.get("sandboxed") for data in inside.of("tool.execution_complete")]
    assert sorted(map(str, ends)) == ["None", "True"]
    assert not any("sandboxed" in data for data in outside.of("tool.execution_complete"))


@pytest.mark.needs("bubblewrap")
@pytest.mark.proves("PERM-11")
@pytest.mark.parametrize("agents", [0, 1, 2])
async def test_an_address_that_is_allowed_must_still_pass_the_list_of_hosts(
    cli: Cli, agents: int
) -> None:
    settings = {"sandbox": {"enabled": True, "allowedHosts": ["example.com"]}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    fetch = {"name": "web_fetch", "arguments": {"url": "https://other.example/x"}}
    part = {"description": "x", "prompt": "x", "agent_type": "general-purpose"}
    chain = [{"tools": [{"name": "task", "arguments": part}]}] * agents
    async with serving([*chain, {"tools": [fetch]}, *["done"] * 3]) as server:
        ran = await cli.use(server).ask("go", "--allow-url", "https://other.example/x")
    end, *_ = ran.of("tool.execution_complete")
    assert ran.of("permission.requested") == []
    assert end["error"]["code"] == "denied"
    assert "https://other.example/x be reached: it is not on the list" in end["error"]["message"]


def hide_bubblewrap(cli: Cli, tmp_path: Path) -> None:
    """Give the program a PATH that has only what it needs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "grep", "python3"):
        (programs / name).symlink_to(shutil.which(name) or "")
    cli.env["PATH"] = str(programs)


@pytest.mark.needs("landlock")
async def test_a_sandbox_that_cannot_hold_a_list_of_hosts_says_so_and_does_not_start(
    cli: Cli, tmp_path: Path
) -> None:
    hide_bubblewrap(cli, tmp_path)
    settings = {"sandbox": {"enabled": True, "allowedHosts": ["example.com"]}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    async with serving(["done"]) as server:
        ran = await cli.use(server).ask("go")
    assert ran.code == 2
    assert "install bubblewrap" in ran.text


@pytest.mark.needs("landlock")
async def test_leaving_commands_unasked_without_bubblewrap_says_what_to_install(
    cli: Cli, tmp_path: Path
) -> None:
    hide_bubblewrap(cli, tmp_path)
    settings = {"sandbox": {"enabled": True, "autoAllow": True}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    async with serving([{"tools": [bash("python3 -c 1")]}, "done"]) as server:
        ran = await cli.use(server).run("-p", "go", "--output-format=json")
    (warning,) = [one for one in ran.of("session.warning") if one["warningType"] == "sandbox"]
    assert warning["message"] == (
        "The setting sandbox.autoAllow has no effect here: "
        "landlock restricts commands less than bubblewrap; install bubblewrap."
    )
    assert not ran.of("tool.execution_complete")[0]["success"]


async def test_a_host_that_is_none_stops_the_run(cli: Cli) -> None:
    settings = {"sandbox": {"enabled": True, "allowedHosts": ["https://example.com/x"]}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    async with serving(["done"]) as server:
        ran = await cli.use(server).ask("go")
    assert ran.code == 2
    assert "contains an invalid host" in ran.text


async def test_undo_takes_back_what_a_sandboxed_command_did(cli: Cli) -> None:
    (cli.cwd / "kept").write_text("before\n")
    replies = [{"tools": [bash("echo after > kept; echo new > made")]}, "done"]
    async with serving(replies) as server:
        await cli.use(server).ask("go", "--sandbox")
        assert (cli.cwd / "kept").read_text() == "after\n"
        undone = await cli.run("undo")
    assert undone.code == 0
    assert (cli.cwd / "kept").read_text() == "before\n"
    assert os.listdir(cli.cwd) == ["kept"]


async def test_only_a_persons_answer_lets_one_command_out_and_only_once(
    tmp_path: Path,
) -> None:
    work, out = (tmp_path / name for name in ("work", "out"))
    for folder in (work, out):
        folder.mkdir()
    asked: list[bool] = []

    async def answer(request_id: str, request: dict[str, object]) -> Answer:
        asked.append(request.get("sandboxBypass") is True)
        return Answer(kind="approve-for-session" if len(asked) == 1 else "reject")

    replies = [{"tools": [bash(f"echo x > {out}/{name}")]} for name in ("first", "second")]
    rules = PermissionOptions(allow_all_tools=True, allow_all_paths=True, temp_dir=False)
    played = await play(
        [*replies, "done"], "go", cwd=str(work), ask=answer, sandbox=True, permissions=rules
    )
    assert asked == [True, True]
    assert os.listdir(out) == ["first"]
    kinds = [data.result["kind"] for data in played.of("permission.completed")]
    assert kinds == ["approved", "denied-interactively-by-user"]
    assert "ran in a sandbox" in played.of("tool.execution_complete")[1].result["content"]


@pytest.mark.needs("bubblewrap")
async def test_an_answer_for_always_lets_later_commands_of_that_name_out(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "write.py").write_text("import sys\nopen('.mcp.json', 'a').write(sys.argv[1])\n")
    asked: list[object] = []

    async def answer(request_id: str, request: dict[str, object]) -> Answer:
        asked.append(request.get("suggestedRules"))
        return Answer(kind="approve-for-session" if len(asked) == 1 else "reject")

    commands = ("python3 write.py a", "python3 write.py b", "python3 write.py c; python3 other.py")
    played = await play(
        [*({"tools": [bash(command)]} for command in commands), "done"],
        "go",
        cwd=str(work),
        ask=answer,
        sandbox=True,
        sandbox_settings=SandboxSettings(enabled=True, auto_allow=True),
        permissions=PermissionOptions(temp_dir=False),
    )
    first = "outside(python3 write.py)"
    assert asked == [[first], [first, "outside(python3 other.py)"]]
    assert (work / ".mcp.json").read_text() == "ab"
    ran = [data.sandboxed for data in played.of("tool.execution_complete")]
    assert ran == [False, False, True]


@pytest.mark.needs("bubblewrap")
async def test_commands_in_the_sandbox_need_no_permission_where_the_person_said_so(
    cli: Cli, tmp_path: Path
) -> None:
    settings = {"sandbox": {"enabled": True, "autoAllow": True}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    outside = tmp_path / "outside"
    outside.mkdir()
    commands = (
        'python3 -c \'open("made", "w").write("x")\'',
        f"P={outside}/a; python3 -c 'open(\"'$P'\", \"w\")' || echo refused",
        "find kept -delete",
        f"cat {outside}/secret",
        "echo x > .git/hooks/post-commit",
        "git push",
    )
    (cli.cwd / "kept").mkdir()
    (cli.cwd / ".git" / "hooks").mkdir(parents=True)
    (outside / "secret").write_text("hidden-words")
    async with serving([*({"tools": [bash(one)]} for one in commands), "done"]) as server:
        ran = await cli.use(server).run(
            "-p", "go", "--output-format=json", "--deny-tool", "shell(git push)"
        )
    ended = ran.of("tool.execution_complete")
    assert [one["success"] for one in ended] == [True, True, False, False, False, False], ended
    assert (cli.cwd / "made").read_text() == "x"
    assert "refused" in ended[1]["result"]["content"]
    assert (cli.cwd / "kept").exists()
    assert os.listdir(outside) == ["secret"]
    assert "hidden-words" not in ran.out.decode()
    assert not list((cli.cwd / ".git" / "hooks").iterdir())


NO_SERVER = "127.0.0.1:1"
"""Makes clients use the proxy for this machine; otherwise they look for their own servers there."""
AUTO_ALLOW = SandboxSettings(enabled=True, auto_allow=True, allowed_hosts=(NO_SERVER,))


@pytest.mark.needs("bubblewrap", "git")
async def test_a_new_repository_is_made_outside_the_sandbox_after_one_question(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    async def approve(request_id: str, request: JsonObject) -> Answer:
        asked.append(request["fullCommandText"])
        return Answer(kind="approve-once")

    await play(
        [{"tools": [bash("git init -q")]}, "done"],
        "go",
        cwd=str(tmp_path),
        permissions=PermissionOptions(),
        sandbox_settings=AUTO_ALLOW,
        ask=approve,
    )
    assert asked == ["git init -q"]
    assert (tmp_path / ".git" / "HEAD").exists()


@pytest.mark.needs("bubblewrap", "curl")
@pytest.mark.parametrize(
    ("answers", "questions", "connections"),
    [
        (["approve-once", "approve-once"], 2, 4),
        (["approve-for-session"], 1, 4),
        (["reject", "approve-once"], 2, 2),
        (["user-not-available"] * 2, 2, 0),
    ],
)
async def test_a_new_host_is_asked_about_once_a_command_or_once_a_session(
    tmp_path: Path, answers: list[str], questions: int, connections: int
) -> None:
    asked: list[JsonObject] = []

    async def answer(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        return Answer(kind=answers[len(asked) - 1])

    async with listening(greet) as web:
        fetch = f"curl -sS {web.url}/ || true; curl -sS {web.url}/ || true"
        played = await play(
            [{"tools": [bash(fetch)]}, {"tools": [bash(f"{fetch} ")]}, "done"],
            "go",
            cwd=str(tmp_path),
            ask=answer,
            sandbox=True,
            sandbox_settings=AUTO_ALLOW,
        )
        address = f"https://127.0.0.1:{web.port}"
    assert [request["url"] for request in asked] == [address] * questions
    assert asked[0]["suggestedRules"] == [f"url({address})"]
    assert web.connections == connections
    refused = [data.reason for data in played.of("trimtab.connection_refused")]
    assert set(refused) <= {"the person did not allow it"}
    assert bool(refused) == (connections < 4)


@pytest.mark.needs("bubblewrap", "curl")
async def test_a_host_that_is_allowed_for_the_folder_is_not_asked_about_again(cli: Cli) -> None:
    settings = {"enabled": True, "autoAllow": True, "allowedHosts": [NO_SERVER]}
    (cli.home / "settings.json").write_text(json.dumps({"sandbox": settings}))
    async with listening(greet) as web:
        approval = {"kind": "url", "url": f"https://127.0.0.1:{web.port}"}
        granted = {"locations": {str(cli.cwd): {"tool_approvals": [approval]}}}
        (cli.home / "permissions-config.json").write_text(json.dumps(granted))
        async with serving([{"tools": [bash(f"curl -sS {web.url}/")]}, "done"]) as server:
            ran = await cli.use(server).run("-p", "go", "--output-format=json")
        assert web.connections == 1
    assert not ran.of("permission.requested")


@pytest.mark.needs("bubblewrap")
async def test_package_managers_of_a_project_have_caches_apart_from_the_persons(cli: Cli) -> None:
    settings = {"sandbox": {"enabled": True, "autoAllow": True}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    (cli.cwd / "pyproject.toml").touch()
    own = Path(cli.env["HOME"]) / ".cache" / "pip"
    own.mkdir(parents=True)
    keep = "mkdir -p $PIP_CACHE_DIR && touch $PIP_CACHE_DIR/kept && echo npm=$npm_config_cache."
    seen = "ls $PIP_CACHE_DIR"
    poison = f"P={own}; python3 -c 'open(\"'$P'/poisoned\", \"w\")' || echo refused"
    replies = [{"tools": [bash(command)]} for command in (keep, seen, poison)]
    async with serving([*replies, "done"]) as server:
        ran = await cli.use(server).run("-p", "go", "--output-format=json")
    first, second, third = (
        event["result"]["content"] for event in ran.of("tool.execution_complete")
    )
    assert "npm=." in first
    assert "kept" in second
    assert "refused" in third
    assert os.listdir(own) == []
    assert len(list((own.parent / "trimtab" / "sandbox").glob("*/pip/kept"))) == 1


@pytest.mark.needs("bubblewrap")
async def test_leaving_commands_unasked_needs_a_sandbox_that_holds_them(cli: Cli) -> None:
    settings = {"sandbox": {"enabled": True, "autoAllow": True, "network": "on"}}
    (cli.home / "settings.json").write_text(json.dumps(settings))
    async with serving([{"tools": [bash("python3 -c 1")]}, "done"]) as server:
        ran = await cli.use(server).run("-p", "go", "--output-format=json")
    (warning,) = [one for one in ran.of("session.warning") if one["warningType"] == "sandbox"]
    assert (
        "autoAllow has no effect here: commands have unrestricted network access"
        in warning["message"]
    )
    assert not ran.of("tool.execution_complete")[0]["success"]
