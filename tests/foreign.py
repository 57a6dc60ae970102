"""`make foreign`: fetches large foreign programs, which the tests marked `foreign` use.

npm packages and Python programs go to `.foreign`, each into a folder of its own; the embedded model goes to the user's
cache, as with `trimtab models pull`. What is there already is kept.
"""

import os
import shutil
import subprocess
import sys

from programkit import FOREIGN
from trimtab.contracts.errors import ConfigurationError
from trimtab.providers.embedded.pull import pull
from trimtab.providers.embedded.weights import is_usable

PACKAGES = {
    "copilot-sdk": ("@github/copilot-sdk@1.0.14", "--omit=optional"),  # without its program
    "acp-sdk": ("@agentclientprotocol/sdk@2.4.0",),
    "acpx": ("acpx@0.1.15",),
    "codex": ("@openai/codex@0.169.0",),
    "node": ("node@22",),  # what the suites of MCP need; Debian's may be older
    "mcp-conformance": ("@modelcontextprotocol/conformance@0.1.16",),
    "mcp-conformance-next": ("@modelcontextprotocol/conformance@0.2.0-alpha.12",),
    "claude-code": ("@anthropic-ai/claude-code@2.1.197",),
    "opencode": ("opencode-ai@1.18.33",),
    "pi": ("@mariozechner/pi-coding-agent@0.73.1",),
    "typescript-language-server": ("typescript-language-server@5.3.0", "typescript@5"),
    "gemini": ("@google/gemini-cli@0.61.0",),
    "copilot": ("@github/copilot@1.0.102",),
    "mcp-everything": ("@modelcontextprotocol/server-everything@2026.8.31",),
    "mcp-filesystem": ("@modelcontextprotocol/server-filesystem@2026.8.31",),
    "mcp-memory": ("@modelcontextprotocol/server-memory@2026.8.31",),
    "mcp-thinking": ("@modelcontextprotocol/server-sequential-thinking@2026.8.31",),
}
"""Folder → package, in the version that the tests were last seen to pass with, and flags of npm."""
PYTHON_PROGRAMS = {
    "basedpyright": "basedpyright==1.40.2",
    "mcp-server-time": "mcp-server-time==2026.10.19",
    "mcp-server-git": "mcp-server-git==2026.10.19",
}
QUIET = ("--no-audit", "--no-fund", "--silent")


def fetch_packages() -> None:
    """Install what npm has; without npm say what to install."""
    if shutil.which("npm") is None:
        print("npm is not installed: apt install npm, then make foreign")
        return
    for name, (package, *flags) in PACKAGES.items():
        folder = FOREIGN / name
        if (folder / "node_modules" / name_of(package)).is_dir():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        print(f"fetching {package}", flush=True)
        # Without --prefix npm would look for a package.json above, where the project may have one.
        install = ["npm", "install", *QUIET, *flags, "--prefix", str(folder), package]
        if not succeeds(install):
            print(f"npm could not install {package}: check the network, then make foreign")


def succeeds(command: list[str]) -> bool:
    """Run a command that downloads something, a second time if the first one fails."""
    return any(subprocess.run(command, check=False).returncode == 0 for _ in range(2))


def name_of(package: str) -> str:
    """Return a package's name without its version."""
    return package[0] + package[1:].partition("@")[0]


def fetch_keyring() -> None:
    """Install the package that reaches keyrings, and a keyring that is a file."""
    folder = FOREIGN / "keyring"
    if (folder / "keyrings").is_dir():
        return
    print("fetching keyring", flush=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    if not succeeds([*install, "keyring", "keyrings.alt"]):
        print("pip could not install keyring: check the network, then make foreign")


def fetch_python_programs() -> None:
    """Install programs from PyPI, each into an environment of its own."""
    for name, package in PYTHON_PROGRAMS.items():
        folder = FOREIGN / name
        if (folder / "bin" / name).is_file():
            continue
        print(f"fetching {name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(folder / "bin/pip"), "install", "--quiet", package]
        if not succeeds(install):
            print(f"pip could not install {name}: check the network, then make foreign")


def fetch_model() -> None:
    if is_usable(os.environ):
        return
    print("fetching the embedded model (1.1 GB)", flush=True)
    try:
        pull(os.environ, lambda *_: None)
    except ConfigurationError as error:
        print(error.message)


if __name__ == "__main__":
    # Tests of what could not be fetched are skipped, with a line that says so.
    fetch_packages()
    fetch_python_programs()
    fetch_keyring()
    fetch_model()
