"""The editor transport costs other starts nothing, and its own start little."""

import subprocess
import sys

import pytest

PROBE = "import {module}\nimport sys\nprint('\\n'.join(sys.modules))"


def loaded_by(module: str) -> set[str]:
    """The modules that are loaded after importing one in a fresh interpreter."""
    code = PROBE.format(module=module)
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_headless_start_loads_nothing_of_the_editor_transport() -> None:
    loaded = loaded_by("trimtab.cli.start")
    assert not {name for name in loaded if "acp" in name or name == "trimtab.cli.editor"}


def test_the_answer_to_initialize_needs_no_runtime() -> None:
    loaded = loaded_by("trimtab.cli.editor")
    assert not {"acp", "pydantic", "yaml"} & loaded
    packages = ("runtime", "agents", "loop", "session", "workspace", "mcp", "undo")
    assert not [name for name in loaded if name.startswith(tuple(f"trimtab.{p}" for p in packages))]


@pytest.mark.parametrize("module", ["yaml", "shutil", "trimtab.commands.table", "difflib"])
def test_the_answer_to_a_new_session_does_not_wait_for_modules_it_does_not_need(
    module: str,
) -> None:
    assert module not in loaded_by("trimtab.transports.acp.sessions")


def test_the_built_in_agents_are_read_without_the_yaml_parser() -> None:
    code = "import trimtab.customize.agents as a\nassert len(a.find_agents([]).agents) > 4"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}\nimport sys\nassert 'yaml' not in sys.modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
