"""Caches of package managers for sandboxed commands: a project's own, found from its manifests.

The caches of the person stay read-only. What a command put there would be run later, by the
person, outside the sandbox.
"""

import os
from collections.abc import Mapping

CACHES: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = (
    (
        ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile", "uv.lock"),
        {"PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "POETRY_CACHE_DIR": "poetry"},
    ),
    (
        ("package.json",),
        {
            "npm_config_cache": "npm",
            "npm_config_store_dir": "pnpm",
            "YARN_CACHE_FOLDER": "yarn",
            "BUN_INSTALL_CACHE_DIR": "bun",
            "COREPACK_HOME": "corepack",
        },
    ),
    (("Cargo.toml",), {"CARGO_HOME": "cargo"}),
    (("go.mod", "go.work"), {"GOMODCACHE": "go-mod", "GOCACHE": "go-build"}),
    (
        ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
        {"GRADLE_USER_HOME": "gradle"},
    ),
    (("composer.json",), {"COMPOSER_CACHE_DIR": "composer"}),
    (("Gemfile",), {"BUNDLE_USER_HOME": "bundle"}),
    (("packages.config", "Directory.Build.props", "global.json"), {"NUGET_PACKAGES": "nuget"}),
)
"""Manifests, and the variables that name the caches of the tools that read them."""


def find_caches(project: str, base: str) -> dict[str, str]:
    """Return the variables that move caches to folders below `base`, for a project's tools."""
    variables: dict[str, str] = {}
    for manifests, folders in CACHES:
        if any(os.path.lexists(os.path.join(project, name)) for name in manifests):
            variables |= {name: os.path.join(base, folder) for name, folder in folders.items()}
    return variables
