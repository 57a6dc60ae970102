"""Finds the commands by which a project is built and checked, in its manifests."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

CHECK_SCRIPT = re.compile(
    r"(?:build|compile|bundle|codegen|generate|tests?|unit|integration|e2e|spec|smoke|bench|ci|"
    r"lint|prettier|eslint|tsc|vitest|jest|playwright|type-?check|types|format|fmt|fix|check|"
    r"verify|validate|analy[sz]e|coverage|docs|storybook|dev|start|serve|preview|watch|clean)"
    r"(?:[:-][\w:.-]*)?",
    re.ASCII,
)
"""Names of scripts that build, check or start a project. Nothing in one can be another command."""
NODE_TOOLS = {
    "@11ty/eleventy": "eleventy",
    "@angular/cli": "ng",
    "@astrojs/check": "astro check",
    "@biomejs/biome": "biome",
    "@nestjs/cli": "nest build",
    "@playwright/test": "playwright",
    "astro": "astro",
    "ava": "ava",
    "c8": "c8",
    "cypress": "cypress",
    "cspell": "cspell",
    "depcheck": "depcheck",
    "dependency-cruiser": "depcruise",
    "esbuild": "esbuild",
    "eslint": "eslint",
    "gatsby": "gatsby build",
    "jest": "jest",
    "knip": "knip",
    "markdownlint-cli": "markdownlint",
    "mocha": "mocha",
    "next": "next",
    "nuxt": "nuxt",
    "nyc": "nyc",
    "oxlint": "oxlint",
    "parcel": "parcel build",
    "prettier": "prettier",
    "publint": "publint",
    "react-scripts": "react-scripts",
    "rollup": "rollup",
    "sass": "sass",
    "stylelint": "stylelint",
    "svelte-check": "svelte-check",
    "tailwindcss": "tailwindcss",
    "tsup": "tsup",
    "turbo": "turbo",
    "typedoc": "typedoc",
    "typescript": "tsc",
    "vite": "vite",
    "vitepress": "vitepress",
    "vitest": "vitest",
    "vue-tsc": "vue-tsc",
    "webpack": "webpack",
}
"""Packages that build or check a project, and their programs."""
PYTHON_TOOLS = (
    "pytest",
    "ruff",
    "mypy",
    "pyright",
    "black",
    "isort",
    "pylint",
    "coverage",
    "flake8",
)
"""Programs that check a Python project, named in its settings or requirements."""
PYTHON_MANIFESTS = (
    *("pyproject.toml", "setup.cfg", "requirements.txt", "requirements-dev.txt"),
    *("dev-requirements.txt", "requirements/dev.txt", "requirements/test.txt", "Pipfile"),
    *("requirements_dev.txt", "test-requirements.txt"),
)
PYTHON_STARTERS = (("uv.lock", "uv run"), ("poetry.lock", "poetry run"), ("Pipfile", "pipenv run"))
MAKE_TARGETS = ("build", "test", "check", "lint", "format", "run", "dev")
NODE_SCRIPTS = ("build", "test", "lint", "typecheck", "format", "dev", "start")
BY_FILE = (
    ("Cargo.toml", ("cargo build", "cargo test")),
    ("go.mod", ("go build ./...", "go test ./...")),
    ("CMakeLists.txt", ("cmake", "ctest")),
    ("meson.build", ("meson setup", "meson compile", "meson test", "ninja")),
    ("stack.yaml", ("stack build", "stack test")),
    ("cabal.project", ("cabal build", "cabal test")),
    ("dune-project", ("dune build", "dune test")),
    ("build.zig", ("zig build", "zig test")),
    ("build.sbt", ("sbt compile", "sbt test")),
    ("gleam.toml", ("gleam build", "gleam test")),
    ("project.yml", ("xcodegen generate",)),
    ("pom.xml", ("mvn package", "mvn test")),
    ("build.gradle", ("./gradlew build", "./gradlew test")),
    ("build.gradle.kts", ("./gradlew build", "./gradlew test")),
    ("mix.exs", ("mix compile", "mix test")),
    ("Gemfile", ("bundle install",)),
    ("tox.ini", ("tox",)),
    ("Package.swift", ("swift build", "swift test")),
    ("pubspec.yaml", ("flutter test", "flutter analyze", "dart test", "dart analyze")),
    ("deno.json", ("deno test", "deno lint", "deno fmt", "deno check")),
    (".rspec", ("bundle exec rspec",)),
    (".rubocop.yml", ("bundle exec rubocop",)),
    ("phpunit.xml", ("vendor/bin/phpunit",)),
    ("mvnw", ("./mvnw package", "./mvnw test")),
    (".pre-commit-config.yaml", ("pre-commit run",)),
)
_MAKE_TARGET = r"^([A-Za-z][\w-]*)\s*:(?!=)"
RECIPES = (
    ("Makefile", "make", _MAKE_TARGET),
    ("justfile", "just", _MAKE_TARGET),
    ("Justfile", "just", _MAKE_TARGET),
    ("Taskfile.yml", "task", r"^  ([A-Za-z][\w:-]*):"),
    ("Taskfile.yaml", "task", r"^  ([A-Za-z][\w:-]*):"),
)
"""Files of recipes, the program that runs them, and how a recipe begins."""
NOT_CHECKS = re.compile(r"install$")
"""Commands that change what is installed."""
MAX_BYTES = 1 << 20
MAX_PACKAGES = 50
MAX_FOLDERS = 200
MAX_ENTRIES = 2000
NOT_PACKAGES = ("node_modules", "target", "dist", "build", "vendor", "venv")
"""Folders in which packages of others are, or none."""


def find_commands(root: str) -> list[str]:
    """Return the commands that the manifests of a project name."""
    return list(dict.fromkeys(_find(root)))


def find_checks(root: str) -> list[str]:
    """Return the commands that build, check or start a project."""
    commands = [command for command in find_commands(root) if not NOT_CHECKS.search(command)]
    return list(dict.fromkeys((*commands, *_find_more_checks(root))))


def read_manifest(root: str, name: str) -> str:
    """Return the beginning of a file of the project; nothing if it cannot be read."""
    try:
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""


def _find(root: str) -> Iterator[str]:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        text = read_manifest(root, name)
        targets = re.findall(_MAKE_TARGET, text, re.MULTILINE)
        yield from (f"make {target}" for target in MAKE_TARGETS if target in targets)
    yield from _find_scripts(root)
    if "[tool.pytest" in read_manifest(root, "pyproject.toml") or read_manifest(root, "pytest.ini"):
        yield "pytest"
    for name, commands in BY_FILE:
        if os.path.isfile(os.path.join(root, name)):
            yield from commands


def _find_scripts(root: str) -> Iterator[str]:
    scripts, program = _read_package(root, "scripts"), _find_packager(root)
    yield from (f"{program} run {name}" for name in NODE_SCRIPTS if name in scripts)


def _find_more_checks(root: str) -> Iterator[str]:
    """Return the checks that are too many, or too special, to describe a project by."""
    packager = _find_packager(root)
    folders = (root, *find_packages(root))
    for name in dict.fromkeys(name for folder in folders for name in _find_check_scripts(folder)):
        yield f"{packager} run {name}"
        if packager in ("pnpm", "yarn") or name in ("test", "start"):
            yield f"{packager} {name}"
    packages: dict[str, Any] = {}
    for folder in folders:
        packages |= _read_package(folder, "dependencies")
        packages |= _read_package(folder, "devDependencies")
    starters = dict.fromkeys(("npx", {"bun": "bunx", "pnpm": "pnpm exec"}.get(packager, "npx")))
    tools = [tool for package, tool in NODE_TOOLS.items() if package in packages]
    yield from (f"{starter} {tool}" for starter in starters for tool in tools)
    settings = read_manifest(root, "pyproject.toml")
    yield from _find_python_checks(root, settings)
    tasks = settings.partition("[tool.pixi.tasks]")[2].partition("\n[")[0]
    for name in re.findall(r"^([\w-]+)\s*=", tasks, re.MULTILINE):
        if CHECK_SCRIPT.fullmatch(name):
            yield f"pixi run {name}"
    for manifest, starter, mark in RECIPES:
        targets = re.findall(mark, read_manifest(root, manifest), re.MULTILINE)
        yield from (f"{starter} {name}" for name in filter(CHECK_SCRIPT.fullmatch, targets))
    yield from _find_compiled_checks(root)


def _find_compiled_checks(root: str) -> Iterator[str]:
    """Return the checks of projects whose language is compiled."""
    names = _list_names(root)
    if "Cargo.toml" in names:
        yield from ("cargo check", "cargo clippy", "cargo fmt", "cargo run")
    if "go.mod" in names:
        yield from ("go vet ./...", "go fmt ./...", "gofmt -l .", "go run .")
    if any(name.endswith((".xcodeproj", ".xcworkspace")) for name in names):
        yield "xcodebuild"
    if any(name.endswith((".sln", ".slnx", ".csproj", ".fsproj")) for name in names):
        yield from ("dotnet build", "dotnet test", "dotnet run", "dotnet format")


def _find_python_checks(root: str, settings: str) -> Iterator[str]:
    """Return each way to start the programs that the settings of a Python project configure."""
    manifests = [settings, *(read_manifest(root, name) for name in PYTHON_MANIFESTS[1:])]
    tools = [tool for tool in PYTHON_TOOLS if any(_names_tool(tool, text) for text in manifests)]
    if "pytest" not in tools and os.path.isfile(f"{root}/conftest.py"):
        tools.append("pytest")
    yield from tools
    starters = [start for lock, start in PYTHON_STARTERS if os.path.exists(f"{root}/{lock}")]
    for tool in tools:
        yield from (f"{start} {tool}" for start in ("python -m", "python3 -m", *starters))
        for folder in (".venv/bin", "venv/bin"):
            if os.path.exists(f"{root}/{folder}/{tool}"):
                yield from (f"{folder}/{tool}", f"{folder}/python -m {tool}")


def _names_tool(tool: str, text: str) -> bool:
    """Return True if a manifest configures a program, or requires it or a plugin of it."""
    named = rf"\[(?:tool[.:])?{tool}\b|^{tool}\b|[\"']{tool}\b"
    return tool in text and re.search(named, text, re.MULTILINE) is not None


def _list_names(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return [entry.name for entry in islice(entries, MAX_ENTRIES)]
    except OSError:
        return []


def find_packages(root: str) -> list[str]:
    """Return the folders of the packages in a repository of several, down to two levels."""
    found: list[str] = []
    folders = [root]
    for _ in range(2):
        inner = (path for folder in folders for path in _list_folders(folder))
        folders = list(islice(inner, MAX_FOLDERS))
        found += [path for path in folders if os.path.isfile(os.path.join(path, "package.json"))]
    return found[:MAX_PACKAGES]


def _list_folders(folder: str) -> list[str]:
    """Return the folders in a folder that may hold packages; links are left out."""
    try:
        with os.scandir(folder) as entries:
            inner = [entry for entry in islice(entries, MAX_ENTRIES) if entry.name[0] != "."]
    except OSError:
        return []
    return sorted(
        entry.path
        for entry in inner
        if entry.name not in NOT_PACKAGES and entry.is_dir(follow_symlinks=False)
    )


def _find_check_scripts(root: str) -> Iterator[str]:
    return filter(CHECK_SCRIPT.fullmatch, _read_package(root, "scripts"))


def _find_packager(root: str) -> str:
    locks = (
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lockb", "bun"),
        ("bun.lock", "bun"),
    )
    found = (name for lock, name in locks if os.path.exists(os.path.join(root, lock)))
    return next(found, "npm")


def _read_package(root: str, field: str) -> dict[str, Any]:
    """Return a field of `package.json` that is an object; an empty one if there is none."""
    try:
        package = msgspec.json.decode(read_manifest(root, "package.json") or "{}")
    except msgspec.DecodeError:
        return {}
    value = package.get(field) if isinstance(package, dict) else None
    return value if isinstance(value, dict) else {}
