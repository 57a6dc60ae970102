"""The commands by which a project is built and checked."""

import json
from pathlib import Path

import pytest

from trimtab.checkout.project_commands import (
    MAX_FOLDERS,
    MAX_PACKAGES,
    find_checks,
    find_commands,
    find_packages,
)

MANIFESTS = {
    "Makefile": "VERSION := 1\ntest: build\n\tpytest\nrun:\n\tx\n.PHONY: lint\n",
    "package.json": '{"scripts": {"lint": "x", "dev": "x", "other": "x"}}',
    "pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n",
    "Cargo.toml": "",
}


def test_every_manifest_names_its_commands(tmp_path: Path) -> None:
    for name, text in MANIFESTS.items():
        (tmp_path / name).write_text(text)
    named = ["make test", "make run", "npm run lint", "npm run dev", "pytest"]
    named += ["cargo build", "cargo test"]
    more = ["ruff", "python -m pytest", "python3 -m pytest", "python -m ruff", "python3 -m ruff"]
    more += ["cargo check", "cargo clippy", "cargo fmt", "cargo run"]
    assert find_checks(str(tmp_path)) == [*named, *more]
    assert find_commands(str(tmp_path)) == named


def test_checks_are_the_scripts_named_for_it_and_the_tools_that_are_installed(
    tmp_path: Path,
) -> None:
    package = {
        "scripts": {"test:unit": "x", "lint-css": "x", "deploy": "x", "testing": "x", "dev": "x"},
        "devDependencies": {"typescript": "5", "left-pad": "1"},
    }
    (tmp_path / "package.json").write_text(json.dumps(package))
    (tmp_path / "bun.lock").touch()
    (tmp_path / "pyproject.toml").write_text('[tool.pixi.tasks]\ntest = "x"\ningest = "y"\n[x]\n')
    checks = ["bun run dev", "bun run test:unit", "bun run lint-css"]
    checks += ["npx tsc", "bunx tsc", "pixi run test"]
    assert find_checks(str(tmp_path)) == checks


def test_the_packages_of_a_repository_of_several_count_but_not_those_installed(
    tmp_path: Path,
) -> None:
    for name, script in (("packages/web", "typecheck"), ("api", "test"), ("node_modules/x", "dev")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        package = {"scripts": {script: "x", "deploy": "x"}, "devDependencies": {"typescript": "5"}}
        (folder / "package.json").write_text(json.dumps(package))
    (tmp_path / "link").symlink_to(tmp_path / "node_modules" / "x")
    assert find_checks(str(tmp_path)) == [
        *("npm run test", "npm test", "npm run typecheck", "npx tsc"),
    ]


def test_a_repository_with_very_many_folders_is_looked_at_in_part(tmp_path: Path) -> None:
    for number in range(MAX_FOLDERS + 10):
        (tmp_path / f"p{number:04}").mkdir()
        (tmp_path / f"p{number:04}" / "package.json").write_text("{}")
    assert len(find_packages(str(tmp_path))) == MAX_PACKAGES
    assert find_packages(str(tmp_path / "missing")) == []


def test_checks_of_a_python_project_are_known_by_each_way_to_start_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    (tmp_path / "uv.lock").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ruff").touch()
    assert find_checks(str(tmp_path)) == [
        *("ruff", "python -m ruff", "python3 -m ruff", "uv run ruff"),
        *(".venv/bin/ruff", ".venv/bin/python -m ruff"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "checks"),
    [
        ("Makefile", "test-unit:\n\tx\ndeploy:\n\tx\n", ["make test-unit"]),
        ("justfile", "lint:\n  x\npublish:\n  x\n", ["just lint"]),
        ("Taskfile.yml", "tasks:\n  test:\n    x\n  release:\n    x\n", ["task test"]),
    ],
)
def test_recipes_count_that_are_named_for_a_check(
    name: str, text: str, checks: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert find_checks(str(tmp_path)) == checks


@pytest.mark.parametrize(("lock", "program"), [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")])
def test_scripts_run_by_the_program_that_locked_the_packages(
    tmp_path: Path, lock: str, program: str
) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"test": "x"}}')
    (tmp_path / lock).touch()
    assert find_checks(str(tmp_path)) == [f"{program} run test", f"{program} test"]


@pytest.mark.parametrize(
    "name",
    ["test: && ssh evil", "test:;curl x|sh", "test-$(id)", "test-`id`", "lint-a b", "test-\n"],
)
def test_a_script_whose_name_is_more_than_a_word_is_not_offered(tmp_path: Path, name: str) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {name: "x"}}))
    assert find_checks(str(tmp_path)) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"scripts": []}', "\udcff"])
def test_a_manifest_that_is_damaged_names_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text, errors="surrogateescape")
    assert find_checks(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "text", "tools"),
    [
        ("requirements.txt", "flask==3\npytest>=8\n# black\n", ["pytest"]),
        ("requirements-dev.txt", "pytest-cov\nruff\n", ["pytest", "ruff"]),
        ("setup.cfg", "[mypy]\nstrict = true\n[tool:pytest]\n", ["pytest", "mypy"]),
        ("pyproject.toml", "dev = [\"black\", 'isort']\n", ["black", "isort"]),
        ("pyproject.toml", 'description = "a black box"\n', []),
        ("conftest.py", "", ["pytest"]),
    ],
)
def test_the_checks_of_a_python_project_are_those_it_requires(
    tmp_path: Path, name: str, text: str, tools: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    checks = find_checks(str(tmp_path))
    assert [check for check in checks if " " not in check] == tools
    assert [check for check in checks if check.startswith("python3 -m ")] == [
        f"python3 -m {tool}" for tool in tools
    ]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("CMakeLists.txt", "ctest"),
        ("meson.build", "meson compile"),
        ("App.xcodeproj", "xcodebuild"),
        ("App.sln", "dotnet test"),
        ("go.mod", "go fmt ./..."),
        ("build.zig", "zig build"),
    ],
)
def test_projects_in_other_languages_have_their_builders(
    tmp_path: Path, name: str, check: str
) -> None:
    (tmp_path / name).touch()
    assert check in find_checks(str(tmp_path))
