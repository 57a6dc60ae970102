"""Subcommands that show something about a project: worth trying behind the fence."""

import pytest

from permissionkit import POLICY
from trimtab.permissions.decide_shell import decide_shell


@pytest.mark.parametrize(
    "command",
    [
        *("go version -m ./bin/x", "go mod graph", "go mod why x", "gofmt -l .", "gofmt -d a.go"),
        *("rustc --print cfg", "rustup toolchain list", "rustup component list --installed"),
        *("composer show", "php -m", "bundle list", "bundle show rails", "gcc -dumpmachine"),
        *("dotnet list package", "dotnet sln list", "conda env list", "jupyter kernelspec list"),
        *("poetry show --tree", "poetry env info", "uv tree", "uv pip list", "tsc --showConfig"),
        *("terraform state list", "git submodule status", "ldd build/app", "yamllint ."),
        *("hadolint Dockerfile", "actionlint"),
    ],
)
def test_what_shows_something_is_tried_behind_the_fence(command: str) -> None:
    decision = decide_shell(command, POLICY)
    assert decision.verdict == "allow"
    assert decision.harmless
    assert decision.plain is None


@pytest.mark.parametrize(
    "command",
    [
        *("gofmt -w a.go", "gofmt -l -w .", "go mod tidy", "go version; go mod edit x"),
        *("uv pip install x", "uv run x", "composer install", "bundle exec x", "bundle install"),
        *("dotnet sln add x", "dotnet list x package", "git submodule update", "poetry install"),
        *("terraform state rm x", "rustup target add x", "conda env remove -n x"),
    ],
)
def test_what_changes_something_is_asked_about(command: str) -> None:
    assert decide_shell(command, POLICY).verdict == "ask"
