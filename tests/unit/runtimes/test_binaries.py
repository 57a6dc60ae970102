"""Finding the programs of runtimes, and remembering them."""

import json
import os
from pathlib import Path

import pytest

from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError
from trimtab.runtimes.binaries import Binaries
from trimtab.runtimes.models import list_models, read_models
from trimtab.runtimes.table import load_runtime


class Machine:
    """A home and a PATH of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.home = Home(config=str(folder / "home"), state=str(folder / "home"))
        (folder / "home").mkdir()
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder)}
        self.runs = folder / "runs"

    @property
    def binaries(self) -> Binaries:
        return Binaries(self.home, self.env)

    def install(self, name: str, body: str, folder: Path | None = None) -> Path:
        path = (folder or self.bin) / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {self.runs}\n{body}\n')
        path.chmod(0o755)
        return path

    @property
    def ran(self) -> list[str]:
        return self.runs.read_text().splitlines() if self.runs.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.proves("ADP-04")
async def test_a_found_program_is_remembered_and_not_asked_again(machine: Machine) -> None:
    machine.install("copilot", "echo 1.2.3")
    runtime = load_runtime("copilot")
    first = await machine.binaries.require(runtime)
    second = await machine.binaries.require(runtime)
    assert first == second
    assert first.version == "1.2.3"
    assert machine.ran == ["--version"]
    kept = json.loads(Path(machine.home.state, "cache/runtimes/copilot.json").read_text())
    assert {"bin", "isNative", "leadingArgs", "version", "resolvedAt"} <= set(kept)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"bin": 3}', b"\xff"])
async def test_what_was_remembered_is_checked_before_use(machine: Machine, damage: bytes) -> None:
    path = machine.install("codex", "echo 1.0.0")
    runtime = load_runtime("codex")
    await machine.binaries.require(runtime)
    Path(machine.home.state, "cache/runtimes/codex.json").write_bytes(damage)
    assert (await machine.binaries.require(runtime)).version == "1.0.0"
    machine.install("codex", "echo 2.0.0-beta.1")
    assert (await machine.binaries.require(runtime)).version == "2.0.0-beta.1"
    path.unlink()
    assert await machine.binaries.find(runtime) is None


@pytest.mark.proves("ADP-03")
async def test_the_extension_of_gh_stands_in_if_copilot_is_not_on_the_path(
    machine: Machine,
) -> None:
    gh = machine.install("gh", 'test "$1" = copilot && echo 1.0.5')
    runtime = load_runtime("copilot")
    found = await machine.binaries.require(runtime)
    assert (found.bin, found.leading_args, found.best_effort) == (str(gh), ("copilot",), True)
    real = machine.install("copilot", "echo 1.2.3")
    found = await machine.binaries.require(runtime)
    assert (found.bin, found.leading_args, found.best_effort) == (str(real), (), False)


async def test_gh_without_the_extension_does_not_stand_in(machine: Machine) -> None:
    machine.install("gh", "echo unknown command >&2; exit 1")
    assert await machine.binaries.find(load_runtime("copilot")) is None


@pytest.mark.proves("ADP-05")
async def test_flags_that_a_stand_in_lacks_are_found(machine: Machine) -> None:
    machine.install("gh", 'echo "1.0.5 --allow-all --no-ask-user" >&2')
    runtime = load_runtime("copilot")
    binary = await machine.binaries.require(runtime)
    missing = await machine.binaries.find_missing_flags(runtime, binary)
    assert missing == ["--output-format", "--autopilot"]


async def test_a_setting_names_the_program(machine: Machine, tmp_path: Path) -> None:
    other = machine.install("mine", "echo 5.0", tmp_path)
    settings = {"runtimes": {"pi": {"path": str(other)}}}
    Path(machine.home.settings).write_text(json.dumps(settings))
    assert (await machine.binaries.require(load_runtime("pi"))).bin == str(other)


@pytest.mark.parametrize(
    ("value", "said"),
    [({"path": "/no/such"}, "is not a program"), ({"pth": "x"}, "did you mean path?")],
)
async def test_a_wrong_setting_is_one_sentence(
    machine: Machine, value: dict[str, str], said: str
) -> None:
    Path(machine.home.settings).write_text(json.dumps({"runtimes": {"pi": value}}))
    with pytest.raises(ConfigurationError, match=said):
        await machine.binaries.require(load_runtime("pi"))


async def test_machine_code_is_native_and_a_script_is_not(machine: Machine) -> None:
    machine.install("pi", "echo 1.0")
    os.symlink("/bin/true", machine.bin / "codex")
    assert not (await machine.binaries.require(load_runtime("pi"))).is_native
    assert (await machine.binaries.require(load_runtime("codex"))).is_native


@pytest.mark.proves("ADP-16")
async def test_models_are_listed_and_kept_and_none_if_that_fails(machine: Machine) -> None:
    machine.install("opencode", 'test "$1" = models && printf "a/one\\nb/two\\n" || echo 1.0')
    runtime = load_runtime("opencode")
    binaries = machine.binaries
    binary = await binaries.require(runtime)
    assert await list_models(binaries, runtime, binary) == ["a/one", "b/two"]
    kept = Path(machine.home.state, "cache/runtimes/opencode-models.json")
    assert json.loads(kept.read_text()) == {"models": ["a/one", "b/two"]}
    machine.install("opencode", "exit 1")
    assert await list_models(binaries, runtime, binary) is None
    claude = load_runtime("claude")
    assert await list_models(binaries, claude, binary) is None


def test_a_printed_table_of_models_is_read_by_its_columns() -> None:
    table = "provider  model     context\nscr       scripted  128K  \n"
    assert read_models(table) == ["scr/scripted"]
